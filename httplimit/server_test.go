package httplimit_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit"
)

// serve starts a real server on loopback, on request with HTTP/2 over TLS.
func serve(t *testing.T, h http.Handler, http2 bool) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	if server.EnableHTTP2 = http2; http2 {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	return server
}

func fetch(t *testing.T, server *httptest.Server, method string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

func TestServersOfBothVersionsRefuse(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		server := serve(t, wrap(t, httplimit.Options{Rules: []httplimit.Rule{{Limit: "2/h"}}}, ok), http2)
		for range 2 {
			if response, body := fetch(t, server, "GET"); response.StatusCode != 200 || body != "ok" {
				t.Errorf("%s: admitted is %d %q, want 200 ok", response.Proto, response.StatusCode, body)
			}
		}
		response, body := fetch(t, server, "GET")
		if response.StatusCode != 429 || !strings.Contains(body, `"client"`) || response.Header.Get("Retry-After") != "1800" {
			t.Errorf("%s: refusal is %d, Retry-After %q, %s", response.Proto, response.StatusCode, response.Header.Get("Retry-After"), body)
		}
		response, body = fetch(t, server, "HEAD")
		if response.StatusCode != 429 || body != "" || response.Header.Get("Retry-After") != "1800" {
			t.Errorf("%s: refusal of HEAD is %d %q, Retry-After %q", response.Proto, response.StatusCode, body, response.Header.Get("Retry-After"))
		}
		if http2 != (response.ProtoMajor == 2) {
			t.Errorf("spoke %s", response.Proto)
		}
	}
}

// Of concurrent requests exactly as many pass as the limit admits.
func TestConcurrentClientsGetNoMoreThanTheLimit(t *testing.T) {
	server := serve(t, wrap(t, httplimit.Options{Rules: []httplimit.Rule{{Limit: "fixed window 25/1d and concurrency 100", Key: httplimit.Everyone}}}, ok), false)
	var admitted atomic.Int64
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for range 10 {
				if response, _ := fetch(t, server, "GET"); response.StatusCode == 200 {
					admitted.Add(1)
				}
			}
		})
	}
	clients.Wait()
	if got := admitted.Load(); got != 25 {
		t.Errorf("%d of 80 requests were admitted, want 25", got)
	}
}

// held returns the number of taken slots, of 10.
func held(t *testing.T, engine weir.Engine, rule *weir.Rule) int64 {
	t.Helper()
	d, err := engine.Peek(t.Context(), rule.For("all", 0))
	if err != nil {
		t.Fatal(err)
	}
	return 10 - d.Remaining
}

// eventually waits until a condition becomes true.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 10 s", what)
		}
	}
}

func slotServer(t *testing.T, http2 bool, handler http.HandlerFunc) (*httptest.Server, func() int64) {
	engine, rule := weir.NewMemory(weir.MemoryOptions{}), mustRule(t, "work=concurrency 10")
	h := wrap(t, httplimit.Options{Engine: engine, Rules: []httplimit.Rule{{Rule: rule, Key: httplimit.Everyone}}}, handler)
	return serve(t, h, http2), func() int64 { return held(t, engine, rule) }
}

func TestAStreamHoldsItsSlotAndIsFlushed(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		goOn := make(chan struct{})
		server, held := slotServer(t, http2, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: 1\n\n")
			w.(http.Flusher).Flush()
			<-goOn
			fmt.Fprint(w, "data: 2\n\n")
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Errorf("flush: %v", err)
			}
		})
		response, err := server.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(response.Body)
		if line, err := lines.ReadString('\n'); line != "data: 1\n" {
			t.Fatalf("first event %q, %v", line, err)
		}
		if got := held(); got != 1 {
			t.Errorf("%s: %d slots are held during the stream, want 1", response.Proto, got)
		}
		close(goOn)
		if rest, err := io.ReadAll(lines); string(rest) != "\ndata: 2\n\n" {
			t.Errorf("rest %q, %v", rest, err)
		}
		response.Body.Close()
		eventually(t, "release of the stream's slot", func() bool { return held() == 0 })
	}
}

// upgrade opens a connection and switches protocols on it, like a WebSocket.
func upgrade(t *testing.T, server *httptest.Server) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("upgrade: %v, %v", response, err)
	}
	return conn, reader
}

// The handler returns at once, and the connection stays open.
func TestAHijackedConnectionHoldsItsSlotUntilItIsClosed(t *testing.T) {
	ways := map[string]func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error){
		"by type": func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) { return w.(http.Hijacker).Hijack() },
		"by controller": func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
			return http.NewResponseController(w).Hijack()
		},
	}
	for name, hijack := range ways {
		var returned atomic.Bool
		server, held := slotServer(t, false, func(w http.ResponseWriter, _ *http.Request) {
			defer returned.Store(true)
			conn, buffer, err := hijack(w)
			if err != nil {
				t.Errorf("%s: hijack: %v", name, err)
				return
			}
			fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, buffer)
			}()
		})
		conn, reader := upgrade(t, server)
		for i := range 3 {
			fmt.Fprintf(conn, "message %d\n", i)
			if line, err := reader.ReadString('\n'); line != fmt.Sprintf("message %d\n", i) {
				t.Fatalf("%s: echo %q, %v", name, line, err)
			}
		}
		eventually(t, "return of the handler", returned.Load)
		if got := held(); got != 1 {
			t.Errorf("%s: %d slots are held by the open connection, want 1", name, got)
		}
		conn.Close()
		eventually(t, "release of the connection's slot", func() bool { return held() == 0 })
	}
}

func TestAPanickingHandlerReleasesItsSlot(t *testing.T) {
	server, held := slotServer(t, false, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if _, err := http.Get(server.URL); err == nil {
		t.Error("a handler that panics answered")
	}
	eventually(t, "release of the slot", func() bool { return held() == 0 })
}

// The server's own copying is kept, and the bytes are counted.
func TestReaderFromIsKept(t *testing.T) {
	var counted atomic.Int64
	h := wrap(t, httplimit.Options{Rules: []httplimit.Rule{{Limit: "100/s", After: func(_ *http.Request, a httplimit.Answer, taken int64) int64 {
		counted.Store(a.Bytes)
		return taken
	}}}}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, is := w.(io.ReaderFrom); !is {
			t.Error("the writer is no io.ReaderFrom")
		}
		http.ServeContent(w, r, "x", time.Time{}, strings.NewReader(strings.Repeat("x", 100_000)))
	}))
	if _, body := fetch(t, serve(t, h, false), "GET"); len(body) != 100_000 {
		t.Errorf("got %d bytes, want 100000", len(body))
	}
	eventually(t, "settlement of 100000 bytes", func() bool { return counted.Load() == 100_000 })
}

// A middleware outside this one sees the values that the mux has set in its request.
func TestPlainLimitsPassTheRequestItselfOn(t *testing.T) {
	var passed *http.Request
	h := wrap(t, httplimit.Options{Rules: []httplimit.Rule{{Limit: "100/s"}}}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { passed = r }))
	r := request("GET", alice)
	if answer(h, r); passed != r {
		t.Error("the handler got another *http.Request")
	}
}
