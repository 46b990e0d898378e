package weir_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

// flaky is a clock that panics on demand.
type flaky struct{ broken atomic.Bool }

func (c *flaky) now() int64 {
	if c.broken.Load() {
		panic("the clock is broken")
	}
	return time.Now().UnixNano()
}

// caught calls do and reports whether it panicked.
func caught(do func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	do()
	return false
}

// unlocked fails the test unless all verbs return.
func unlocked(t *testing.T, what string, verbs ...func()) {
	t.Helper()
	var done atomic.Bool
	go func() {
		for _, verb := range verbs {
			verb()
		}
		done.Store(true)
	}()
	if !soon(done.Load) {
		t.Fatalf("%s: a lock was left", what)
	}
}

func TestAClockThatPanicsLeavesNothingLocked(t *testing.T) {
	var clock flaky
	limit, options := weir.RateGate{Rate: weir.PerSecond(1)}, weir.Options{Clock: clock.now}
	lim := mustNew(t, limit, options)
	k, err := weir.NewKeyedWith[string](limit, options)
	if err != nil {
		t.Fatal(err)
	}
	m := weir.NewMemory(weir.MemoryOptions{Clock: clock.now})
	rule := mustRule(t, "r", weir.SlidingLog{Rate: weir.PerSecond(1)}, weir.TokenBucket{Rate: weir.PerDay(1)})
	ctx := context.Background()
	verbs := []func(){
		func() { lim.Allow() }, func() { lim.Take(1) }, func() { lim.Peek(1) }, func() { lim.Record(1) }, lim.Reset,
		func() { _ = lim.SetLimit(limit) }, func() { lim.Waiting() }, func() { lim.Reserve(1, 0) }, func() { _ = lim.WaitMax(ctx, 1, 1) },
		func() { k.Allow("k") }, func() { k.Take("k", 1) }, func() { k.Peek("k", 1) }, func() { k.Record("k", 1) }, func() { k.Reset("k") },
		func() { _ = k.SetLimit(limit) }, k.Refresh, func() { k.Reserve("k", 1, 0) }, func() { _ = k.WaitMax(ctx, "k", 1, 1) },
		func() { m.Take(ctx, rule.For("k", 1)) }, func() { m.Peek(ctx, rule.For("k", 1)) }, func() { m.Record(ctx, rule.For("k", 1)) },
		func() { _ = m.Reset(ctx, rule.For("k", 1)) }, func() { m.Top(1) },
	}
	for i, verb := range verbs {
		clock.broken.Store(true)
		if !caught(verb) {
			t.Errorf("verb %d did not ask the clock", i)
		}
		clock.broken.Store(false)
		unlocked(t, "a verb", verbs...)
	}
}

// Waiting callers are released in time, or leave in time, whatever the clock did meanwhile, and give back what they
// took.
func TestAClockThatPanicsLeavesNothingUnplanned(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			var clock flaky
			lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1}, weir.Options{Clock: clock.now})
			start := time.Now()
			if !lim.Allow() {
				t.Fatal("a fresh limiter refused")
			}
			var gone, left, broke atomic.Int64
			for i := range 8 {
				leaves := time.Hour
				if i%3 == 2 {
					leaves = time.Duration(r.Int64N(3e9))
				}
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(leaves, cancel)
				clock.broken.Store(r.IntN(4) == 0) // some panic as they come
				go func() {
					if caught(func() {
						if err := lim.Wait(ctx); err == nil {
							gone.Add(1)
						} else {
							left.Add(1)
						}
					}) {
						broke.Add(1)
					}
				}()
				synctest.Wait()
			}
			for range 20 {
				clock.broken.Store(!clock.broken.Load())
				time.Sleep(time.Duration(r.Int64N(5e8)))
			}
			clock.broken.Store(false)
			time.Sleep(time.Minute)
			synctest.Wait()
			if gone.Load()+left.Load()+broke.Load() != 8 || lim.Waiting() != 0 {
				t.Errorf("seed %d: %d were released, %d left and %d panicked, of 8; %d still wait", seed, gone.Load(), left.Load(), broke.Load(), lim.Waiting())
			}
			if most := int64(time.Since(start) / time.Second); gone.Load() > most || !lim.Allow() {
				t.Errorf("seed %d: %d were released in %ds, and no unit was left", seed, gone.Load(), most)
			}
		})
	}
}

func TestAWaiterIsNotLateBecauseTheClockPanicked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clock flaky
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1}, weir.Options{Clock: clock.now})
		lim.Allow()
		start := time.Now()
		done := make(chan time.Duration, 1)
		go func() {
			if err := lim.Wait(t.Context()); err != nil {
				t.Errorf("Wait: %v", err)
			}
			done <- time.Since(start)
		}()
		time.Sleep(900 * time.Millisecond)
		clock.broken.Store(true)
		time.Sleep(time.Second) // its turn comes while the clock is broken
		clock.broken.Store(false)
		if late := <-done - 1900*time.Millisecond; late < 0 || late > 10*time.Millisecond {
			t.Errorf("released %v after the clock was mended, want within 10ms", late)
		}
	})
}

