package serve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/api"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/internal/layertest"
)

// served is a server in virtual time, with connections in memory.
type served struct {
	*server
	listener *memoryListener
	client   *http.Client
	engine   *holding
	signal   context.CancelFunc // the stop signal
	ended    chan error         // the result of serve
}

// newServer returns a server that is not serving yet.
func newServer(t *testing.T, drain, grace time.Duration) *served {
	t.Helper()
	rules, err := parseRules(nil)
	if err != nil {
		t.Fatal(err)
	}
	engine := newHolding()
	log := slog.New(slog.DiscardHandler)
	return &served{
		server:   serverOf(decide.Options{Engine: layertest.Around(engine), Rules: rules, Log: log}, &server{log: log, open: connections{most: defaultConnections}, drain: drain, grace: grace}),
		listener: newMemoryListener(),
		engine:   engine,
		ended:    make(chan error, 1),
	}
}

// serverOf gives a server a desk.
func serverOf(o decide.Options, s *server) *server {
	s.desk = decide.New(o)
	s.api = api.New(api.Options{Desk: s.desk, Log: o.Log})
	return s
}

func startServer(t *testing.T, drain, grace time.Duration) *served {
	t.Helper()
	s := newServer(t, drain, grace)
	s.client = &http.Client{Transport: &http.Transport{DialContext: s.listener.dial}}
	ctx, cancel := context.WithCancel(t.Context())
	s.signal = cancel
	go func() { s.ended <- s.serve(ctx, s.listener) }()
	t.Cleanup(s.client.CloseIdleConnections)
	return s
}

// ask sends one request and returns its status and body.
func (s *served) ask(method, path string) string {
	r, _ := http.NewRequest(method, "http://weir"+path, strings.NewReader(`{"key":"alice"}`))
	response, err := s.client.Do(r)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return response.Status + " " + string(body)
}

func TestStopLetsRequestsInFlightFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, 0, time.Minute)
		answer := make(chan string)
		go func() { answer <- s.ask(http.MethodPost, "/v1/take") }()
		<-s.engine.entered
		s.signal()
		synctest.Wait() // the drain of 0 has ended, and the grace period runs
		if _, err := s.listener.dial(t.Context(), "", ""); err == nil {
			t.Error("a new connection was taken after the stop signal")
		}
		ready := httptest.NewRecorder()
		s.api.ServeHTTP(ready, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		if ready.Code != http.StatusServiceUnavailable {
			t.Errorf("after the stop signal: readyz %d, want 503", ready.Code)
		}
		select {
		case err := <-s.ended:
			t.Fatalf("serve ended with %v before the request in flight", err)
		default:
		}
		close(s.engine.release)
		if got := <-answer; !strings.HasPrefix(got, `200 OK {"allowed":true,`) {
			t.Errorf("the request in flight got %q, want 200 and allowed", got)
		}
		if err := <-s.ended; err != nil {
			t.Errorf("serve ended with %v, want nil", err)
		}
	})
}

func TestStopWaitsNoLongerThanTheGracePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, time.Second, 10*time.Second)
		answer := make(chan string)
		go func() { answer <- s.ask(http.MethodPost, "/v1/take") }()
		<-s.engine.entered
		start := time.Now()
		s.signal()
		err := <-s.ended
		if took := time.Since(start); took != 11*time.Second {
			t.Errorf("the stop took %v, want a drain of 1s and a grace period of 10s", took)
		}
		if want := "serve: requests took longer than the grace period of 10s and were cut off"; err == nil || err.Error() != want {
			t.Errorf("serve ended with %v, want %s", err, want)
		}
		if got := <-answer; !strings.Contains(got, "EOF") {
			t.Errorf("the request cut off got %q, want the end of the connection", got)
		}
		close(s.engine.release)
	})
}

func TestDrainServesOnButNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, 5*time.Second, time.Minute)
		close(s.engine.release)
		if got := s.ask(http.MethodGet, "/readyz"); !strings.HasPrefix(got, "200 ") {
			t.Errorf("running: readyz says %q", got)
		}
		start := time.Now()
		s.signal()
		synctest.Wait()
		s.client.CloseIdleConnections() // later requests use new connections
		if got := s.ask(http.MethodGet, "/readyz"); !strings.HasPrefix(got, "503 ") {
			t.Errorf("draining: readyz says %q, want 503", got)
		}
		go func() { <-s.engine.entered }()
		if got := s.ask(http.MethodPost, "/v1/take"); !strings.HasPrefix(got, "200 ") {
			t.Errorf("draining: take says %q, want 200", got)
		}
		s.client.CloseIdleConnections()
		if err := <-s.ended; err != nil || time.Since(start) < 5*time.Second {
			t.Errorf("serve ended with %v after %v, want nil after 5s", err, time.Since(start))
		}
	})
}

func TestSlowBodiesAreCutOff(t *testing.T) {
	const chunked = "Transfer-Encoding: chunked\r\n\r\nb\r\n{\"key\":\"a\"}\r\n0\r\n\r\n"
	sent := []string{"Content-Length: 15\r\n\r\n{"}
	for n := strings.Index(chunked, "\r\n\r\n") + 4; n < len(chunked); n++ {
		sent = append(sent, chunked[:n])
	}
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, 0, time.Minute)
		for _, text := range sent {
			conn, start := s.dial(t), time.Now()
			go func() { _, _ = io.WriteString(conn, "POST /v1/take HTTP/1.1\r\nHost: weir\r\n"+text) }()
			answer, _ := io.ReadAll(conn)
			if took := time.Since(start); took < readTimeout || took > 2*readTimeout {
				t.Errorf("the rest of %q was waited for %v, want about %v", text, took, readTimeout)
			}
			if want := `"status":408,"counted":"no","detail":"body did not arrive in time","field":"body"}`; !strings.Contains(string(answer), want) {
				t.Errorf("after %q: got %q, want %s", text, answer, want)
			}
		}
		s.signal()
		<-s.ended
	})
}

