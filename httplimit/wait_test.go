package httplimit_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/layer"
)

// arrival is one request of many at the same time.
type arrival struct {
	status int
	second float64 // when it was answered
	retry  string
}

// arrive sends n requests one after the other, before time passes, and returns their answers in order of arrival.
func arrive(t *testing.T, h http.Handler, n int) []arrival {
	t.Helper()
	began, answers := time.Now(), make([]arrival, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			w := get(h, alice)
			answers[i] = arrival{w.Code, time.Since(began).Seconds(), w.Header().Get("Retry-After")}
		})
		synctest.Wait()
	}
	group.Wait()
	return answers
}

func TestRefusedRequestsWaitTheirTurnUpToTheBound(t *testing.T) {
	for _, text := range []string{"token bucket 1/s burst 1", "fixed window 1/1s", "rate gate 1/s", "client=1/s and 100/h"} {
		synctest.Test(t, func(t *testing.T) {
			h := wrap(t, httplimit.Options{Wait: 2500 * time.Millisecond, Rules: []httplimit.Rule{{Limit: text}}}, ok)
			for i, got := range arrive(t, h, 5) {
				want := arrival{200, float64(i), ""}
				switch {
				case i >= 3 && text != "fixed window 1/1s" && text != "rate gate 1/s": // what is ahead tells that it is too late, and for how long
					want = arrival{429, 0, "3"}
				case i >= 3: // refused when those before it have gone, and the engine names another second
					want = arrival{429, 2, "1"}
				}
				if got != want {
					t.Errorf("%s: request %d got %+v, want %+v", text, i+1, got, want)
				}
			}
		})
	}
}

func TestAWaitThatCannotSucceedIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := wrap(t, httplimit.Options{Wait: time.Minute, Rules: []httplimit.Rule{{Limit: "client=token bucket 1/h burst 1"}}}, ok)
		for i, got := range arrive(t, h, 3) {
			want := arrival{429, 0, "3600"}
			if i == 0 {
				want = arrival{200, 0, ""}
			}
			if got != want {
				t.Errorf("request %d got %+v, want %+v", i+1, got, want)
			}
		}
	})
}

// A small request that could be admitted at once does not overtake a large one that waits.
func TestALaterRequestDoesNotOvertakeWaitingOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		h := wrap(t, httplimit.Options{Wait: time.Minute, Rules: []httplimit.Rule{{
			Limit: "token bucket 1/s burst 3",
			Cost:  func(r *http.Request) int64 { return int64(len(r.Header.Get("Cost"))) },
		}}}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { order = append(order, r.Header.Get("Name")) }))
		get(h, alice, "Name", "first", "Cost", "iii")
		var group sync.WaitGroup
		group.Go(func() { get(h, alice, "Name", "large", "Cost", "iii") })
		synctest.Wait()
		time.Sleep(1500 * time.Millisecond) // there is a unit again
		get(h, alice, "Name", "small", "Cost", "i")
		group.Wait()
		for i, want := range []string{"first", "large", "small"} {
			if len(order) != 3 || order[i] != want {
				t.Fatalf("the requests went in the order %v", order)
			}
		}
	})
}

func TestARequestWaitsForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := wrap(t, httplimit.Options{Wait: 5 * time.Second, Rules: []httplimit.Rule{{Limit: "work=100/s and concurrency 1"}}},
			http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(2 * time.Second) }))
		for i, got := range arrive(t, h, 4) {
			want := arrival{200, float64(2 * (i + 1)), ""}
			if i == 3 {
				want = arrival{429, 5, "1"}
			}
			if got != want {
				t.Errorf("request %d got %+v, want %+v", i+1, got, want)
			}
		}
		if w := get(h, alice); w.Code != 200 {
			t.Errorf("after all: %d, want 200: every slot is released", w.Code)
		}
	})
}

func TestAClientThatLeavesWhileItWaitsTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reached := 0
		h := wrap(t, httplimit.Options{Wait: time.Minute, Rules: []httplimit.Rule{{Limit: "client=token bucket 1/s burst 1"}}},
			http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
		get(h, alice)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		began := time.Now()
		answer(h, request("GET", alice).WithContext(ctx))
		if w := get(h, alice); w.Code != 200 || time.Since(began) > time.Second || reached != 2 {
			t.Errorf("the next request: %d after %v, handler reached %d times, want 200 within a second and 2", w.Code, time.Since(began), reached)
		}
	})
}

func TestWaitingFollowsThePolicyForAFailingEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, engine := range []weir.Engine{
			broken(weir.NewMemory(weir.MemoryOptions{}), context.Canceled), hanging(weir.NewMemory(weir.MemoryOptions{})),
		} {
			h := wrap(t, httplimit.Options{Engine: engine, Wait: time.Second, Rules: []httplimit.Rule{{Limit: "client=1/s"}}}, ok)
			wantStatus(t, "a failing engine", get(h, alice), 503)
		}
		dry := wrap(t, httplimit.Options{Wait: time.Minute, DryRun: func(layer.ShadowDecision) {}, Rules: []httplimit.Rule{{Limit: "client=1/h"}}}, ok)
		for i, got := range arrive(t, dry, 3) {
			if got.status != 200 || got.second != 0 {
				t.Errorf("dry run: request %d got %+v, want 200 at once", i+1, got)
			}
		}
		time.Sleep(time.Second) // the decisions aside end
	})
}

// A request that has waited gets its refund in the window in which it was admitted, under every limit, with slots and without.
func TestARequestThatWaitedIsSettledWhereItWasAdmitted(t *testing.T) {
	for _, limit := range []string{
		"tokens=fixed window 10/10s", "tokens=sliding log 10/10s", "tokens=rate gate 10/10s", "tokens=cycle 10/10s", "tokens=10/10s",
		"tokens=leaky bucket 1/s queue 9", "tokens=fixed window 10/10s and concurrency 20",
	} {
		synctest.Test(t, func(t *testing.T) {
			engine, rule := weir.NewMemory(weir.MemoryOptions{}), mustRule(t, limit)
			units := weir.Kit.Spent(rule)
			eight := httplimit.Rule{Rule: rule, Cost: func(*http.Request) int64 { return 8 }, Settled: true}
			h := wrap(t, httplimit.Options{Engine: engine, Wait: time.Minute, Rules: []httplimit.Rule{eight}}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if err := httplimit.Settle(r.Context(), "tokens", 1); err != nil {
					t.Error(err)
				}
			}))
			if d, err := engine.Take(t.Context(), units.For("192.0.2.1", 10)); err != nil || !d.Allowed {
				t.Fatalf("%s: got %+v, %v", limit, d, err)
			}
			began := time.Now()
			wantStatus(t, limit, get(h, alice), 200)
			if time.Since(began) < 7*time.Second {
				t.Errorf("%s: the request waited for %v only", limit, time.Since(began))
			}
			before, err := engine.Peek(t.Context(), units.For("192.0.2.1", 0))
			if err != nil || before.Remaining < 7 {
				t.Errorf("%s: %d of 10 units are left after 8 were settled at 1 (%v), want 7 at least", limit, before.Remaining, err)
			}
		})
	}
}
