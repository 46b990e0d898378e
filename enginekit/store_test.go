package enginekit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

func wallClock() int64 { return time.Now().UnixNano() }

func mustRule(t *testing.T, name string, limits ...weir.Limit) *weir.Rule {
	t.Helper()
	r, err := weir.NewRule(name, limits...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// slowStore delays each call of a store.
type slowStore struct {
	*memoryStore
	delay time.Duration
}

func (s slowStore) Load(ctx context.Context, keys []string) ([]enginekit.Row, int64, error) {
	time.Sleep(s.delay)
	return s.memoryStore.Load(ctx, keys)
}

func (s slowStore) Swap(ctx context.Context, at int64, changes []enginekit.Change) (int64, error) {
	time.Sleep(s.delay)
	return s.memoryStore.Swap(ctx, at, changes)
}

func TestManyCallersOfAKeyShareOneSwap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := slowStore{newMemoryStore(wallClock), 10 * time.Millisecond}
		e := enginekit.NewStore(store, enginekit.StoreOptions{})
		rule := mustRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(100)})
		var admitted atomic.Int64
		var all sync.WaitGroup
		for range 200 {
			all.Go(func() {
				if d, err := e.Take(t.Context(), rule.For("hot", 1)); err != nil {
					t.Error(err)
				} else if d.Allowed {
					admitted.Add(1)
				}
			})
		}
		all.Wait()
		if admitted.Load() != 100 || store.swaps.Load() > 3 {
			t.Errorf("200 callers of a limit of 100: admitted %d in %d swaps, want 100 in at most 3", admitted.Load(), store.swaps.Load())
		}
	})
}

func TestADecisionOnAKnownRowTakesOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemoryStore(wallClock)
		e := enginekit.NewStore(store, enginekit.StoreOptions{})
		two := mustRule(t, "r", weir.TokenBucket{Rate: weir.PerSecond(10)}, weir.FixedWindow{Rate: weir.PerDay(1000)})
		for i := range 10 {
			if _, err := e.Take(t.Context(), two.For("k", 1), two.For("other", 1)); err != nil {
				t.Fatal(err)
			}
			if loads, swaps := store.loads.Load(), store.swaps.Load(); loads != 1 || swaps != int64(i+1) {
				t.Fatalf("after %d decisions: %d loads and %d swaps, want one load, of the clock, and a swap each", i+1, loads, swaps)
			}
		}
	})
}

// Two processes share a store whose swaps and answers fail at random. What they admit, and what may have been counted, adds
// up to the limit.
func TestProcessesOnOneStoreKeepALimitWhateverFails(t *testing.T) {
	for _, locks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const limit = 300
			memory := newMemoryStore(wallClock)
			memory.breaks(3, 5, 2)
			var store enginekit.Store = slowStore{memory, time.Millisecond}
			if locks {
				store = lockingStore{memory}
			}
			a, b := mustRule(t, "a", weir.FixedWindow{Rate: weir.PerDay(limit)}), mustRule(t, "b", weir.FixedWindow{Rate: weir.PerDay(2 * limit)})
			var admitted, unknown atomic.Int64
			var all sync.WaitGroup
			for process := range 3 {
				e := enginekit.NewStore(store, enginekit.StoreOptions{})
				for range 20 {
					all.Go(func() {
						for range 30 {
							d, err := e.Take(t.Context(), a.For("k", 1), b.For("k", 1))
							switch {
							case err == nil && d.Allowed:
								admitted.Add(1)
							case err != nil && weir.WasCounted(err) != weir.CountedNo:
								unknown.Add(1)
							}
							time.Sleep(time.Duration(process) * time.Microsecond)
						}
					})
				}
			}
			all.Wait()
			memory.breaks(0, 0, 0)
			d, err := enginekit.NewStore(store, enginekit.StoreOptions{}).Peek(t.Context(), b.For("k", 0))
			counted := 2*limit - d.Remaining
			if err != nil || admitted.Load() > limit || counted < admitted.Load() || counted > admitted.Load()+unknown.Load() {
				t.Errorf("locks %t: admitted %d of %d, counted %d, %d unknown (%v)", locks, admitted.Load(), limit, counted, unknown.Load(), err)
			}
			if counted != limit {
				t.Errorf("locks %t: counted %d, want %d: all callers together ask for more", locks, counted, limit)
			}
		})
	}
}

