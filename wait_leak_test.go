package weir_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

func TestWaitingStartsNoGoroutine(t *testing.T) {
	lim := mustNew(t, weir.TokenBucket{Rate: weir.PerHour(1), Burst: 1})
	lim.Allow()
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() { lim.Wait(ctx) })
	}
	for lim.Waiting() < 100 {
		runtime.Gosched()
	}
	if now := runtime.NumGoroutine(); now > before+100 {
		t.Errorf("%d goroutines for 100 waiting callers", now-before)
	}
	cancel()
	all.Wait()
	if !soon(func() bool { return runtime.NumGoroutine() <= before }) {
		t.Errorf("%d goroutines left when all had gone", runtime.NumGoroutine()-before)
	}
}

// soon reports whether something comes true in time, with enough time for a busy machine.
func soon(come func() bool) bool {
	for start := time.Now(); time.Since(start) < 30*time.Second; runtime.Gosched() {
		if come() {
			return true
		}
	}
	return false
}

// A set timer keeps its function alive. An unreferenced limiter is collected, so no timer of it is left.
func TestNoTimerIsLeftAfterTheLastWaiter(t *testing.T) {
	for name, leave := range map[string]func(lim *weir.Limiter, cancel context.CancelFunc){
		"cancelled": func(_ *weir.Limiter, cancel context.CancelFunc) { cancel() },
		"closed":    func(lim *weir.Limiter, _ context.CancelFunc) { lim.Close() },
		"reset":     func(lim *weir.Limiter, _ context.CancelFunc) { lim.Reset() },
	} {
		var collected atomic.Bool
		func() {
			lim := mustNew(t, weir.TokenBucket{Rate: weir.PerHour(1), Burst: 1})
			runtime.AddCleanup(lim, func(c *atomic.Bool) { c.Store(true) }, &collected)
			lim.Allow()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var waiter sync.WaitGroup
			waiter.Go(func() { lim.Wait(ctx) })
			for lim.Waiting() == 0 {
				runtime.Gosched()
			}
			runtime.GC()
			if collected.Load() {
				t.Fatalf("%s: collected while someone waits", name)
			}
			leave(lim, cancel)
			waiter.Wait()
		}()
		// Cleanups run on their own, after a collection.
		if !soon(func() bool { runtime.GC(); return collected.Load() }) {
			t.Errorf("%s: something still refers to the limiter: a timer is left", name)
		}
	}
}

func TestWaitThatNeedNotBlockAllocatesNothing(t *testing.T) {
	lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1_000_000), Burst: 1 << 40})
	gate := mustNew(t, weir.FixedWindow{Rate: weir.PerDay(1 << 40)})
	keyed := mustKeyed[int](t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1 << 40})
	keyed.Allow(7)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for name, wait := range map[string]func() error{
		"Limiter":         func() error { return lim.Wait(ctx) },
		"Limiter WaitMax": func() error { return lim.WaitMax(ctx, 3, time.Second) },
		"FixedWindow":     func() error { return gate.Wait(ctx) },
		"Keyed":           func() error { return keyed.Wait(ctx, 7) },
	} {
		allocs := testing.AllocsPerRun(1000, func() {
			if err := wait(); err != nil {
				t.Fatal(name, err)
			}
		})
		if allocs != 0 {
			t.Errorf("%s: a wait that need not block allocates %v times", name, allocs)
		}
	}
}
