package httplimit_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/httplimit/httplimittest"
)

// remaining returns how many of alice's 10 units are left after she sent requests.
func remaining(t *testing.T, rule httplimit.Rule, handler http.HandlerFunc, requests int) int64 {
	t.Helper()
	engine := httplimittest.NewClock(start).Engine()
	rule.Rule = mustRule(t, "tokens=10/h")
	h := wrap(t, httplimit.Options{Engine: engine, Rules: []httplimit.Rule{rule}}, handler)
	for range requests {
		func() {
			defer func() { _ = recover() }()
			get(h, alice)
		}()
	}
	d, err := engine.Peek(t.Context(), rule.Rule.For("192.0.2.1", 0))
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

// A request gets a refund in its own window, and one that outlives it refunds nothing to the next.
func TestALongRequestRefundsNothingToTheNextWindow(t *testing.T) {
	for later, left := range map[time.Duration]int64{0: 3, time.Hour: 4} {
		clock := httplimittest.NewClock(start.Truncate(time.Hour))
		engine, rule := clock.Engine(), mustRule(t, "tokens=fixed window 10/h")
		handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			clock.Advance(later)
			if _, err := engine.Record(r.Context(), rule.For("192.0.2.1", 6)); err != nil {
				t.Error(err)
			}
			if err := httplimit.Settle(r.Context(), "tokens", 1); err != nil {
				t.Error(err)
			}
		})
		eight := httplimit.Rule{Rule: rule, Cost: func(*http.Request) int64 { return 8 }, Settled: true}
		h := wrap(t, httplimit.Options{Engine: engine, Rules: []httplimit.Rule{eight}}, handler)
		wantStatus(t, "the long request", get(h, alice), 200)
		if d, err := engine.Peek(t.Context(), rule.For("192.0.2.1", 0)); err != nil || d.Remaining != left {
			t.Errorf("settled %v later: %d units are left (%v), want %d of 10 after 6 others", later, d.Remaining, err, left)
		}
	}
}

func TestCostsAreSettledAfterwards(t *testing.T) {
	four := func(*http.Request) int64 { return 4 }
	settle := func(costs ...int64) http.HandlerFunc {
		return func(_ http.ResponseWriter, r *http.Request) {
			for _, cost := range costs {
				if err := httplimit.Settle(r.Context(), "tokens", cost); err != nil {
					t.Error(err)
				}
			}
		}
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	bytes := func(_ *http.Request, a httplimit.Answer, taken int64) int64 { return a.Bytes }
	tests := []struct {
		name    string
		rule    httplimit.Rule
		handler http.HandlerFunc
		want    int64
	}{
		{"nothing stated", httplimit.Rule{Cost: four, Settled: true}, settle(), 6},
		{"less", httplimit.Rule{Cost: four, Settled: true}, settle(1), 9},
		{"more", httplimit.Rule{Cost: four, Settled: true}, settle(7), 3},
		{"more than fits", httplimit.Rule{Cost: four, Settled: true}, settle(12), 0},
		{"refund", httplimit.Rule{Cost: four, Settled: true}, settle(0), 10},
		{"the last statement holds", httplimit.Rule{Cost: four, Settled: true}, settle(9, 2), 8},
		{"stated before a panic", httplimit.Rule{Cost: four, Settled: true}, func(w http.ResponseWriter, r *http.Request) {
			settle(1)(w, r)
			panic("handler")
		}, 9},
		{"bytes sent", httplimit.Rule{After: bytes}, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("12345")) }, 5},
		{"a success, if failures count", httplimit.Rule{After: httplimit.Failures}, status(204), 10},
		{"a silent success", httplimit.Rule{After: httplimit.Failures}, func(http.ResponseWriter, *http.Request) {}, 10},
		{"a failure", httplimit.Rule{After: httplimit.Failures}, status(401), 9},
		{"early hints and a failure", httplimit.Rule{After: httplimit.Failures}, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(103)
			w.WriteHeader(500)
		}, 9},
		{"a panic", httplimit.Rule{After: httplimit.Failures}, func(http.ResponseWriter, *http.Request) { panic("handler") }, 9},
	}
	for _, tt := range tests {
		if got := remaining(t, tt.rule, tt.handler, 1); got != tt.want {
			t.Errorf("%s: %d of 10 remain, want %d", tt.name, got, tt.want)
		}
	}
	got := remaining(t, httplimit.Rule{}, func(_ http.ResponseWriter, r *http.Request) {
		if httplimit.Settle(r.Context(), "tokens", 0) == nil {
			t.Error("Settle takes the cost of a rule that is not Settled")
		}
	}, 1)
	if got != 9 {
		t.Errorf("a rule that is not settled: %d of 10 remain, want 9", got)
	}
}

