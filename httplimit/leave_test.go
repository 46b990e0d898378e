package httplimit_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/httplimit"
	"github.com/weirflow/weir/layer"
)

// distant returns an engine that takes a trip to answer, and gives up with its context.
func distant(engine weir.Engine, trip time.Duration) weir.Engine {
	return remote(engine, func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
		if c.Op == weir.OpTake || c.Op == weir.OpPeek {
			select {
			case <-time.After(trip):
			case <-ctx.Done():
				return weir.Answer{}, ctx.Err()
			}
		}
		return next(ctx, c)
	})
}

// leaveAfter sends a request whose client leaves after a while.
func leaveAfter(t *testing.T, h http.Handler, stay time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stay)
	defer cancel()
	answer(h, request("GET", alice).WithContext(ctx))
}

var policies = []layer.Policy{layer.Deny, layer.Allow}

func TestARequestWhoseClientHangsUpIsDecided(t *testing.T) {
	for _, policy := range policies {
		synctest.Test(t, func(t *testing.T) {
			engine, reached, decided := weir.NewMemory(weir.MemoryOptions{}), 0, 0
			var log recordedLog
			h := wrap(t, httplimit.Options{Engine: distant(engine, 60*time.Millisecond), Guard: layer.GuardOptions{OnFailure: policy, Peers: 1, Deadline: time.Second}, Logger: log.logger(),
				Rules:   []httplimit.Rule{{Limit: "one=fixed window 1/h and concurrency 1"}},
				Observe: func(context.Context, layer.Observation) { decided++ },
			}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
			for range 20 {
				leaveAfter(t, h, 0)
				leaveAfter(t, h, 20*time.Millisecond)
			}
			if reached > 1 || decided != 40 || len(log.lines) > 0 {
				t.Errorf("policy %s: %d handlers ran under 1/h, %d of 40 requests were decided, logged %q", policy, reached, decided, log.lines)
			}
			wantStatus(t, "a patient client", get(h, alice), 429)
		})
	}
}

// The clients of a real server send a request and close their connections at once.
func TestConnectionsThatCloseAtOncePassNoLimit(t *testing.T) {
	var reached atomic.Int64
	server := serve(t, wrap(t, httplimit.Options{Engine: distant(weir.NewMemory(weir.MemoryOptions{}), time.Millisecond),
		Guard: layer.GuardOptions{OnFailure: layer.Allow, Deadline: 10 * time.Second}, Rules: []httplimit.Rule{{Limit: "client=fixed window 1/h"}},
	}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) })), false)
	for range 300 {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		_ = conn.Close()
	}
	server.Close() // after the requests
	if n := reached.Load(); n > 1 {
		t.Errorf("%d handlers ran under 1/h, want 1 at most", n)
	}
}

func TestAClientThatLeavesTheLineIsNotPassedOn(t *testing.T) {
	for _, policy := range policies {
		for _, limit := range []string{"token bucket 1/2s burst 1", "concurrency 1"} {
			for _, trip := range []time.Duration{0, 30 * time.Millisecond} {
				synctest.Test(t, func(t *testing.T) {
					var log recordedLog
					var now, most, reached, failures atomic.Int64
					h := wrap(t, httplimit.Options{Engine: distant(weir.NewMemory(weir.MemoryOptions{}), trip), Guard: layer.GuardOptions{OnFailure: policy, Peers: 1, Deadline: time.Second}, Wait: 30 * time.Second,
						Logger: log.logger(), Rules: []httplimit.Rule{{Limit: "client=" + limit}},
						Observe: func(_ context.Context, o layer.Observation) {
							if o.Err != nil {
								failures.Add(1)
							}
						},
					}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
						reached.Add(1)
						most.Store(max(most.Load(), now.Add(1)))
						time.Sleep(10 * time.Second)
						now.Add(-1)
					}))
					go get(h, alice)
					time.Sleep(time.Second)
					for range 10 {
						leaveAfter(t, h, 50*time.Millisecond)
					}
					synctest.Wait()
					if reached.Load() != 1 || most.Load() != 1 || failures.Load() != 0 || len(log.lines) > 0 {
						t.Errorf("%s, policy %s, %v away: %d handlers ran, %d at once, %d failures, logged %q", limit, policy, trip, reached.Load(), most.Load(), failures.Load(), log.lines)
					}
					wantStatus(t, "a patient client", get(h, alice), 200)
				})
			}
		}
	}
}

