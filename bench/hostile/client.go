package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// patience bounds the wait for any answer. An honest request without an answer by then is lost.
const patience = 30 * time.Second

// outcome is the outcome of a request.
type outcome int

const (
	answered   outcome = iota
	notSent            // no connection, so certainly not counted
	unanswered         // a connection was made, and no answer came over it
)

// reply is the outcome of a request and its times.
type reply struct {
	outcome
	began, ended time.Time
	fresh        bool // over a new connection
	status       int
	body         []byte
	err          error
}

func (r *reply) took() time.Duration { return r.ended.Sub(r.began) }

// client sends requests over one connection, which it keeps like an HTTP library.
type client struct {
	address string
	conn    net.Conn
	reader  *bufio.Reader
	used    time.Time
}

// idleMost is how long a client keeps an idle connection. It is shorter than the daemon's drain, so that a stopping
// daemon can announce the end of every connection in time.
const idleMost = drain / 4

// ask posts a body and waits for the answer. Without a body it sends a GET. The style is the form of the request.
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
	_, unsent := io.WriteString(c.conn, how.request(host, path, body))
	response, err := http.ReadResponse(c.reader, nil) // even if the server no longer reads
	if err != nil {
		return errors.Join(unsent, err)
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

// style is the form of a request.
type style struct {
	fresh   bool // over a new connection
	chunked bool
	large   bool // with a body that needs a place for large bodies
}

// text describes the unusual parts of a request.
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

// largeBody is a size that needs a place for large bodies.
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

// pause waits for d or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
