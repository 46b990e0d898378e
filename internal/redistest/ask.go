package redistest

import (
	"bufio"
	"errors"
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

// ask implements the part of RESP that the tests need, so that they depend on no client.
func ask(addr string, args ...string) (any, error) {
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return nil, err
	}
	var request strings.Builder
	fmt.Fprintf(&request, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&request, "$%d\r\n%s\r\n", len(arg), arg)
	}
	if _, err := io.WriteString(conn, request.String()); err != nil {
		return nil, err
	}
	return readReply(bufio.NewReader(conn))
}

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
		return nil, errors.New(rest)
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
