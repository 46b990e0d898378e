package serve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const peekBody = `{"key":"alice"}`

// peekHead is a request without its body.
const peekHead = "POST /v1/peek HTTP/1.1\r\nHost: weir\r\nContent-Length: 15\r\n\r\n"

// send writes to a connection and returns once the server has read the text.
func send(conn net.Conn, text string) {
	_, _ = io.WriteString(conn, text)
	synctest.Wait()
}

// statuses returns the statuses of a connection's answers, without the closing answer.
func statuses(conn net.Conn) []string {
	all := allStatuses(conn)
	if n := len(all); n > 0 && all[n-1] == "408 Request Timeout" {
		return all[:n-1]
	}
	return all
}

// allStatuses reads a connection until it ends.
func allStatuses(conn net.Conn) (all []string) {
	for r := bufio.NewReader(conn); ; {
		answer, err := http.ReadResponse(r, nil)
		if err != nil {
			return all
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		all = append(all, answer.Status)
	}
}

func TestSilentConnectionsDoNotDelayTheStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, 0, 3*time.Second)
		s.dial(t)
		idle := s.dial(t)
		if got := askOver(idle); !strings.HasPrefix(got, "HTTP/1.1 200 OK") {
			t.Fatalf("got %q", got)
		}
		s.signal()
		start := time.Now()
		if err := <-s.ended; err != nil || time.Since(start) > time.Second {
			t.Errorf("serve ended with %v after %v, want nil within 1s", err, time.Since(start))
		}
	})
}

func TestRequestThatHasBegunToArriveIsAnsweredWhileStopping(t *testing.T) {
	for name, sent := range map[string]int{"a byte": 1, "half a header": 20, "a header": len(peekHead), "half a body": len(peekHead) + 5} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := startServer(t, 0, 10*time.Second)
				conn := s.dial(t)
				send(conn, (peekHead + peekBody)[:sent])
				s.signal()
				time.Sleep(3 * time.Second)
				go send(conn, (peekHead + peekBody)[sent:])
				if got := statuses(conn); len(got) != 1 || got[0] != "200 OK" {
					t.Errorf("got %q, want 200 and the end", got)
				}
				if err := <-s.ended; err != nil {
					t.Errorf("serve ended with %v, want nil", err)
				}
			})
		})
	}
}

func TestRequestsThatDoNotArriveAreGivenUpBeforeTheGraceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, 0, 3*time.Second)
		header, body := s.dial(t), s.dial(t)
		send(header, peekHead[:20])
		send(body, peekHead+peekBody[:5])
		s.signal()
		start := time.Now()
		answers := make(chan []string)
		go func() { answers <- allStatuses(body) }()
		if err := <-s.ended; err != nil || time.Since(start) > 3*time.Second {
			t.Errorf("serve ended with %v after %v, want nil within the grace period of 3s", err, time.Since(start))
		}
		if got := <-answers; len(got) != 1 || got[0] != "408 Request Timeout" {
			t.Errorf("the body that did not arrive got %q, want 408 and the end", got)
		}
	})
}

// A client may not yet have read that the connection will close, or may have sent several requests before the first
// answer.
func TestDrainAnswersAllRequestsOfAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, 5*time.Second, 10*time.Second)
		conn := s.dial(t)
		s.signal()
		go func() {
			send(conn, strings.Repeat(peekHead+peekBody, 10))
			for range 10 {
				time.Sleep(100 * time.Millisecond)
				send(conn, peekHead+peekBody)
			}
		}()
		got := statuses(conn)
		if len(got) != 20 || strings.Contains(strings.Join(got, " "), "503") {
			t.Errorf("20 requests over one connection while draining got %q, want 200 for each", got)
		}
		if err := <-s.ended; err != nil {
			t.Errorf("serve ended with %v, want nil", err)
		}
	})
}

func TestStopAnswersPipelinedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, 0, 10*time.Second)
		conn := s.dial(t)
		s.signal()
		go send(conn, strings.Repeat(peekHead+peekBody, 10))
		if got := statuses(conn); len(got) != 10 {
			t.Errorf("10 requests that were sent at once got %q", got)
		}
		if err := <-s.ended; err != nil {
			t.Errorf("serve ended with %v, want nil", err)
		}
	})
}

// A client that ignores the end of its connection cannot keep the daemon running.
func TestBusyConnectionsEndWithTheStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, 0, 10*time.Second)
		conn := s.dial(t)
		gone := make(chan bool)
		go func() {
			defer close(gone)
			for err := error(nil); err == nil; time.Sleep(10 * time.Millisecond) {
				_, err = io.WriteString(conn, peekHead+peekBody)
			}
		}()
		go statuses(conn)
		time.Sleep(time.Second)
		s.signal()
		start := time.Now()
		if err := <-s.ended; err != nil || time.Since(start) > time.Second {
			t.Errorf("serve ended with %v after %v, want nil within 1s", err, time.Since(start))
		}
		<-gone
	})
}

