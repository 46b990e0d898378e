package layer_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/layer"
	"github.com/weirflow/weir/limittest"
	"github.com/weirflow/weir/pace"
)

// denyUntil has refusals repeated in process.
func denyUntil(e weir.Engine) (*layer.Denier, error) { return layer.DenyUntil(e, layer.DenyOptions{}) }

func denying(t testing.TB, e weir.Engine) *layer.Denier {
	t.Helper()
	d, err := denyUntil(e)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The suite moves a clock of the engine that the layer does not see, so refusals are forgotten by a return of another key
// in the same, only place.
func TestAnEngineBelowADenyUntilPassesTheSuite(t *testing.T) {
	limittest.Run(t, func(clock func() int64) weir.Engine {
		memory := weir.NewMemory(weir.MemoryOptions{Clock: clock})
		r := &remote{memory: memory}
		r.Engine = weir.Kit.EngineOf(r.do, memory.Check)
		d, err := layer.DenyUntil(r, layer.DenyOptions{MaxKeys: 1})
		if err != nil {
			t.Fatal(err)
		}
		other := mustRule(t, "other=1/1s").For("k", 0)
		return weir.Wrap(d, func(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
			_, _ = d.Return(context.Background(), other)
			return next(ctx, call)
		})
	})
}

func TestARefusedCostIsRefusedHereUntilItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=10/1s")
		d := denying(t, r)
		ask := func(cost int64, wantAllowed bool, wantRetry time.Duration, wantCalls int64) {
			t.Helper()
			before := r.calls.Load()
			got, err := d.Take(t.Context(), rule.For("k", cost))
			if err != nil || got.Allowed != wantAllowed || got.RetryAfter != wantRetry || r.calls.Load()-before != wantCalls {
				t.Errorf("cost %d: got %+v, %v and %d calls; want %v, retry after %v and %d calls", cost, got, err, r.calls.Load()-before, wantAllowed, wantRetry, wantCalls)
			}
		}
		ask(10, true, 0, 1)
		ask(3, false, 300*time.Millisecond, 1)
		time.Sleep(100 * time.Millisecond)
		ask(3, false, 200*time.Millisecond, 0)
		ask(5, false, 200*time.Millisecond, 0) // a lower bound
		ask(11, false, weir.Never, 0)
		ask(1, true, 0, 1)
		ask(3, false, 300*time.Millisecond, 1) // one was taken meanwhile
		ask(2, false, 200*time.Millisecond, 1) // sooner than 3
		time.Sleep(200*time.Millisecond - time.Nanosecond)
		ask(3, false, time.Nanosecond, 0)
		time.Sleep(time.Nanosecond)
		ask(3, false, 100*time.Millisecond, 1)
		time.Sleep(100 * time.Millisecond)
		ask(3, true, 0, 1)
	})
}

// A booking takes units, so that a refusal from before tells too early a time: in whatever call it is made.
func TestABookingForgetsARefusalAloneAndAmongOtherCalls(t *testing.T) {
	for name, book := range map[string]func(*layer.Denier, weir.Call) error{
		"alone": func(d *layer.Denier, c weir.Call) error { _, err := d.Do(t.Context(), c); return err },
		"among others": func(d *layer.Denier, c weir.Call) error {
			return d.Each(t.Context(), []weir.Call{c}, make([]weir.Result, 1))
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, rule := newRemote(), mustRule(t, "r=10/1s")
			d := denying(t, r)
			takes(t, d, 10, rule, "k")
			takes(t, d, 5, rule, "k")
			if err := book(d, weir.Call{Op: weir.OpReserveAhead, Longest: time.Second, Requests: []weir.Request{rule.For("k", 1)}}); err != nil {
				t.Fatal(err)
			}
			if got, err := d.Take(t.Context(), rule.For("k", 5)); err != nil || got.RetryAfter != 600*time.Millisecond {
				t.Errorf("%s: got %+v, %v, want to retry after 600ms", name, got, err)
			}
		})
	}
}

func TestARefusalIsRememberedForASecondAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=fixed window 1/1d")
		d := denying(t, r)
		takes(t, d, 1, rule, "k")
		before := r.calls.Load()
		for range 3000 {
			takes(t, d, 1, rule, "k")
			time.Sleep(time.Millisecond)
		}
		if got := r.calls.Load() - before; got != 3 {
			t.Errorf("a client that hammers for 3 s costs %d calls, want 3", got)
		}
		if got := d.Refused(); got != 2997 {
			t.Errorf("%d were refused here, want 2997", got)
		}
	})
}

