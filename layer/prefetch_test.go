package layer_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
	"github.com/weirflow/weir/limittest"
)

// prefetchOver has hot keys decided in process, and gives up on the engine after 15 ms.
func prefetchOver(redis weir.Engine) (*layer.Prefetched, error) {
	guard, err := layer.Guard(redis, layer.GuardOptions{})
	if err != nil {
		return nil, err
	}
	return layer.Prefetch(guard, layer.PrefetchOptions{})
}

func prefetched(t testing.TB, e weir.Engine) *layer.Prefetched {
	t.Helper()
	l, err := layer.Prefetch(e, layer.PrefetchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// The suite moves a clock of the engine that the layer does not see, so blocks last for a nanosecond.
func TestAnEngineBelowAPrefetchPassesTheSuite(t *testing.T) {
	limittest.Run(t, func(clock func() int64) weir.Engine {
		memory := weir.NewMemory(weir.MemoryOptions{Clock: clock})
		l, err := layer.Prefetch(weir.Kit.EngineOf(memory.Do, memory.Check), layer.PrefetchOptions{MaxAge: 1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Close)
		return l
	})
}

func TestAHotKeyIsDecidedHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=1000000/1s burst 100000")
		l := prefetched(t, r)
		const n = 50_000
		for range n {
			if takes(t, l, 1, rule, "k") != 1 {
				t.Fatal("a take within the limit was refused")
			}
			time.Sleep(20 * time.Microsecond)
		}
		if calls := r.calls.Load(); calls > 30 {
			t.Errorf("%d takes cost %d calls of the engine, want a few", n, calls)
		}
		s := l.Stats()
		if s.Here+s.Asked != n || s.Out > 10_000 || s.Keys != 1 {
			t.Errorf("got %+v, want %d takes and at most a tenth of the capacity out", s, n)
		}
		l.Close()
	})
}

func TestAStockLastsWhileTheEngineIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=1000000/1s burst 100000")
		r.punctual = true
		l, err := prefetchOver(r)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		for range 2000 {
			takes(t, l, 1, rule, "k")
			time.Sleep(20 * time.Microsecond)
		}
		thaw := r.hangs()
		defer thaw()
		began := time.Now()
		if l.Stats().Out < 2 || takes(t, l, 1, rule, "k") != 1 || time.Since(began) != 0 {
			t.Errorf("a unit of the stock of %d took %v, want it at once while the engine hangs", l.Stats().Out, time.Since(began))
		}
	})
}

func TestNothingIsTakenAheadForAColdKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=1000/1h")
		l := prefetched(t, r)
		for range 10 {
			takes(t, l, 1, rule, "k")
			time.Sleep(2 * time.Second)
		}
		if got := remaining(t, r.memory, rule, "k"); got != 995 {
			t.Errorf("the engine has %d left, want the takes alone to be counted", got)
		}
		if s := l.Stats(); s.Out != 0 || s.Here != 0 || s.Keys != 0 {
			t.Errorf("got %+v, want nothing taken ahead, and the key forgotten", s)
		}
		l.Close()
	})
}

// Every unit is somewhere: used, in the stock or at the engine.
func TestNoUnitIsLostOrMintedWithoutTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=fixed window 1000/366d")
		l, other := prefetched(t, r), prefetched(t, r)
		used := int64(0)
		for i := range 400 {
			l := []*layer.Prefetched{l, other}[i%2]
			d, err := l.Take(t.Context(), rule.For("k", int64(i%7)))
			if err != nil {
				t.Fatal(err)
			}
			if d.Allowed {
				used += int64(i % 7)
			}
			if at, out := remaining(t, r.memory, rule, "k"), l.Stats().Out; out > 100 || at < 0 {
				t.Fatalf("%d are taken ahead, and %d left", out, at)
			}
			if got, want := remaining(t, r.memory, rule, "k"), 1000-used-l.Stats().Out-other.Stats().Out; i%2 == 0 && got > 1000-used {
				t.Fatalf("take %d: the engine has %d left, want at most %d", i, got, want)
			}
		}
		time.Sleep(3 * time.Second)
		if got := remaining(t, r.memory, rule, "k"); got != 1000-used {
			t.Errorf("the engine has %d left, want 1000 less the %d used: idle stocks go back", got, used)
		}
		l.Close()
		other.Close()
	})
}

func TestACostAboveTheStockIsAskedForTheDifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=fixed window 100/366d")
		l := prefetched(t, r)
		takes(t, l, 5, rule, "k") // the fourth takes two ahead
		if out := l.Stats().Out; out < 1 {
			t.Fatalf("%d are taken ahead, want some", out)
		}
		out, at := l.Stats().Out, remaining(t, r.memory, rule, "k")
		d, err := l.Take(t.Context(), rule.For("k", at+out+1))
		if err != nil || d.Allowed || l.Stats().Out != out {
			t.Errorf("a cost of one too many: got %+v, %v and %d taken ahead, want a refusal that keeps the %d", d, err, l.Stats().Out, out)
		}
		d, err = l.Take(t.Context(), rule.For("k", at+out))
		if err != nil || !d.Allowed || l.Stats().Out != 0 || remaining(t, r.memory, rule, "k") != 0 {
			t.Errorf("a cost of all: got %+v and %v, want it admitted, and nothing left anywhere", d, err)
		}
		l.Close()
	})
}

// Units of a window that has ended are neither used nor given back.
func TestAStockEndsWithItsWindow(t *testing.T) {
	for _, text := range []string{"fixed window 1000/1s", "sliding window 1000/1s", "cycle 1000/1s origin 500ms"} {
		synctest.Test(t, func(t *testing.T) {
			r, rule := newRemote(), mustRule(t, "r="+text)
			l := prefetched(t, r)
			time.Sleep(900 * time.Millisecond)
			if rule.String() == "r=cycle 1000/s origin 500ms" {
				time.Sleep(500 * time.Millisecond)
			}
			takes(t, l, 25, rule, "k")
			if out := l.Stats().Out; out < 10 {
				t.Fatalf("%s: %d are taken ahead, want some", text, out)
			}
			time.Sleep(100 * time.Millisecond)
			before := r.calls.Load()
			takes(t, l, 1, rule, "k")
			if r.calls.Load() == before {
				t.Errorf("%s: a take in the next window was decided from the stock of the last one", text)
			}
			time.Sleep(10 * time.Millisecond)
			if s := l.Stats(); s.Returned != 0 || s.Lost == 0 {
				t.Errorf("%s: got %+v, want nothing given back into another window", text, s)
			}
			l.Close()
		})
	}
}

func TestOnlyWhatStillCountsGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, slow, fast := newRemote(), mustRule(t, "slow=1000/1h"), mustRule(t, "fast=1000/1s")
		l := prefetched(t, r)
		takes(t, l, 25, slow, "k")
		takes(t, l, 25, fast, "k")
		if out := l.Stats().Out; out < 20 {
			t.Fatalf("%d are taken ahead, want some of each", out)
		}
		time.Sleep(2 * time.Second)
		s := l.Stats()
		if got := remaining(t, r.memory, slow, "k"); got < 974 || got > 975 {
			t.Errorf("the slow key has %d left, want 974 or 975: one unit may have been refilled", got)
		}
		if s.Out != 0 || s.Returned < 11 || s.Lost < 12 {
			t.Errorf("got %+v, want the units of the slow key given back and those of the fast one not", s)
		}
		l.Close()
	})
}

func TestCostsKnownLaterSettleThroughTheStock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=fixed window 1000/366d")
		l := prefetched(t, r)
		takes(t, l, 60, rule, "k")
		for actual, want := range map[int64]int64{2: 2, 9: 9, 0: 0} {
			before := remaining(t, l, rule, "k")
			held, err := l.Reserve(t.Context(), rule.For("k", 5))
			if err != nil || !held.Decision.Allowed {
				t.Fatalf("got %v, want a reservation", err)
			}
			if err := held.Settle(t.Context(), actual); err != nil {
				t.Error(err)
			}
			if got := before - remaining(t, l, rule, "k"); got != want {
				t.Errorf("work of %d counts %d", actual, got)
			}
		}
		l.Close()
	})
}