// A swap that was made although its answer was lost is found by its version.
func TestALostAnswerIsFoundInTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemoryStore(wallClock)
		e := enginekit.NewStore(store, enginekit.StoreOptions{})
		rule := mustRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(1000)})
		store.breaks(0, 100, 0)
		known := 0
		for range 100 {
			_, err := e.Take(t.Context(), rule.For("k", 1))
			if err == nil {
				known++
			} else if counted := weir.WasCounted(err); counted != weir.CountedUnknown || !weir.Unavailable(err) {
				t.Fatalf("%v: counted %v, want unknown; and unavailable", err, counted)
			}
		}
		store.breaks(0, 0, 0)
		if d, err := e.Peek(t.Context(), rule.For("k", 0)); err != nil || 1000-d.Remaining != int64(known) || known == 0 {
			t.Errorf("%d takes were answered, and %d counted (%v)", known, 1000-d.Remaining, err)
		}
	})
}

func TestAStoreThatIsGoneCountsNothing(t *testing.T) {
	store := newMemoryStore(wallClock)
	store.breaks(0, 0, 100)
	rule := mustRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(10)})
	_, err := enginekit.NewStore(store, enginekit.StoreOptions{}).Take(t.Context(), rule.For("k", 1))
	if weir.WasCounted(err) != weir.CountedNo || !weir.Unavailable(err) || !errors.Is(err, errLost) {
		t.Errorf("got %v, want an error that counted nothing", err)
	}
}

// A caller that leaves is told whether its decision was on its way.
func TestACallerThatLeavesIsToldWhatItKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := slowStore{newMemoryStore(wallClock), time.Second}
		e := enginekit.NewStore(store, enginekit.StoreOptions{})
		rule := mustRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(10)})
		for after, want := range map[time.Duration]weir.Counted{500 * time.Millisecond: weir.CountedNo, 1500 * time.Millisecond: weir.CountedUnknown} {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			_, err := e.Take(ctx, rule.For(fmt.Sprint(after), 1))
			cancel()
			if got := weir.WasCounted(err); got != want || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("left after %v: got %v and %v, want %v", after, got, err, want)
			}
			time.Sleep(10 * time.Second)
			e = enginekit.NewStore(store, enginekit.StoreOptions{})
		}
	})
}

// The store's clock decides, not that of a process.
func TestTheStoresClockDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ahead atomic.Int64
		store := newMemoryStore(func() int64 { return wallClock() + ahead.Load() })
		e := enginekit.NewStore(store, enginekit.StoreOptions{})
		rule := mustRule(t, "r", weir.TokenBucket{Rate: weir.PerHour(1)})
		take := func(want bool) {
			t.Helper()
			if d, err := e.Take(t.Context(), rule.For("k", 1)); err != nil || d.Allowed != want {
				t.Errorf("got %+v and %v, want allowed %t", d, err, want)
			}
		}
		take(true)
		take(false)
		ahead.Add(int64(2 * time.Hour))
		take(false) // by a lower bound: the confirmation tells the new clock
		take(true)
		ahead.Add(-int64(2 * time.Hour)) // the swap fails, because its instant is ahead
		time.Sleep(90 * time.Minute)
		take(false)
		time.Sleep(90 * time.Minute)
		take(true)
	})
}

func TestADecisionWithAnIdentityIsRecognised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemoryStore(wallClock)
		rule := mustRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(10)})
		call := weir.Call{Op: weir.OpTakeUpTo, Most: 4, Requests: []weir.Request{rule.For("k", 1)}, Identity: "one"}
		for range 3 {
			a, err := enginekit.NewStore(store, enginekit.StoreOptions{}).Do(t.Context(), call)
			if err != nil || a.Times != 4 || a.Decision.Remaining != 6 || a.Decision.Key != "k" || a.Decision.Rule != "r" {
				t.Errorf("got %+v and %v, want 4 times and 6 left", a, err)
			}
		}
		time.Sleep(61 * time.Second)
		if a, err := enginekit.NewStore(store, enginekit.StoreOptions{}).Do(t.Context(), call); err != nil || a.Decision.Remaining != 2 {
			t.Errorf("after a minute: got %+v and %v, want 2 left", a, err)
		}
	})
}

