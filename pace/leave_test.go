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

// deafToReturns is an engine that gives no units back until the context of the call ends, as a server that hangs.
type deafToReturns struct{ *booking }

func (e *deafToReturns) TakeAhead(ctx context.Context, longest time.Duration, q weir.Request) (weir.Decision, func(context.Context, int64) error, error) {
	d, _, err := e.booking.TakeAhead(ctx, longest, q)
	return d, func(ctx context.Context, _ int64) error { return hang(ctx) }, err
}

func (e *deafToReturns) Record(ctx context.Context, _ ...weir.Request) (weir.Decision, error) {
	return weir.Decision{}, hang(ctx)
}

func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestCallersThatLeaveDoNotWaitForTheirBookingsToBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue, err := pace.NewQueue(&deafToReturns{&booking{Memory: mustMemory(t)}}, pace.QueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		vendor := rule(t, "vendor", "token bucket 1/m burst 1")
		ctx, leave := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		for range 5 {
			callers.Go(func() { _, _ = queue.Wait(ctx, vendor.For("k", 1)) })
		}
		synctest.Wait()
		left := time.Now()
		leave()
		callers.Wait()
		if took := time.Since(left); took > 0 {
			t.Errorf("callers left %v after their context had ended, want at once", took)
		}
		if err := queue.Flush(t.Context()); err != nil || time.Since(left) != 4*time.Second {
			t.Errorf("Flush ended after %v with %v, want after four calls of a second", time.Since(left), err)
		}
		if err := queue.Flush(t.Context()); err != nil || time.Since(left) != 4*time.Second {
			t.Errorf("Flush of a queue without work ended after %v with %v", time.Since(left), err)
		}
	})
}
