package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
	"github.com/weirflow/weir/internal/layertest"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

// startWaiting starts a server in virtual time whose engine decides at once.
func startWaiting(t *testing.T, grace time.Duration, rules ...string) *served {
	t.Helper()
	parsed, err := parseRules(rules)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	s := &served{
		server: serverOf(decide.Options{Engine: layertest.Around(weir.NewMemory(weir.MemoryOptions{})), Rules: parsed, Log: log, Wait: decide.WaitOptions{Longest: time.Hour}},
			&server{log: log, open: connections{most: defaultConnections}, grace: grace}),
		listener: newMemoryListener(),
		ended:    make(chan error, 1),
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.signal = cancel
	go func() { s.ended <- s.serve(ctx, s.listener) }()
	return s
}

// post writes a request to a connection.
func post(conn net.Conn, path, body string) {
	_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: weir\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

// answerOver reads an answer from a connection.
func answerOver(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	response, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("half an answer: %v", err)
	}
	return response.Status + " " + string(body)
}

// A wait may take longer than a request may otherwise take. The next request of the connection has the usual time.
func TestAWaitOutlivesTheTimeoutsOfOtherRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWaiting(t, time.Minute, "default=token bucket 1/20m burst 1")
		conn := s.dial(t)
		r := bufio.NewReader(conn)
		go post(conn, "/v1/take", `{"key":"a"}`)
		answerOver(t, r)
		start := time.Now()
		go post(conn, "/v1/wait", `{"key":"a","patience":3000}`)
		if got := answerOver(t, r); !strings.HasPrefix(got, `200 OK {"allowed":true,`) || time.Since(start) != 20*time.Minute {
			t.Errorf("got %s after %v, want a grant after 20m", got, time.Since(start))
		}
		start = time.Now()
		go func() {
			_, _ = io.WriteString(conn, "POST /v1/take HTTP/1.1\r\nHost: weir\r\nContent-Length: 15\r\n\r\n{")
		}()
		if got := answerOver(t, r); !strings.HasPrefix(got, "408 ") || time.Since(start) != readTimeout {
			t.Errorf("a slow body after the wait: got %s after %v, want 408 after %v", got, time.Since(start), readTimeout)
		}
		s.signal()
		<-s.ended
	})
}

func TestAClientThatHangsUpLeavesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWaiting(t, time.Minute, "default=token bucket 1/m burst 1")
		first, second, third := s.dial(t), s.dial(t), s.dial(t)
		post(first, "/v1/take", `{"key":"a"}`)
		answerOver(t, bufio.NewReader(first))
		for _, conn := range []net.Conn{first, second, third} {
			post(conn, "/v1/wait", `{"key":"a","patience":600}`)
			synctest.Wait()
		}
		start := time.Now()
		time.Sleep(20 * time.Second)
		_ = first.Close()
		if got := answerOver(t, bufio.NewReader(second)); !strings.HasPrefix(got, "200 OK {\"allowed\":true,") || time.Since(start) != time.Minute {
			t.Errorf("the next in line got %s after %v, want the place of the first, after 1m", got, time.Since(start))
		}
		_ = third.Close()
		synctest.Wait()
		s.signal()
		if err := <-s.ended; err != nil {
			t.Errorf("serve ended with %v, want nil", err)
		}
	})
}

// A stop does not wait for waiting callers: they get 503 at once, also during the drain.
func TestAStopAnswersWaitingCallersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startWaiting(t, time.Minute, "default=token bucket 1/h burst 1")
		s.drain = 10 * time.Second
		conn := s.dial(t)
		r := bufio.NewReader(conn)
		post(conn, "/v1/take", `{"key":"a"}`)
		answerOver(t, r)
		post(conn, "/v1/wait", `{"key":"a","patience":3600}`)
		start := time.Now()
		s.signal()
		got := answerOver(t, r)
		if !strings.HasPrefix(got, "503 ") || !strings.Contains(got, `"counted":"no"`) || !strings.Contains(got, "the daemon is stopping") || time.Since(start) != 0 {
			t.Errorf("got %s after %v, want 503, not counted, at once", got, time.Since(start))
		}
		if err := <-s.ended; err != nil || time.Since(start) > 11*time.Second {
			t.Errorf("serve ended with %v after %v, want nil after the drain", err, time.Since(start))
		}
	})
}