func TestSlotsAreRenewedUntilTheyAreLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemoryStore(wallClock)
		e := enginekit.NewStore(store, enginekit.StoreOptions{})
		for _, lease := range []time.Duration{0, 3 * time.Second} {
			rule := mustRule(t, "slots", weir.Concurrency{Slots: 2, Lease: lease})
			q := rule.For(fmt.Sprint(lease), 2)
			r, err := e.Reserve(t.Context(), q)
			if err != nil || !r.Decision.Allowed {
				t.Fatal(r, err)
			}
			time.Sleep(10 * time.Minute)
			if d, err := e.Take(t.Context(), weir.Request{Rule: rule, Key: q.Key, Cost: 1}); lease > 0 && (err != nil || d.Allowed) {
				t.Errorf("a renewed slot was given away: %+v and %v", d, err)
			}
			if err := r.Cancel(t.Context()); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute)
			select {
			case <-r.Lost():
				t.Error("a released slot counts as lost")
			default:
			}
			if r, err = e.Reserve(t.Context(), q); err != nil || !r.Decision.Allowed {
				t.Fatal("a released slot is not free", r, err)
			}
			store.breaks(0, 100, 100)
			began := time.Now()
			<-r.Lost()
			if passed := time.Since(began); passed > 30*time.Second || passed < lease {
				t.Errorf("without renewals: lost after %v, want after the lease of %v", passed, lease)
			}
			store.breaks(0, 0, 0)
			_ = r.Cancel(t.Context())
			if r, err = e.Reserve(t.Context(), q); err != nil || !r.Decision.Allowed {
				t.Fatal("an expired slot is not free", r, err)
			}
			if err := e.Reset(t.Context(), q); err != nil {
				t.Fatal(err)
			}
			<-r.Lost()
			_ = r.Cancel(t.Context())
		}
	})
}

func TestSlotsWithoutALeaseNeedAReservation(t *testing.T) {
	e := enginekit.NewStore(newMemoryStore(wallClock), enginekit.StoreOptions{})
	_, err := e.Take(t.Context(), mustRule(t, "slots", weir.Concurrency{Slots: 2}).For("k", 1))
	if bad, ok := errors.AsType[*weir.RequestError](err); !ok || bad.Field != "lease" {
		t.Errorf("got %v, want a *weir.RequestError about the lease", err)
	}
}

func TestLimitsWithTooManyEntriesAreRefused(t *testing.T) {
	e := enginekit.NewStore(newMemoryStore(wallClock), enginekit.StoreOptions{})
	for _, limit := range []weir.Limit{weir.SlidingLog{Rate: weir.PerDay(4097)}, weir.RateGate{Rate: weir.PerDay(4097)}, weir.Concurrency{Slots: 4097, Lease: time.Second}} {
		rule := mustRule(t, "r", limit)
		if _, err := e.Take(t.Context(), rule.For("k", 1)); !errors.Is(err, weir.ErrLimit) || e.Check(rule) == nil {
			t.Errorf("%v: got %v and %v, want a *weir.LimitError", limit, err, e.Check(rule))
		}
	}
}

// Options below zero are the defaults: an engine without flights would never answer.
func TestNegativeOptionsAreTheDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := enginekit.NewStore(newMemoryStore(wallClock), enginekit.StoreOptions{Flights: -1, Batch: -1, Rows: -1, Timeout: -1, MaxEntries: -1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		rule := mustRule(t, "r", weir.SlidingLog{Rate: weir.PerDay(10)})
		if d, err := e.Take(ctx, rule.For("k", 1), rule.For("l", 1)); err != nil || !d.Allowed {
			t.Errorf("got %+v and %v", d, err)
		}
	})
}

func TestADamagedRowIsAnErrorUntilItIsReset(t *testing.T) {
	store := newMemoryStore(wallClock)
	rule := mustRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(10)})
	if _, err := enginekit.NewStore(store, enginekit.StoreOptions{}).Take(t.Context(), rule.For("k", 1)); err != nil {
		t.Fatal(err)
	}
	negative := store.rows["r\x00k"].State // its last byte is the count
	negative[len(negative)-1] = 1
	for _, damage := range []string{"\x02", "\x01\xff", "\x01\x01a\x00\x09", string(negative)} {
		store.rows["r\x00k"] = enginekit.Row{Version: 1, State: []byte(damage)}
		e := enginekit.NewStore(store, enginekit.StoreOptions{})
		for range 2 {
			if _, err := e.Take(t.Context(), rule.For("k", 1)); err == nil || weir.WasCounted(err) != weir.CountedNo || weir.Unavailable(err) {
				t.Errorf("%q: got %v, want an error that counted nothing", damage, err)
			}
		}
		if err := e.Reset(t.Context(), rule.For("k", 1)); err != nil {
			t.Error(err)
		}
		if d, err := e.Take(t.Context(), rule.For("k", 1)); err != nil || d.Remaining != 9 {
			t.Errorf("%q, reset: got %+v and %v", damage, d, err)
		}
	}
}

func TestEndedRowsAreSwept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lockingStore{newMemoryStore(wallClock)}
		e := enginekit.NewStore(store, enginekit.StoreOptions{Rows: 10})
		rule := mustRule(t, "r", weir.FixedWindow{Rate: weir.PerSecond(10)})
		for i := range 2000 {
			if _, err := e.Take(t.Context(), rule.For(fmt.Sprint(i), 1)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if n := len(store.rows); n > 200 {
			t.Errorf("%d rows are left of 2000 that ended, want those of the last minutes", n)
		}
	})
}