// The program holds the only slot without an identity. A client that never had one leaves.
func TestAClientThatLeavesTheLineReleasesNobodysSlot(t *testing.T) {
	for _, trip := range []time.Duration{0, 30 * time.Millisecond, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			engine, rule := weir.NewMemory(weir.MemoryOptions{}), mustRule(t, "slots=concurrency 1")
			h := wrap(t, httplimit.Options{Engine: distant(engine, trip), Rules: []httplimit.Rule{{Rule: rule, Key: httplimit.Everyone}}, Wait: 3 * time.Second}, ok)
			if d, err := engine.Take(t.Context(), rule.For("all", 1)); err != nil || !d.Allowed {
				t.Fatal(d, err)
			}
			for range 3 {
				leaveAfter(t, h, 50*time.Millisecond)
			}
			time.Sleep(time.Minute)
			if d, err := engine.Peek(t.Context(), rule.For("all", 1)); err != nil || d.Remaining != 0 {
				t.Errorf("%v away: %d slots are free (%v), want none", trip, d.Remaining, err)
			}
		})
	}
}

// The client leaves when the request has been admitted, but before the handler is called.
func TestTheSlotOfAWaiterThatLeavesReturns(t *testing.T) {
	engine, rule := weir.NewMemory(weir.MemoryOptions{}), mustRule(t, "work=10/h and concurrency 10")
	ctx, cancel := context.WithCancel(t.Context())
	h := wrap(t, httplimit.Options{Engine: engine, Rules: []httplimit.Rule{{Rule: rule, Key: httplimit.Everyone}}, Wait: time.Second,
		Observe: func(context.Context, layer.Observation) { cancel() },
	}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler was called for a client that has left") }))
	answer(h, request("GET", alice).WithContext(ctx))
	wantTaken(t, engine, rule, 1, 0)
}

// wantTaken checks how many of the 10 units of each of the two limits of a rule are taken.
func wantTaken(t *testing.T, engine weir.Engine, rule *weir.Rule, rates, slots int64) {
	t.Helper()
	for i, want := range []int64{rates, slots} {
		part, err := weir.NewRule(rule.Name(), rule.Limits()[i])
		if err != nil {
			t.Fatal(err)
		}
		if d, err := engine.Peek(t.Context(), part.For("all", 0)); err != nil || 10-d.Remaining != want {
			t.Errorf("%d units of %s are taken (%v), want %d", 10-d.Remaining, part, err, want)
		}
	}
}

// A plan that asks a store under the request's context does not know the answer when the client hangs up.
func TestAClientThatHangsUpDuringItsPlanIsNotPassedOn(t *testing.T) {
	failures := 0
	h := wrap(t, httplimit.Options{Guard: layer.GuardOptions{OnFailure: layer.Allow}, Rules: []httplimit.Rule{{Plan: func(*http.Request) *weir.Rule { return nil }}},
		Observe: func(context.Context, layer.Observation) { failures++ },
	}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Context().Err() != nil {
			t.Error("the handler was called for a client that has left")
		}
	}))
	leaveAfter(t, h, 0)
	get(h, alice)
	if failures != 1 {
		t.Errorf("%d failures were observed, want that of the client that stayed", failures)
	}
}

func TestTheLogCountsOnlyRequestsThatWereDecided(t *testing.T) {
	for name, o := range map[string]httplimit.Options{
		"a failing engine": {Guard: layer.GuardOptions{OnFailure: layer.Allow}, Engine: broken(weir.NewMemory(weir.MemoryOptions{}), errors.New("no route to host"))},
		"a dry run":        {DryRun: func(layer.ShadowDecision) {}},
	} {
		var log recordedLog
		o.Logger, o.Rules = log.logger(), []httplimit.Rule{{Limit: "key=deny all", Key: httplimit.Header("User")}}
		h := wrap(t, o, ok)
		for range 1100 {
			get(h, alice, "User", "x")
		}
		if got := log.count("no request so far had a key"); got != 0 {
			t.Errorf("%s: logged %q, though every request has a key", name, log.lines)
		}
	}
}