// waitingServer serves an engine over real sockets in this process, so that its goroutines can be counted.
func waitingServer(t *testing.T, engine weir.Engine, callers int, rules ...string) (url string, stop func() error) {
	t.Helper()
	parsed, err := parseRules(rules)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	s := serverOf(decide.Options{Engine: layertest.Around(engine), Rules: parsed, Log: log, Patience: patience, Wait: decide.WaitOptions{Callers: callers}},
		&server{log: log, open: connections{most: 2 * callers}, grace: patience})
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.serve(ctx, on) }()
	stopped := sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { _ = stopped() })
	return "http://" + on.Addr().String(), stopped
}

// onEngines runs a test on the memory engine and on a real Redis.
func onEngines(t *testing.T, test func(t *testing.T, engine weir.Engine)) {
	t.Run("memory", func(t *testing.T) { test(t, weir.NewMemory(weir.MemoryOptions{})) })
	t.Run("redis", func(t *testing.T) {
		engine, err := redislimit.Open("redis://"+redistest.Start(t).Addr+"?timeout=1m", redislimit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer engine.Close()
		test(t, engine)
	})
}

// Of 1,500 waiting clients a third goes away, a third is granted, and a stop ends the rest. No goroutine is left,
// and no unit is lost.
func TestWaitingClientsLeaveNoGoroutine(t *testing.T) {
	const third = 500
	onEngines(t, func(t *testing.T, engine weir.Engine) {
		rules := []string{"default=token bucket 1000/s burst 500", "never=concurrency 1 lease 10m"}
		url, stop := waitingServer(t, engine, 4*third, rules...)
		c := &waitingClient{url, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}}
		if status, text := c.ask(t.Context(), http.MethodPost, "/v1/reserve", `{"rule":"never","key":"a"}`); status != 200 || !strings.Contains(text, "token") {
			t.Fatalf("the slot: %d %s", status, text)
		}
		c.CloseIdleConnections()
		before := runtime.NumGoroutine()

		var all sync.WaitGroup
		var granted, left, stopped atomic.Int64
		gone, leave := context.WithCancel(t.Context())
		for range third {
			all.Go(func() {
				if _, text := c.ask(gone, http.MethodPost, "/v1/reserve", `{"rule":"never","key":"a","patience":60}`); strings.Contains(text, "context canceled") {
					left.Add(1)
				}
			})
			all.Go(func() {
				if status, text := c.ask(t.Context(), http.MethodPost, "/v1/reserve", `{"rule":"never","key":"a","patience":60}`); status == 503 && strings.Contains(text, `"counted":"no"`) {
					stopped.Add(1)
				} else {
					t.Errorf("a caller during the stop: %d %s", status, text)
				}
			})
			all.Go(func() {
				if status, text := c.ask(t.Context(), http.MethodPost, "/v1/wait", `{"key":"a","patience":60}`); status == 200 && strings.HasPrefix(text, `{"allowed":true`) {
					granted.Add(1)
				} else {
					t.Errorf("a caller with units: %d %s", status, text)
				}
			})
		}
		c.awaitStats(t, fmt.Sprintf(`"waiting":{"callers":%d,`, 2*third))
		leave()
		c.awaitStats(t, fmt.Sprintf(`"waiting":{"callers":%d,`, third))
		if err := stop(); err != nil {
			t.Errorf("serve ended with %v, want nil", err)
		}
		all.Wait()
		if granted.Load() != third || left.Load() != third || stopped.Load() != third {
			t.Errorf("%d granted, %d left, %d stopped, want %d each", granted.Load(), left.Load(), stopped.Load(), third)
		}
		c.CloseIdleConnections()
		const connection = 2 // goroutines of another connection that the client of Redis may have opened, and keeps
		awaitGoroutines(t, before+connection)
	})
}

// waitingClient asks one daemon.
type waitingClient struct {
	url string
	*http.Client
}