// ending reads a connection until it ends, in the background.
func ending(conn net.Conn) <-chan []string {
	got := make(chan []string, 1)
	go func() { got <- allStatuses(conn) }()
	return got
}

// wantClosingAnswer checks that a connection ends with the closing answer and no other.
func wantClosingAnswer(t *testing.T, which string, end <-chan []string) {
	t.Helper()
	if got := <-end; len(got) != 1 || got[0] != "408 Request Timeout" {
		t.Errorf("%s got %q, want 408 and the end", which, got)
	}
}

func TestQuietConnectionsMakeRoomForNewOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, 0, time.Minute)
		s.open.most = 3
		busy, idle, silent := s.dial(t), s.dial(t), s.dial(t)
		send(busy, peekHead)
		askOver(idle)
		for range spareConnections {
			s.dial(t)
		}
		synctest.Wait()
		time.Sleep(evictionAge)
		ends := map[string]<-chan []string{"the idle connection": ending(idle), "the silent connection": ending(silent)}
		for range ends {
			if got := askOver(s.dial(t)); !strings.HasPrefix(got, "HTTP/1.1 200 OK") {
				t.Errorf("a new connection got %q in the place of a quiet one", got)
			}
		}
		for which, end := range ends {
			wantClosingAnswer(t, which, end)
		}
		conn := s.dial(t) // in a spare place, taken from a silent connection
		go func() { _, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: weir\r\n\r\n") }()
		if got := statuses(conn); len(got) != 1 || got[0] != "200 OK" {
			t.Errorf("when all are taken, /healthz got %q, want 200", got)
		}
		go send(busy, peekBody)
		answer, err := http.ReadResponse(bufio.NewReader(busy), nil)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Errorf("a request that had begun got %v, %v, want 200", answer, err)
		}
		s.signal()
		<-s.ended
	})
}

// Connections that have sent nothing go first, then those that were idle for longest.
func TestTheConnectionThatWasQuietForLongestMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, 0, time.Minute)
		s.open.most = 4
		var conns []net.Conn
		for i := range s.open.most {
			conns = append(conns, s.dial(t))
			if i < 2 {
				askOver(conns[i])
			}
			time.Sleep(evictionAge)
		}
		askOver(conns[0]) // so that it is the last one to leave
		for _, next := range []int{2, 3, 1, 0} {
			time.Sleep(evictionAge)
			end := ending(conns[next])
			if got := askOver(s.dial(t)); !strings.HasPrefix(got, "HTTP/1.1 200 OK") {
				t.Errorf("a new connection got %q in the place of a quiet one", got)
			}
			wantClosingAnswer(t, fmt.Sprintf("connection %d, which was quiet for longest,", next), end)
		}
		s.signal()
		<-s.ended
	})
}

// takesAll is a connection that takes everything and does nothing.
type takesAll struct{ net.Conn }

func (takesAll) Write(b []byte) (int, error)      { return len(b), nil }
func (takesAll) SetReadDeadline(time.Time) error  { return nil }
func (takesAll) SetWriteDeadline(time.Time) error { return nil }
func (takesAll) Close() error                     { return nil }

// BenchmarkConnectionBeyondTheBound measures a new connection when connections that were busy until recently take all
// places.
func BenchmarkConnectionBeyondTheBound(b *testing.B) {
	c := connections{most: defaultConnections}
	add := func() *connection {
		tracked := c.track(takesAll{})
		c.begin(b.Context(), tracked)
		return tracked
	}
	for range defaultConnections + spareConnections {
		add()
	}
	for b.Loop() {
		c.changed(add(), http.StateClosed)
	}
}

// The system holds connections that the server has not accepted yet.
func TestStopAnswersConnectionsThatWaitToBeAccepted(t *testing.T) {
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns []net.Conn
	for range 50 {
		conn, err := net.Dial("tcp", on.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, peekHead+peekBody); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	s := newServer(t, 0, patience)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := s.serve(stopped, on); err != nil {
		t.Errorf("serve ended with %v, want nil", err)
	}
	for i, conn := range conns {
		if got := statuses(conn); len(got) != 1 || got[0] != "200 OK" {
			t.Errorf("connection %d got %q, want 200 and the end", i, got)
		}
		_ = conn.Close()
	}
}
