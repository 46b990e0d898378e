package weir_test

import (
	"context"
	"errors"
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

// leaving is a context that ends right after the wait has begun.
type leaving struct {
	context.Context
	ended chan struct{}
	err   error
}

func newLeaving(ctx context.Context) *leaving {
	l := &leaving{Context: ctx, ended: make(chan struct{})}
	close(l.ended)
	return l
}

func (l *leaving) Done() <-chan struct{} { return l.ended }

// Err is nil at the first call, when the wait begins.
func (l *leaving) Err() (err error) {
	err, l.err = l.err, context.Canceled
	return err
}

// joinsAndLeaves returns waits that join an empty line and leave it.
func joinsAndLeaves(t testing.TB) map[string]func() error {
	limit := weir.TokenBucket{Rate: weir.PerHour(1), Burst: 1}
	lim, keyed := mustNew(t, limit), mustKeyed[int](t, limit)
	lim.Allow()
	keyed.Allow(7)
	ctx := newLeaving(context.Background())
	return map[string]func() error{
		"Limiter": func() error { ctx.err = nil; return lim.Wait(ctx) },
		"Keyed":   func() error { ctx.err = nil; return keyed.Wait(ctx, 7) },
	}
}

// The objects are the line, its timer and the timer's function, the waiter and its channel, and the error.
func TestACallerThatJoinsAnEmptyLineAndLeavesMakesSixObjects(t *testing.T) {
	for name, wait := range joinsAndLeaves(t) {
		if err := wait(); !errors.Is(err, context.Canceled) || err.Error() != "weir: wait: context canceled" {
			t.Fatalf("%s: got %v, want the error of the context", name, err)
		}
		if n := testing.AllocsPerRun(1000, func() { _ = wait() }); n > 6 {
			t.Errorf("%s: a caller that joins an empty line and leaves makes %v objects, want 6", name, n)
		}
	}
}