func TestABookingIsCancelledInTimeThoughTheClockPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clock flaky
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerHour(1), Burst: 1}, weir.Options{Clock: clock.now})
		b := mustReserve(t, lim, 1)
		b.CancelAfter(time.Second)
		clock.broken.Store(true)
		time.Sleep(2 * time.Second)
		clock.broken.Store(false)
		if !lim.Allow() {
			t.Error("the unit of a booking whose lifetime has ended did not come back")
		}
	})
}

// Units come back after a panic, although the limit of the key is unknown then.
func TestALimitFunctionThatPanicsKeepsNoUnits(t *testing.T) {
	for _, limit := range []weir.Limit{weir.Concurrency{Slots: 1}, weir.TokenBucket{Rate: weir.PerHour(1), Burst: 1}} {
		synctest.Test(t, func(t *testing.T) {
			var broken atomic.Bool
			k, err := weir.NewKeyedFunc(func(int) weir.Limit {
				if broken.Load() {
					panic("no limit")
				}
				return limit
			}, weir.Options{})
			if err != nil {
				t.Fatal(err)
			}
			b, err := k.Reserve(1, 1, 0)
			if err != nil || !b.Decision.Allowed {
				t.Fatalf("Reserve: %+v and %v", b, err)
			}
			b.CancelAfter(time.Second)
			broken.Store(true)
			time.Sleep(2 * time.Second)
			broken.Store(false)
			time.Sleep(10 * time.Second)
			if !k.Allow(1) {
				t.Errorf("%v: a booking whose lifetime has ended kept its unit", limit)
			}
			k.Return(1, 1)
			var slots weir.Slots
			if err := k.WaitTurn(t.Context(), 1, weir.Turn{Cost: 1, Slots: &slots}); err != nil {
				t.Fatal(err)
			}
			broken.Store(true)
			slots.Release()
			broken.Store(false)
			if _, holds := limit.(weir.Concurrency); k.Allow(1) != holds {
				t.Errorf("%v: after Release, its unit came back: %t", limit, !holds)
			}
		})
	}
}

// A key whose limit cannot be found does not keep other keys from their new limit.
func TestALimitFunctionThatPanicsKeepsNoOtherKeyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changed atomic.Bool
		k, err := weir.NewKeyedFunc(func(key int) weir.Limit {
			switch {
			case changed.Load() && key == 7:
				panic("no limit for 7")
			case changed.Load():
				return weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1}
			}
			return weir.TokenBucket{Rate: weir.PerHour(1), Burst: 1}
		}, weir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var gone atomic.Int64
		for key := range 50 {
			k.Allow(key)
			go func() {
				if k.Wait(t.Context(), key) == nil {
					gone.Add(1)
				}
			}()
		}
		synctest.Wait()
		changed.Store(true)
		if !caught(k.Refresh) {
			t.Error("Refresh hid the panic of the limit function")
		}
		for _, verb := range []func(){func() { k.Allow(7) }, func() { k.Take(7, 1) }, func() { _ = k.Wait(t.Context(), 7) }, func() { k.Reserve(7, 1, 0) }} {
			if !caught(verb) {
				t.Error("a verb hid the panic of the limit function")
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if gone.Load() != 49 {
			t.Errorf("%d of 49 keys got their new limit", gone.Load())
		}
		k.Close() // of all shards
	})
}

// panickingHandler is a log handler that panics.
type panickingHandler struct{ slog.Handler }

func (panickingHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (panickingHandler) Handle(context.Context, slog.Record) error { panic("no log") }

func TestFunctionsOfTheMemoryOptionsThatPanicLeaveNothingLocked(t *testing.T) {
	for name, options := range map[string]weir.MemoryOptions{
		"Parent": {MaxKeys: 1, Parent: func(string) (string, bool) { panic("no parent") }},
		"Logger": {MaxKeys: 1, Logger: slog.New(panickingHandler{})},
	} {
		m := weir.NewMemory(options)
		for _, limit := range []weir.Limit{weir.TokenBucket{Rate: weir.PerDay(1)}, weir.SlidingLog{Rate: weir.PerDay(1)}} {
			rule := mustRule(t, limit.String(), limit, weir.FixedWindow{Rate: weir.PerDay(9)})
			panicked := 0
			for key := range 300 {
				unlocked(t, name, func() {
					if caught(func() { m.Take(context.Background(), rule.For(string(rune('a'+key)), 1)) }) {
						panicked++
					}
				})
			}
			if panicked == 0 && name == "Parent" {
				t.Errorf("%s, %s: nothing panicked", name, limit)
			}
		}
	}
}

func TestErrorsOfAWaitTellTheTruthAboutItsBound(t *testing.T) {
	err := error(&weir.WaitError{Need: weir.Never, Bound: 2 * time.Second})
	if want := "weir: wait: no turn within the bound of 2s"; err.Error() != want || !errors.Is(err, weir.ErrWait) {
		t.Errorf("got %q, want %q", err, want)
	}
}
