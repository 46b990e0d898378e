package redislimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/httplimit/httplimittest"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/layer"
	"github.com/weirflow/weir/redislimit"
)

// Two web servers on one Redis admit as many requests as one server. A handler that has returned on one of them has
// released its slot for both.
func TestTwoWebServersShareALimit(t *testing.T) {
	server := redistest.Start(t)
	var handlers [2]http.Handler
	inside := 0
	for i := range handlers {
		engine, err := redislimit.Open("redis://"+server.Addr, redislimit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer engine.Close()
		limited, err := httplimit.New(httplimit.Options{
			Guard:  patientGuard,
			Engine: engine,
			Rules:  []httplimit.Rule{{Limit: "work=fixed window 6/1d and concurrency 1 lease 1m"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		handlers[i] = limited(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			inside++
			defer func() { inside-- }()
			if status := send(handlers[1-i]); inside == 1 && status != http.StatusTooManyRequests {
				t.Errorf("status %d on one server while the other holds the slot, want 429", status)
			}
		}))
	}
	admitted := 0
	for i := range 10 {
		if send(handlers[i%2]) == http.StatusOK {
			admitted++
		}
	}
	if admitted != 6 {
		t.Errorf("%d of 10 requests were admitted by turns, want 6", admitted)
	}
}

// A test that moves the clock of the engine waits for no real time: the layers that New adds go by that clock, too.
func TestAHandlerOnRedisIsTestedByAClockOfItsOwn(t *testing.T) {
	server := redistest.Start(t)
	clock := httplimittest.NewClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	engine, err := redislimit.Open("redis://"+server.Addr, redislimit.Options{Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	limited, err := httplimit.New(httplimit.Options{Guard: patientGuard, Engine: engine, Rules: []httplimit.Rule{{Limit: "hello=60/m"}}})
	if err != nil {
		t.Fatal(err)
	}
	handler := limited(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	clock.Advance(httplimittest.Admits(t, handler, r, 60))
	httplimittest.Admits(t, handler, r, 1)
	clock.Advance(time.Minute)
	httplimittest.Admits(t, handler, r, 60)
}

// A handler keeps its slot for as long as it runs, and not only for the length of the lease.
func TestAHandlerThatOutlivesItsLeaseKeepsItsSlot(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	engine, err := redislimit.Open("redis://"+server.Addr, redislimit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	limited, err := httplimit.New(httplimit.Options{Engine: engine, Guard: patientGuard, Rules: []httplimit.Rule{{Limit: "work=concurrency 1 lease 2s"}}})
	if err != nil {
		t.Fatal(err)
	}
	entered, leave := make(chan struct{}), make(chan struct{})
	slow := limited(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-leave
	}))
	quick := limited(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	done := make(chan int)
	go func() { done <- send(slow) }()
	<-entered
	for began := time.Now(); time.Since(began) < 5*time.Second; time.Sleep(10 * time.Millisecond) {
		if status := send(quick); status != http.StatusTooManyRequests {
			t.Fatalf("status %d while a handler holds the slot, want 429", status)
		}
	}
	close(leave)
	if status := <-done; status != http.StatusOK {
		t.Errorf("status %d of the slow handler", status)
	}
	if status := send(quick); status != http.StatusOK {
		t.Errorf("status %d after the slow handler has returned", status)
	}
}

// patientGuard lets no decision fail because the machine of the test is busy.
var patientGuard = layer.GuardOptions{Deadline: time.Minute}

func send(h http.Handler) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	return w.Code
}