// What comes back through this process is there at once, also while a refusal is on its way.
func TestUnitsThatComeBackHereAreThereAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=fixed window 2/1d")
		d := denying(t, r)
		q := rule.For("k", 1)
		held, err := d.Reserve(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		takes(t, d, 2, rule, "k")
		for name, comesBack := range map[string]func() error{
			"return": func() error { _, err := d.Return(t.Context(), q); return err },
			"each": func() error {
				return d.Each(t.Context(), enginekit.Calls(weir.OpReturn, q), make([]weir.Result, 1))
			},
			"reset":  func() error { defer takes(t, r.memory, 1, rule, "k"); return d.Reset(t.Context(), q) },
			"cancel": func() error { return held.Cancel(t.Context()) },
		} {
			if got := takes(t, d, 1, rule, "k"); got != 0 {
				t.Fatalf("%s: %d admitted before, want none", name, got)
			}
			if err := comesBack(); err != nil {
				t.Fatal(err)
			}
			if got := takes(t, d, 2, rule, "k"); got != 1 {
				t.Errorf("%s: %d admitted after, want 1", name, got)
			}
		}
	})
}

// The units come back while the engine's refusal is on its way here.
func TestARefusalFromBeforeAReturnIsNotRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=fixed window 2/1d")
		slowly := weir.Kit.EngineOf(func(ctx context.Context, call weir.Call) (weir.Answer, error) {
			a, err := r.Do(ctx, call)
			if call.Op == weir.OpTake {
				time.Sleep(10 * time.Millisecond)
			}
			return a, err
		}, r.Check)
		d := denying(t, slowly)
		takes(t, d, 2, rule, "k")
		for _, requests := range [][]weir.Request{{rule.For("k", 1)}, {rule.For("k", 1), rule.For("l", 1)}} {
			go func() { _, _ = d.Take(t.Context(), requests...) }()
			synctest.Wait()
			if _, err := d.Return(t.Context(), rule.For("k", 1)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
			if got := takes(t, d, 1, rule, "k"); got != 1 {
				t.Errorf("%d requests: %d admitted after the return, want 1", len(requests), got)
			}
		}
	})
}

func TestTheEngineDecidesWhatADenyUntilCannot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote()
		d := denying(t, r)
		counts := func(what string, want int64, ask func()) {
			t.Helper()
			ask()
			before := r.calls.Load()
			ask()
			if got := r.calls.Load() - before; got != want {
				t.Errorf("%s: the second refusal takes %d calls, want %d", what, got, want)
			}
		}
		for text, want := range map[string]int64{
			"concurrency 1 lease 1h": 1, "sliding log 1/1h count denied": 1, "1/1h and concurrency 5": 1,
			"fixed window 1/1h": 0, "leaky bucket 1/1h": 0, "deny all": 0,
		} {
			rule := mustRule(t, "r "+text+"="+text)
			takes(t, d, 1, rule, "k")
			counts(text, want, func() { takes(t, d, 1, rule, "k") })
		}
		plan, other := mustRule(t, "p=1/1h"), mustRule(t, "p=2/1h")
		takes(t, d, 2, plan, "k")
		counts("another plan", 0, func() { takes(t, d, 1, mustRule(t, "p=1/1h"), "k") })
		takes(t, d, 1, other, "k")
		counts("a call of two rules, one of them refused", 0, func() {
			got, err := d.Take(t.Context(), mustRule(t, "free=unlimited").For("k", 1), plan.For("k", 1))
			if err != nil || got.Allowed || got.Rule != "p" {
				t.Errorf("got %+v and %v, want it refused by p", got, err)
			}
		})
		counts("the same key twice", 1, func() { _, _ = d.Take(t.Context(), other.For("l", 2), other.For("l", 1)) })
		if _, err := d.Take(t.Context(), plan.For("k", 1), (*weir.Rule)(nil).For("k", 1)); !errors.Is(err, weir.ErrRequest) {
			t.Errorf("a call without a rule: got %v, want a RequestError", err)
		}
	})
}

func TestAWaitingCallerAsksTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=fixed window 1/1h")
		d := denying(t, r)
		takes(t, d, 2, rule, "k")
		if _, err := r.memory.Return(t.Context(), rule.For("k", 1)); err != nil { // in another process
			t.Fatal(err)
		}
		q, err := pace.NewQueue(d, pace.QueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := q.Wait(t.Context(), rule.For("k", 1)); err != nil || time.Since(began) != 0 {
			t.Errorf("got %v after %v, want a turn at once", err, time.Since(began))
		}
	})
}

func BenchmarkDenied(b *testing.B) {
	rule, memory := mustRule(b, "r=fixed window 1/1d"), weir.NewMemory(weir.MemoryOptions{})
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = key(i)
	}
	d := denying(b, weir.Kit.EngineOf(memory.Do, memory.Check))
	denied := func(name string, ask func(key string)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					ask(keys[i%len(keys)])
				}
			})
		})
	}
	ctx := context.Background()
	denied("memory", func(key string) { _, _ = memory.Take(ctx, rule.For(key, 1)) })
	denied("deny until", func(key string) { _, _ = d.Take(ctx, rule.For(key, 1)) })
}