// ask returns the status and the body of an answer, or 0 and an error. It asks again on another connection if the daemon closed
// the first one because its header came too late, as a busy machine may cause. Such a request was not decided.
func (c *waitingClient) ask(ctx context.Context, method, path, body string) (int, string) {
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	answer, err := c.Do(r)
	if errors.Is(err, io.EOF) {
		return c.ask(ctx, method, path, body)
	}
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(text)
}

// awaitStats waits until the statistics hold a text.
func (c *waitingClient) awaitStats(t *testing.T, want string) {
	t.Helper()
	var got string
	for began := time.Now(); time.Since(began) < patience; time.Sleep(10 * time.Millisecond) { // between two requests
		if _, got = c.ask(t.Context(), http.MethodGet, "/v1/stats?top=0", ""); strings.Contains(got, want) {
			return
		}
	}
	t.Fatalf("the statistics are %s, want %s within %v", got, want, patience)
}

// awaitGoroutines waits until no more goroutines run than before.
func awaitGoroutines(t *testing.T, before int) {
	t.Helper()
	for began := time.Now(); runtime.NumGoroutine() > before; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > patience {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines run, %d before the waits: %s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// A client of another language holds a slot under a token: on memory and on Redis, where another daemon sees the slot.
func TestSlotsOverHTTPAreSharedAndEnd(t *testing.T) {
	t.Parallel()
	const lease, rule = 3 * time.Second, "jobs=concurrency 1 lease 3s"
	onEngines(t, func(t *testing.T, engine weir.Engine) {
		firstURL, _ := waitingServer(t, engine, 10, rule)
		secondURL, _ := waitingServer(t, engine, 10, rule)
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		first, second := &waitingClient{firstURL, client}, &waitingClient{secondURL, client}
		const ask = `{"rule":"jobs","key":"a","patience":30}`
		renewed := time.Now()
		_, held := first.ask(t.Context(), http.MethodPost, "/v1/reserve", ask)
		token := heldToken(t, held)
		for i := 0; i < 5; i++ { // longer than the lease
			time.Sleep(700 * time.Millisecond) // the lease is on the real clock
			now := time.Now()
			status, got := first.ask(t.Context(), http.MethodPost, "/v1/renew", `{"token":"`+token+`"}`)
			if status == 404 && time.Since(renewed) > lease { // a busy machine missed it
				now, i = time.Now(), -1
				status, got = first.ask(t.Context(), http.MethodPost, "/v1/reserve", ask)
			}
			if status != 200 {
				t.Fatalf("renew: %d %s", status, got)
			}
			token, renewed = heldToken(t, got), now
		}
		_, got := second.ask(t.Context(), http.MethodPost, "/v1/reserve", `{"rule":"jobs","key":"a"}`)
		if !strings.HasPrefix(got, `{"allowed":false`) && time.Since(renewed) < lease {
			t.Errorf("the slot is held, and another daemon answered %s", got)
		}
		if status, got := second.ask(t.Context(), http.MethodPost, "/v1/settle", `{"token":"`+token+`"}`); status != 404 {
			t.Errorf("a daemon with another secret settled the token: %d %s", status, got)
		}
		// The holder dies: its lease ends, and the next caller goes.
		status, got := second.ask(t.Context(), http.MethodPost, "/v1/reserve", ask)
		if token = heldToken(t, got); status != 200 {
			t.Errorf("after the lease: %d %s", status, got)
		}
		if status, got := second.ask(t.Context(), http.MethodPost, "/v1/settle", `{"token":"`+token+`"}`); status != 200 {
			t.Errorf("settle: %d %s", status, got)
		}
		if _, got := first.ask(t.Context(), http.MethodPost, "/v1/peek", `{"rule":"jobs","key":"a"}`); !strings.Contains(got, `"remaining":1,`) {
			t.Errorf("after the settlement: %s", got)
		}
	})
}

func heldToken(t *testing.T, answer string) string {
	t.Helper()
	_, token, found := strings.Cut(answer, `"token":"`)
	token, _, ended := strings.Cut(token, `"`)
	if !found || !ended {
		t.Fatalf("no token in %s", answer)
	}
	return token
}
