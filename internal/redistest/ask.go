package redistest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Do sends a command to the server on a new connection. It fails the test if the command fails. The answer is a
// string, an int64, nil or a []any of these.
func (s *Server) Do(args ...string) any {
	s.t.Helper()
	reply, err := s.Ask(args...)
	if err != nil {
		s.t.Fatalf("redistest: %s: %s: %v", s.Addr, strings.Join(args, " "), err)
	}
	return reply
}

// Ask works like Do and returns the error.
func (s *Server) Ask(args ...string) (any, error) { return ask(s.Addr, args...) }

// FlushScripts removes every script from the server.
func (s *Server) FlushScripts() {
	s.t.Helper()
	s.Do("SCRIPT", "FLUSH", "SYNC")
}

// Info returns one field of INFO, like "used_memory".
func (s *Server) Info(field string) string {
	s.t.Helper()
	text, _ := s.Do("INFO", "everything").(string)
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	s.t.Fatalf("redistest: %s: INFO has no field %q", s.Addr, field)
	return ""
}

func ask(addr string, args ...string) (any, error) {
	c, err := dial(addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Ask(args...)
}

// Conn is a connection to a server. It implements the part of RESP that the tests need, so that they depend on no client.
type Conn struct {
	net.Conn
	replies *bufio.Reader
}

// Dial returns a connection, which the test closes at its end.
func (s *Server) Dial() *Conn {
	s.t.Helper()
	c, err := dial(s.Addr)
	if err != nil {
		s.t.Fatalf("redistest: %s: %v", s.Addr, err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

func dial(addr string) (*Conn, error) {
	conn, err := net.DialTimeout("tcp", addr, 20*time.Second)
	if err != nil {
		return nil, err
	}
	return &Conn{conn, bufio.NewReader(conn)}, nil
}

// Ask sends a command and returns its reply.
func (c *Conn) Ask(args ...string) (any, error) {
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return nil, err
	}
	var request strings.Builder
	fmt.Fprintf(&request, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&request, "$%d\r\n%s\r\n", len(arg), arg)
	}
	if _, err := io.WriteString(c, request.String()); err != nil {
		return nil, err
	}
	return c.Reply()
}

// Reply returns the next reply or message.
func (c *Conn) Reply() (any, error) { return readReply(c.replies) }

// errorReply is an error of the server.
type errorReply string

func (e errorReply) Error() string { return string(e) }

// RedisError marks it as an error reply for a redislimit.Sender.
func (errorReply) RedisError() {}

func readReply(r *bufio.Reader) (any, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	kind, rest := line[0], strings.TrimSpace(line[1:])
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return nil, errorReply(rest)
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	switch {
	case err != nil:
		return nil, fmt.Errorf("a reply that starts with %q", line)
	case kind == ':':
		return n, nil
	case n < 0:
		return nil, nil
	case kind == '$':
		text := make([]byte, n+2)
		_, err := io.ReadFull(r, text)
		return string(text[:n]), err
	}
	list := make([]any, n)
	for i := range list {
		if list[i], err = readReply(r); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// eventually repeats try until it succeeds or hopeless returns true, for as long as patience allows.
func eventually(patience time.Duration, try func() error, hopeless func() bool) error {
	deadline := time.After(patience)
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		err := try()
		if err == nil || hopeless != nil && hopeless() {
			return err
		}
		select {
		case <-deadline:
			return fmt.Errorf("not within %v: %w", patience, err)
		case <-again.C:
		}
	}
}
