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

// Do asks the server, on a connection of its own, and fails the test if that
// fails or answers an error. The answer is a string, an int64, nil or a []any
// of them.
func (s *Server) Do(args ...string) any {
	s.t.Helper()
	reply, err := s.Ask(args...)
	if err != nil {
		s.t.Fatalf("redistest: %s: %s: %v", s.Addr, strings.Join(args, " "), err)
	}
	return reply
}

// Ask is Do that returns the error.
func (s *Server) Ask(args ...string) (any, error) { return ask(s.Addr, args...) }

// FlushScripts makes the server forget every script.
func (s *Server) FlushScripts() {
	s.t.Helper()
	s.Do("SCRIPT", "FLUSH", "SYNC")
}

// Info is one field of INFO, like "used_memory".
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

// ask speaks just enough RESP for the tests to depend on no client.
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

// eventually asks until there is no error, or hopeless says that there will
// always be one.
func eventually(try func() error, hopeless func() bool) error {
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