func TestOuterChargesAreFoundByName(t *testing.T) {
	engine := httplimittest.NewClock(start).Engine()
	rules := map[string]*weir.Rule{"a": mustRule(t, "a=10/h"), "b": mustRule(t, "b=10/h")}
	handler := http.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		httplimit.Settle(r.Context(), "a", 3)
		httplimit.Settle(r.Context(), "b", 5)
	}))
	for _, rule := range rules {
		handler = wrap(t, httplimit.Options{Engine: engine, Rules: []httplimit.Rule{{Rule: rule, Settled: true}}}, handler)
	}
	get(handler, alice)
	for name, want := range map[string]int64{"a": 7, "b": 5} {
		if d, err := engine.Peek(t.Context(), rules[name].For("192.0.2.1", 0)); err != nil || d.Remaining != want {
			t.Errorf("%d of 10 remain under %s (%v), want %d", d.Remaining, name, err, want)
		}
	}
}

// While a handler holds the slot, other requests are refused, and its rate stays spent.
func TestSlotsAreHeldWhileTheHandlerRuns(t *testing.T) {
	endings := map[string]http.HandlerFunc{
		"returns": func(http.ResponseWriter, *http.Request) {},
		"panics":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	}
	for name, end := range endings {
		for _, rules := range [][]httplimit.Rule{
			{{Limit: "work=10/h and concurrency 1"}},
			{{Limit: "work=10/h"}, {Limit: "slots=concurrency 1 lease 1h"}},
		} {
			var h http.Handler
			inside := 0
			h = wrap(t, httplimit.Options{Engine: httplimittest.NewClock(start).Engine(), Rules: rules}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if inside++; inside > 1 {
					t.Fatal("two requests hold one slot")
				}
				second := get(h, alice)
				wantStatus(t, "a request while the slot is held", second, 429)
				wantHeader(t, "a request while the slot is held", second.Header(), "Retry-After", "1")
				inside--
				end(w, r)
			}))
			for i := range 10 {
				func() {
					defer func() { _ = recover() }()
					inside = 0
					w := get(h, alice)
					wantStatus(t, "request "+strconv.Itoa(i+1)+" when the handler "+name, w, 200)
				}()
			}
			inside = 0
			wantStatus(t, "request 11: the rate is spent when the handler "+name, get(h, alice), 429)
		}
	}
}

func TestASettlementLeavesSlotsAlone(t *testing.T) {
	engine, rule := httplimittest.NewClock(start).Engine(), mustRule(t, "work=10/h and concurrency 2")
	h := wrap(t, httplimit.Options{Engine: engine, Rules: []httplimit.Rule{{Rule: rule, Settled: true}}}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		httplimit.Settle(r.Context(), "work", 5)
	}))
	get(h, alice)
	for limit, want := range map[string]int64{"work=10/h": 5, "work=concurrency 2": 2} {
		if d, err := engine.Peek(t.Context(), mustRule(t, limit).For("192.0.2.1", 0)); err != nil || d.Remaining != want {
			t.Errorf("%d remain of %s (%v), want %d", d.Remaining, limit, err, want)
		}
	}
}

