package serve

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const takeBody = `{"key":"alice"}`

// takeAlice is a whole request to take.
const takeAlice = "POST /v1/take HTTP/1.1\r\nHost: weir\r\nContent-Length: 15\r\n\r\n" + takeBody

// A request may reach a connection at the moment that the server dismisses it.
func TestRequestOverADismissedConnectionIsAnsweredAndNotDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, 0, time.Minute)
		conn := s.dial(t)
		synctest.Wait()
		time.Sleep(silentEvictionAge)
		s.open.dismissOldest(&s.open.silent, 0)
		go func() { _, _ = io.WriteString(conn, takeAlice) }() // holding would block on a decision
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		var problem struct{ Counted string }
		if err := json.NewDecoder(answer.Body).Decode(&problem); err != nil || answer.StatusCode != http.StatusRequestTimeout || problem.Counted != "no" {
			t.Errorf("got %s, counted %q, %v, want 408 and counted: no", answer.Status, problem.Counted, err)
		}
		s.signal()
		if err := <-s.ended; err != nil {
			t.Errorf("serve ended with %v, want nil", err)
		}
	})
}

// Another request may already be in the server's buffer, behind the one that was answered last.
func TestBufferedRequestOfADismissedConnectionIsNotDecided(t *testing.T) {
	s := newServer(t, 0, time.Minute)
	client, conn := net.Pipe()
	defer client.Close()
	tracked := s.open.track(conn)
	ctx := s.open.begin(t.Context(), tracked)
	s.open.dismissOldest(&s.open.silent, 0)
	defer func() {
		if got := recover(); got != http.ErrAbortHandler {
			t.Errorf("the handler ended with %v, want http.ErrAbortHandler", got)
		}
	}()
	r := httptest.NewRequest(http.MethodPost, "/v1/take", strings.NewReader(takeBody)).WithContext(ctx)
	s.answer(httptest.NewRecorder(), r) // holding would block on a decision
}

func TestConnectionsThatTakeTooLongEndWithAnAnswer(t *testing.T) {
	for name, sent := range map[string]string{"nothing": "", "half a header": takeAlice[:30]} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := startServer(t, 0, time.Minute)
				conn := s.dial(t)
				end := ending(conn)
				send(conn, sent)
				wantClosingAnswer(t, "the connection", end)
				s.signal()
				<-s.ended
			})
		})
	}
}

func TestIdleConnectionEndsWithAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, 0, time.Minute)
		conn := s.dial(t)
		askOver(conn)
		start := time.Now()
		wantClosingAnswer(t, "the connection", ending(conn))
		if took := time.Since(start); took < idleTimeout || took > idleTimeout+lingerTime {
			t.Errorf("an idle connection was kept for %v, want %v", took, idleTimeout)
		}
		s.signal()
		<-s.ended
	})
}

// A connection whose request waits in the system is not silent, although the server has not read it yet.
func TestUnreadBytesAreSeen(t *testing.T) {
	client, server := tcpPair(t)
	if hasUnread(server) {
		t.Error("a silent connection has unread bytes")
	}
	if _, err := io.WriteString(client, takeAlice); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Read(make([]byte, 1)); err != nil { // so that the bytes have arrived
		t.Fatal(err)
	}
	if !hasUnread(server) {
		t.Error("a connection with unread bytes seems silent")
	}
	c := connections{most: 1}
	if tracked := c.track(server); c.oldest(&c.silent, 0) != nil || tracked.in != nil {
		t.Error("a connection with an unread request would make room for another")
	}
}

func tcpPair(t *testing.T) (client, server net.Conn) {
	t.Helper()
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer on.Close()
	if client, err = net.Dial("tcp", on.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = on.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	return client, server
}