func TestHeadersAreServedUpToTheirBoundAndNoFurther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, 0, time.Minute)
		for size, want := range map[int]string{maxHeaderBytes: "200 OK", maxHeaderBytes + 1: "431 Request Header Fields Too Large"} {
			const begin, end = "GET /readyz HTTP/1.1\r\nHost: weir\r\nX: ", "\r\n\r\n"
			conn := s.dial(t)
			go func() { _, _ = io.WriteString(conn, begin+strings.Repeat("x", size-len(begin)-len(end))+end) }()
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			if response.Status != want {
				t.Errorf("%d bytes of headers: got %s, want %s", size, response.Status, want)
			}
			_ = conn.Close()
		}
		s.signal()
		<-s.ended
		time.Sleep(time.Second) // net/http gives a client half a second to read the refusal
	})
}

// Other purposes need files too.
func TestConnectionsLeaveFilesForTheRest(t *testing.T) {
	for _, c := range []struct {
		asked        int
		ports, files uint64
		want         int // 0 means an error
	}{
		{4096, 1, 1 << 20, 4096},
		{4096, 1, 4096 + 256, 4096},
		{4096, 1, 4096 + 255, 4095},
		{4096, 1, 1024, 768},
		{4096, 3, 1024, 256},
		{10, 1, 1024, 10},
		{10, 1, 257, 1},
		{10, 1, 256, 0},
		{10, 3, 258, 0},
		{10, 1, 3, 0},
		{math.MaxInt, 1, math.MaxUint64, math.MaxInt},
	} {
		if got, err := connectionsWithin(c.asked, c.ports, c.files); got != c.want || (err != nil) != (c.want == 0) {
			t.Errorf("%d connections at each of %d ports, %d files: got %d and %v, want %d", c.asked, c.ports, c.files, got, err, c.want)
		}
	}
}

// TestConnectionsAreBounded opens all connections that the server serves, all that it refuses with an answer, and one
// more.
func TestConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, 0, time.Minute)
		s.open.most = 3
		var served []net.Conn
		for range s.open.most {
			conn := s.dial(t)
			if got := askOver(conn); !strings.HasPrefix(got, "HTTP/1.1 200 OK") {
				t.Fatalf("a connection within the bound got %q", got)
			}
			served = append(served, conn)
		}
		for i := range spareConnections {
			conn := s.dial(t)
			defer conn.Close()
			if i > 0 { // the others are silent and keep their places
				continue
			}
			go func() { _, _ = io.WriteString(conn, "GET /readyz HTTP/1.1\r\nHost: weir\r\n\r\n") }()
			got, _ := io.ReadAll(conn)
			if !strings.HasPrefix(string(got), "HTTP/1.1 503 ") || !strings.Contains(string(got), "\r\nRetry-After: 1\r\n") || !strings.Contains(string(got), "too many connections") {
				t.Errorf("the first connection beyond the bound got %q, want 503 and its end", got)
			}
		}
		spare := ending(s.dial(t)) // in the place of the refused connection
		synctest.Wait()
		start := time.Now()
		wantEnd(t, "a connection beyond all places", ending(s.dial(t)))
		if took := time.Since(start); took > 0 {
			t.Errorf("a connection beyond all places was kept for %v", took)
		}
		wantEnd(t, "a connection without a place of its own that asked nothing", spare)
		if took := time.Since(start); took > headerTimeout {
			t.Errorf("a connection without a place of its own that asked nothing was kept for %v", took)
		}
		if got := askOver(served[0]); !strings.HasPrefix(got, "HTTP/1.1 200 OK") {
			t.Errorf("a connection within the bound got %q, while others were refused", got)
		}
		_ = served[0].Close()
		synctest.Wait()
		conn := s.dial(t)
		if got := askOver(conn); !strings.HasPrefix(got, "HTTP/1.1 200 OK") {
			t.Errorf("in the place of one that has ended a connection got %q", got)
		}
		s.signal()
		<-s.ended
		synctest.Wait()
		if got := s.open.count(); got != 0 {
			t.Errorf("after the end %d connections are counted as open, want 0", got)
		}
	})
}

func (s *served) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := s.listener.dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// askOver sends one request over an open connection and returns the answer.
func askOver(conn net.Conn) string {
	go func() { _, _ = io.WriteString(conn, "GET /readyz HTTP/1.1\r\nHost: weir\r\n\r\n") }()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err.Error()
	}
	body, err := io.ReadAll(response.Body)
	return response.Proto + " " + response.Status + " " + string(body) + fmt.Sprint(err)
}

// count returns the number of open connections.
func (c *connections) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all)
}

// holding is an engine whose Take signals its start and ends on demand.
type holding struct {
	weir.Engine
	entered, release chan bool
}

func newHolding() *holding {
	h := &holding{entered: make(chan bool), release: make(chan bool)}
	h.Engine = weir.Wrap(weir.NewMemory(weir.MemoryOptions{}), func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
		if c.Op == weir.OpTake {
			h.entered <- true
			<-h.release
		}
		return next(context.WithoutCancel(ctx), c)
	})
	return h
}

// memoryListener returns connections in memory.
type memoryListener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func newMemoryListener() *memoryListener {
	return &memoryListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *memoryListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *memoryListener) Addr() net.Addr { return &net.TCPAddr{} }
