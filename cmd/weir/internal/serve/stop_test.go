package serve

import (
	"bufio"
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

// statuses returns the statuses of a connection's answers.
func statuses(conn net.Conn) (all []string) {
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
		_ = ending(header) // net/http takes half a line for a wrong one, and says so
		s.signal()
		start := time.Now()
		answers := make(chan []string)
		go func() { answers <- statuses(body) }()
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
	go func() { got <- statuses(conn) }()
	return got
}

// wantEnd checks that a connection ends without an answer.
func wantEnd(t *testing.T, which string, end <-chan []string) {
	t.Helper()
	if got := <-end; len(got) != 0 {
		t.Errorf("%s got %q, want its end", which, got)
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
			wantEnd(t, which, end)
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
			wantEnd(t, fmt.Sprintf("connection %d, which was quiet for longest,", next), end)
		}
		s.signal()
		<-s.ended
	})
}

// A request may reach a connection at the moment that the server closes it.
func TestRequestOverAnEvictedConnectionIsNotDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, 0, time.Minute)
		conn := s.dial(t)
		synctest.Wait()
		s.open.mu.Lock()
		evicted := s.open.silent.Front().Value.(*connection)
		s.open.forget(evicted) // as eviction does before it closes
		s.open.mu.Unlock()
		end := ending(conn)
		_, _ = io.WriteString(conn, "POST /v1/take HTTP/1.1\r\nHost: weir\r\nContent-Length: 15\r\n\r\n"+peekBody) // holding would block on a decision
		wantEnd(t, "the request", end)
		s.signal()
		if err := <-s.ended; err != nil {
			t.Errorf("serve ended with %v, want nil", err)
		}
	})
}

func TestConnectionsThatTakeTooLongEnd(t *testing.T) {
	for name, c := range map[string]struct {
		sent string
		want time.Duration
	}{
		"nothing":           {"", headerTimeout},
		"half a header":     {peekHead[:20], headerTimeout},
		"an answer is read": {"GET /healthz HTTP/1.1\r\nHost: weir\r\n\r\n", idleTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := startServer(t, 0, time.Minute)
				conn, start := s.dial(t), time.Now()
				end := ending(conn)
				send(conn, c.sent)
				<-end
				if took := time.Since(start); took != c.want {
					t.Errorf("the connection was kept for %v, want %v", took, c.want)
				}
				s.signal()
				<-s.ended
			})
		})
	}
}