// A handler that outlives its lease does not release the slot of its successor.
func TestALateHandlerReleasesNoOthersSlot(t *testing.T) {
	clock := httplimittest.NewClock(start)
	inside, leave := make(chan string, 2), map[string]chan struct{}{"first": make(chan struct{}), "second": make(chan struct{})}
	h := wrap(t, httplimit.Options{Engine: clock.Engine(), Rules: []httplimit.Rule{{Limit: "client=concurrency 1 lease 1m"}}}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		name := r.Header.Get("Name")
		inside <- name
		<-leave[name]
	}))
	left := map[string]chan struct{}{}
	for _, name := range []string{"first", "second"} {
		done := make(chan struct{})
		left[name] = done
		go func() {
			defer close(done)
			if w := get(h, alice, "Name", name); w.Code != 200 {
				inside <- "no one: " + w.Body.String()
			}
		}()
		if got := <-inside; got != name {
			t.Fatalf("inside is %s, want the %s request", got, name)
		}
		if name == "first" {
			clock.Advance(2 * time.Minute) // its lease is over
		}
	}
	close(leave["first"])
	<-left["first"]
	wantStatus(t, "while the second handler runs", get(h, alice), 429)
	close(leave["second"])
	<-left["second"]
}

func TestSlotsAreReleasedAlthoughTheEngineFailsOnce(t *testing.T) {
	failed := false
	flaky := remote(httplimittest.NewClock(start).Engine(), func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
		if c.Op == weir.OpReturn && !failed {
			failed = true
			return weir.Answer{}, errors.New("connection lost")
		}
		return next(ctx, c)
	})
	h := wrap(t, httplimit.Options{Engine: flaky, Rules: []httplimit.Rule{{Limit: "client=concurrency 1"}}}, ok)
	wantStatus(t, "first", get(h, alice), 200)
	wantStatus(t, "second", get(h, alice), 200)
	if !failed {
		t.Error("the engine was not asked to release the slot")
	}
}

func TestSlotsAreReleasedAfterTheClientHasLeft(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	h := wrap(t, httplimit.Options{Rules: []httplimit.Rule{{Limit: "client=concurrency 1"}}}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { leave() }))
	answer(h, request("GET", alice).WithContext(ctx))
	wantStatus(t, "the next client", get(h, alice), 200)
}

// lost returns an engine whose answers to takes are lost.
func lost(engine weir.Engine) weir.Engine {
	return remote(engine, func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
		if c.Op == weir.OpTake {
			_, _ = next(ctx, c)
			return weir.Answer{}, errors.New("connection lost")
		}
		return next(ctx, c)
	})
}

func TestSlotsOfALostAnswerAreReleased(t *testing.T) {
	engine := weir.NewMemory(weir.MemoryOptions{})
	rules := []httplimit.Rule{{Limit: "client=concurrency 1"}}
	wantStatus(t, "lost answer", get(wrap(t, httplimit.Options{Engine: lost(engine), Rules: rules}, ok), alice), 503)
	next := wrap(t, httplimit.Options{Engine: engine, Rules: rules}, ok)
	eventually(t, "admission of the next request", func() bool { return get(next, alice).Code == 200 })
}

func TestAWriterKeepsItsAbilities(t *testing.T) {
	rules := []httplimit.Rule{{Limit: "client=concurrency 5", After: httplimit.Failures}}
	limited := func(next http.HandlerFunc) http.Handler {
		return wrap(t, httplimit.Options{Rules: rules}, next)
	}
	h := limited(func(w http.ResponseWriter, _ *http.Request) {
		if _, is := w.(http.Flusher); !is {
			t.Error("the writer of a recorder cannot flush")
		}
		if _, is := w.(http.Hijacker); is {
			t.Error("the writer of a recorder pretends that it can be hijacked")
		}
	})
	h.ServeHTTP(httptest.NewRecorder(), request("GET", alice))
	limited(func(w http.ResponseWriter, _ *http.Request) {
		if _, is := w.(http.Flusher); is {
			t.Error("the writer of a sink pretends that it can flush")
		}
		if err := http.NewResponseController(w).Flush(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("flushing a sink is %v, want ErrNotSupported", err)
		}
	}).ServeHTTP(&sink{http.Header{}}, request("GET", alice))
}
