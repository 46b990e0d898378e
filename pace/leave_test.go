package pace_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

// hanging is an engine whose calls hang until their contexts end.
type hanging struct {
	*remote
	hangs atomic.Bool
}

func newHanging(t *testing.T) *hanging {
	e := &hanging{remote: newRemote(t)}
	e.around = func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
		if c.Op == weir.OpTakeUpTo || c.Op == weir.OpReturn || c.Op == weir.OpTake && e.hangs.Load() {
			return weir.Answer{}, hang(ctx)
		}
		return next(ctx, c)
	}
	return e
}

func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestCallersLeaveAtOnceAnEngineThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newHanging(t)
		queue, vendor := mustQueue(t, engine), rule(t, "vendor", "token bucket 1/m burst 1")
		engine.hangs.Store(true)
		ctx, leave := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		for range 5 {
			callers.Go(func() { _, _ = queue.Wait(ctx, vendor.For("k", 1)) })
		}
		synctest.Wait()
		left := time.Now()
		leave()
		callers.Wait()
		synctest.Wait() // no call is left: the test fails if a goroutine stays
		if took := time.Since(left); took > 0 || queue.Waiting() != 0 {
			t.Errorf("callers left %v after their context had ended, and %d wait; want at once and none", took, queue.Waiting())
		}
		engine.hangs.Store(false)
		if _, err := queue.Wait(t.Context(), vendor.For("k", 1)); err != nil {
			t.Errorf("after the engine hung: %v", err)
		}
	})
}

func TestFlushWaitsForWhatLeaversGiveBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newHanging(t)
		queue, leaky := mustQueue(t, engine), rule(t, "leaky", "leaky bucket 1/m queue 2")
		ctx, leave := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		for range 2 {
			callers.Go(func() { _, _ = queue.Wait(ctx, leaky.For("k", 1)) }) // the second has a delay
		}
		synctest.Wait()
		left := time.Now()
		leave()
		callers.Wait()
		if err := queue.Flush(t.Context()); err != nil || time.Since(left) != time.Second {
			t.Errorf("Flush ended after %v with %v, want after the second of a call that hangs", time.Since(left), err)
		}
		if err := queue.Flush(t.Context()); err != nil || time.Since(left) != time.Second {
			t.Errorf("Flush of a queue without work ended after %v with %v", time.Since(left), err)
		}
	})
}

// A caller that leaves while the engine is asked for it may use its requests for something else at once.
func TestACallerThatLeavesHasItsRequestsToItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newRemote(t)
		engine.around = func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
			time.Sleep(time.Second)
			return next(ctx, c)
		}
		q, slots := mustQueue(t, engine), rule(t, "slots", "concurrency 1 lease 1d")
		held := mustAcquire(t, q, slots.For("k", 1))
		var callers sync.WaitGroup
		for i := range 4 {
			callers.Go(func() {
				ctx, leave := context.WithTimeout(t.Context(), time.Duration(i)*700*time.Millisecond)
				defer leave()
				requests := []weir.Request{slots.For("k", 1)}
				if _, err := q.Acquire(ctx, requests...); err == nil {
					t.Error("a caller got a busy slot")
				}
				requests[0] = weir.Request{}
			})
		}
		callers.Wait()
		if err := held.Done(t.Context()); err != nil {
			t.Error(err)
		}
		if n := q.Waiting(); n != 0 {
			t.Errorf("%d callers wait, want none", n)
		}
	})
}

// A caller leaves while the engine decides, which then admits it all the same: nobody has the units, so they come back.
func TestWhatIsTakenForACallerThatLeftComesBack(t *testing.T) {
	for _, limit := range []string{"fixed window 10/1h", "concurrency 10 lease 1h"} {
		synctest.Test(t, func(t *testing.T) {
			r := newRemote(t)
			r.around = func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
				a, err := next(context.WithoutCancel(ctx), c)
				time.Sleep(100 * time.Millisecond) // also for a caller that has left
				return a, err
			}
			q, units := mustQueue(t, r), rule(t, "units", limit)
			ctx, leave := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer leave()
			if _, err := q.Acquire(ctx, units.For("k", 3)); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("%s: %v, want the end of the context", limit, err)
			}
			if err := q.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if d, err := r.Peek(t.Context(), units.For("k", 0)); err != nil || d.Remaining != 10 {
				t.Errorf("%s: %d units are left (%v), want 10", limit, d.Remaining, err)
			}
		})
	}
}
