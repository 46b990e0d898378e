package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// patience is how long any answer is waited for. An honest request without an
// answer by then is lost.
const patience = 30 * time.Second

// outcome is what became of a request.
type outcome int

const (
	answered   outcome = iota
	notSent            // there was no connection, so it was certainly not counted
	unanswered         // it was sent, and nobody can say whether it was counted
)

// reply is what became of a request, and when.
type reply struct {
	outcome
	began, ended time.Time
	fresh        bool // over a connection that was made for it
	status       int
	body         []byte
	err          error
}

func (r *reply) took() time.Duration { return r.ended.Sub(r.began) }

// client asks over one connection, which it keeps as an HTTP library does.
type client struct {
	address string
	conn    net.Conn
	reader  *bufio.Reader
	used    time.Time
}

// idleMost is how long a connection is kept without use. It is shorter than the
// daemon's drain, so that a daemon which stops can tell every connection in time.
const idleMost = drain / 4

// ask posts a body and waits for the answer; without a body it gets. The style is
// how the request is sent.
func (c *client) ask(address, path, body string, how style) (r reply) {
	r.began = time.Now()
	defer func() { r.ended = time.Now() }()
	if c.conn == nil || c.address != address || how.fresh || time.Since(c.used) > idleMost {
		c.close()
		conn, err := net.DialTimeout("tcp", address, patience)
		if err != nil {
			r.outcome, r.err = notSent, err
			return r
		}
		c.address, c.conn, c.reader, r.fresh = address, conn, bufio.NewReader(conn), true
	}
	_ = c.conn.SetDeadline(r.began.Add(patience))
	if err := c.exchange(&r, address, path, body, how); err != nil {
		c.close()
		r.outcome, r.err = unanswered, err
	}
	c.used = time.Now()
	return r
}

func (c *client) exchange(r *reply, host, path, body string, how style) error {
	if _, err := io.WriteString(c.conn, how.request(host, path, body)); err != nil {
		return err
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return err
	}
	r.status = response.StatusCode
	if r.body, err = io.ReadAll(response.Body); err != nil {
		return err
	}
	if response.Close {
		c.close()
	}
	return nil
}

func (c *client) close() {
	if c.conn != nil {
		_ = c.conn.Close()
	}
	c.conn = nil
}

// style is how a request is sent.
type style struct {
	fresh   bool // over a connection of its own
	chunked bool
	large   bool // a body above what is read without a place among the large ones
}

// text names what is unusual about a request.
func (s style) text(fresh bool) string {
	text := "over a kept connection"
	if fresh {
		text = "over a new connection"
	}
	if s.chunked {
		text += ", in chunks"
	}
	if s.large {
		text += ", with a large body"
	}
	return text
}

// largeBody is a size that the daemon calls large.
const largeBody = 20 << 10

// request returns the text of a request.
func (s style) request(host, path, body string) string {
	if body == "" {
		return "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n"
	}
	if s.large {
		body += strings.Repeat(" ", largeBody)
	}
	head := "POST " + path + " HTTP/1.1\r\nHost: " + host + "\r\nContent-Type: application/json\r\n"
	if s.chunked {
		half := len(body) / 2
		return fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", head, half, body[:half], len(body)-half, body[half:])
	}
	return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body), body)
}
