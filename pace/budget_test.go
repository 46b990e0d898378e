package pace_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

func TestTheFirstOfTwoLimitsIsUnspentWhileTheSecondIsFull(t *testing.T) {
	onBoth(t, func(t *testing.T, engine weir.Engine, _ func() int64) {
		q := mustQueue(t, engine)
		rate, slots := rule(t, "rate", "fixed window 100/1d"), rule(t, "slots", "concurrency 1 lease 1h")
		held := mustAcquire(t, q, slots.For("k", 1))
		ctx, leave := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		for range 20 {
			callers.Go(func() { _, _ = q.Acquire(ctx, rate.For("k", 1), slots.For("k", 1)) })
		}
		time.Sleep(5 * time.Second)
		if d, err := engine.Peek(t.Context(), rate.For("k", 0)); err != nil || d.Remaining != 100 {
			t.Errorf("%d of 100 left while the second limit is full (%v)", d.Remaining, err)
		}
		leave()
		callers.Wait()
		_ = held.Done(t.Context())
	})
}

func TestOppositeOrdersOfTwoLimitsInTwoProcessesDoNotBlock(t *testing.T) {
	onBoth(t, func(t *testing.T, engine weir.Engine, _ func() int64) {
		a, b := rule(t, "a", "concurrency 1 lease 1h").For("k", 1), rule(t, "b", "concurrency 1 lease 1h").For("k", 1)
		start := time.Now()
		var callers sync.WaitGroup
		for _, requests := range [][]weir.Request{{a, b}, {b, a}} {
			q := mustQueue(t, engine) // like a process of its own
			for range 50 {
				callers.Go(func() {
					both := mustAcquire(t, q, requests...)
					time.Sleep(100 * time.Millisecond)
					if err := both.Done(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
		}
		callers.Wait()
		// Each process finds what the other one released within a second.
		if took := time.Since(start); took < 10*time.Second || took > 30*time.Second {
			t.Errorf("100 jobs of 0.1 s, one at a time, took %v, want 10 s and a second when the turn changes", took)
		}
	})
}

func TestTheBudgetIsRightAfterAnEstimateThatWasWrong(t *testing.T) {
	for name, settle := range map[string]struct {
		used int64
		how  func(ctx context.Context, a *pace.Acquired) error
	}{
		"above":         {4, func(ctx context.Context, a *pace.Acquired) error { return a.Settle(ctx, 4) }},
		"below":         {25, func(ctx context.Context, a *pace.Acquired) error { return a.Settle(ctx, 25) }},
		"never settled": {10, func(context.Context, *pace.Acquired) error { return nil }},
		"settled twice": {4, func(ctx context.Context, a *pace.Acquired) error { _ = a.Settle(ctx, 4); return a.Settle(ctx, 30) }},
		"cancelled":     {0, func(ctx context.Context, a *pace.Acquired) error { return a.Cancel(ctx) }},
	} {
		for _, limits := range []string{"token bucket 1/1d burst 100", "fixed window 100/1d", "sliding window 100/1d", "sliding log 100/1d", "cycle 100/1d"} {
			t.Run(name+", "+limits, func(t *testing.T) {
				onBoth(t, func(t *testing.T, engine weir.Engine, _ func() int64) {
					q, tokens := mustQueue(t, engine), rule(t, "tokens", limits)
					if err := settle.how(t.Context(), mustAcquire(t, q, tokens.For("k", 10))); err != nil {
						t.Error(err)
					}
					if d, err := engine.Peek(t.Context(), tokens.For("k", 0)); err != nil || d.Remaining != 100-settle.used {
						t.Errorf("%d of 100 left (%v), want %d", d.Remaining, err, 100-settle.used)
					}
				})
			})
		}
	}
}

// Units that a caller gives back let the next caller go.
func TestUnitsOfAnEstimateThatWasTooHighGoToTheNextCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, tokens := mustQueue(t, mustMemory(t)), rule(t, "tokens", "fixed window 100/1d")
		first := mustAcquire(t, q, tokens.For("k", 90))
		start, went := time.Now(), make(chan time.Duration)
		go func() {
			mustAcquire(t, q, tokens.For("k", 50))
			went <- time.Since(start)
		}()
		time.Sleep(time.Minute)
		if err := first.Settle(t.Context(), 50); err != nil {
			t.Error(err)
		}
		if took := <-went; took != time.Minute {
			t.Errorf("the next caller went after %v, want 1m0s", took)
		}
	})
}