func TestTheEngineDecidesWhatCannotBeTakenAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRemote()
		l := prefetched(t, r)
		for _, text := range []string{"rate gate 100/1h", "sliding log 100/1h", "concurrency 100", "leaky bucket 100/1h queue 99", "unlimited", "deny all", "19/1h", "100/1h and fixed window 100/1h"} {
			rule, before := mustRule(t, "r "+text+"="+text), r.calls.Load()
			takes(t, l, 20, rule, "k")
			if got := r.calls.Load() - before; got != 20 {
				t.Errorf("%s: 20 takes cost %d calls, want 20", text, got)
			}
		}
		two, before := mustRule(t, "two=100/1h"), r.calls.Load()
		for range 10 {
			if _, err := l.Take(t.Context(), two.For("a", 1), two.For("b", 1)); err != nil {
				t.Fatal(err)
			}
		}
		if got := r.calls.Load() - before; got != 10 {
			t.Errorf("10 takes of two keys cost %d calls, want 10", got)
		}
		if _, err := l.Take(t.Context(), weir.Request{Key: "k", Cost: 1}); !errors.Is(err, weir.ErrRequest) {
			t.Errorf("a request without a rule: got %v, want a RequestError", err)
		}
		l.Close()
	})
}

func TestAChangedLimitGivesTheStockBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, wide, narrow := newRemote(), mustRule(t, "r=fixed window 1000/366d"), mustRule(t, "r=fixed window 100/366d")
		l := prefetched(t, r)
		takes(t, l, 50, wide, "k")
		takes(t, l, 1, narrow, "k")
		synctest.Wait()
		if got := takes(t, l, 100, narrow, "k"); got != 49 {
			t.Errorf("%d more are admitted under the narrow limit, want 49", got)
		}
		if out := l.Stats().Out; out > 10 {
			t.Errorf("%d are taken ahead, want at most a tenth of the narrow limit", out)
		}
		l.Close()
		synctest.Wait()
	})
}

func TestCallersThatComeDuringARefillShareItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=fixed window 100/366d")
		r.trip.Store(int64(time.Millisecond / 10))
		l := prefetched(t, r)
		var admitted atomic.Int64
		var all sync.WaitGroup
		began := time.Now()
		for range 300 {
			all.Go(func() {
				d, err := l.Take(context.Background(), rule.For("k", 1))
				if err != nil {
					t.Error(err)
				}
				if d.Allowed {
					admitted.Add(1)
				}
			})
		}
		all.Wait()
		if got := admitted.Load(); got != 100 {
			t.Errorf("%d of 300 callers are admitted, want 100", got)
		}
		if calls, took := r.calls.Load(), time.Since(began); calls > 20 {
			t.Errorf("300 callers cost %d calls and %v, want a few", calls, took)
		}
		r.fails.Store(true)
		if _, err := l.Take(t.Context(), rule.For("k", 1)); !weir.Unavailable(err) {
			t.Errorf("got %v, want the error of the engine", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.Take(ctx, rule.For("k", 1)); err == nil {
			t.Error("a caller that has left got an answer")
		}
		l.Close()
	})
}

func TestAResetForgetsTheStock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=fixed window 1000/366d")
		l := prefetched(t, r)
		takes(t, l, 50, rule, "k")
		if err := l.Reset(t.Context(), rule.For("k", 1)); err != nil {
			t.Fatal(err)
		}
		if got := takes(t, l, 1100, rule, "k"); got != 1000 {
			t.Errorf("%d admitted after a reset, want 1000", got)
		}
		l.Close()
	})
}

// Callers of a key do not wait for many others in turn, and with a time of their own they stay although their clients left.
func TestCallersOfOneKeyAnswerInTimeWhileTheEngineHangs(t *testing.T) {
	for _, policy := range []layer.Policy{layer.Deny, layer.Local, layer.Allow} {
		for _, within := range []time.Duration{0, time.Minute} {
			synctest.Test(t, func(t *testing.T) {
				r, rule := newRemote(), mustRule(t, "r=fixed window 1000/1d")
				g := guarded(t, r, layer.GuardOptions{OnFailure: policy, Peers: 1})
				l := prefetched(t, g)
				thaw := r.hangs()
				ctx, cancel := context.WithCancel(t.Context())
				var all sync.WaitGroup
				for range 128 {
					all.Go(func() {
						began := time.Now()
						a, err := l.Do(ctx, weir.Call{Op: weir.OpTake, Requests: []weir.Request{rule.For("k", 1)}, Within: within})
						if took := time.Since(began); took > 20*time.Millisecond {
							t.Errorf("%s: an answer took %v, want at most 20 ms", policy, took)
						}
						if denies := policy == layer.Deny; within > 0 && (weir.Unavailable(err) != denies || a.Decision.Allowed == denies) {
							t.Errorf("%s: got %+v and %v, want the answer of the policy", policy, a.Decision, err)
						}
					})
				}
				synctest.Wait()
				cancel()
				all.Wait()
				thaw()
				l.Close()
				g.Close()
			})
		}
	}
}

// What a policy has admitted and the engine has not counted does not come back there.
func TestUnitsThatAPolicyAdmittedAreNotGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, drained, fresh := newRemote(), mustRule(t, "drained=1000/366d"), mustRule(t, "fresh=1000/366d")
		g := guarded(t, r, layer.GuardOptions{OnFailure: layer.Allow})
		l := prefetched(t, g)
		takes(t, r.memory, 1000, drained, "k")
		r.fails.Store(true)
		takes(t, l, 50, drained, "k")
		held, err := l.Reserve(t.Context(), fresh.For("k", 40))
		if err != nil {
			t.Fatal(err)
		}
		r.fails.Store(false)
		used := int64(0)
		for ; g.Stats().Away; time.Sleep(200 * time.Millisecond) {
			used += int64(takes(t, l, 1, fresh, "k"))
		}
		before := remaining(t, l, fresh, "k")
		if takes(t, l, 50, fresh, "k"); l.Stats().Out == 0 {
			t.Fatalf("got %+v after %d takes, want some taken ahead", l.Stats(), 50+used)
		}
		if err := held.Cancel(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(3 * time.Second)
		if got := remaining(t, r.memory, drained, "k"); got != 0 {
			t.Errorf("the engine has %d left of a key that was used up, want none", got)
		}
		if got := remaining(t, r.memory, fresh, "k"); got > before-50 {
			t.Errorf("the engine has %d left after 50 takes from %d, want at most %d", got, before, before-50)
		}
		l.Close()
		g.Close()
	})
}

func TestAnEngineThatGivesNoBlocksDecidesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, rule := weir.NewMemory(weir.MemoryOptions{}), mustRule(t, "r=fixed window 100/366d")
		l := prefetched(t, weir.Kit.EngineOf(func(ctx context.Context, call weir.Call) (weir.Answer, error) {
			if call.Op == weir.OpTakeUpTo {
				return weir.Answer{}, weir.Kit.Unsupported(call.Op, "is not made here")
			}
			return memory.Do(ctx, call)
		}, nil))
		if got := takes(t, l, 150, rule, "k"); got != 100 {
			t.Errorf("%d admitted, want 100", got)
		}
		l.Close()
	})
}

func BenchmarkPrefetched(b *testing.B) {
	rule, memory := mustRule(b, "r=1000000/1s burst 100000"), weir.NewMemory(weir.MemoryOptions{})
	l := prefetched(b, weir.Kit.EngineOf(memory.Do, memory.Check))
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = key(i)
	}
	b.ReportAllocs()
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		ctx := context.Background()
		for i := 0; pb.Next(); i++ {
			if d, err := l.Take(ctx, rule.For(keys[i%len(keys)], 1)); err != nil || !d.Allowed {
				b.Error(d, err)
			}
		}
	})
}
