package redislimit_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

// This is the recipe of docs/howto/waiting.md, on three engines of one server, like three processes. Requests take a
// millisecond, so callers that got the rate back with the slot would make thousands.
func TestVendorsTermsAreKeptByThreeEnginesOnOneServer(t *testing.T) {
	server := redistest.Start(t)
	slots := newRule(t, "slots", weir.Concurrency{Slots: 8, Lease: time.Minute})
	rate := newRule(t, "rate", weir.SlidingLog{Rate: weir.Per(100, 10*time.Second)})
	quota := newRule(t, "quota", weir.FixedWindow{Rate: weir.PerDay(5000)})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()

	start := time.Now()
	var made atomic.Int64
	var callers sync.WaitGroup
	for range 3 {
		engine := newEngine(t, dial(t, server), redislimit.Options{})
		for range 10 {
			callers.Go(func() {
				for ctx.Err() == nil {
					r, err := engine.Reserve(ctx, slots.For("vendor", 1), rate.For("vendor", 1), quota.For("vendor", 1))
					switch {
					case errors.Is(err, context.DeadlineExceeded):
						return
					case err != nil:
						t.Error(err)
						return
					case !r.Decision.Allowed:
						time.Sleep(min(r.Decision.RetryAfter, 10*time.Millisecond))
						continue
					}
					made.Add(1)
					time.Sleep(time.Millisecond)
					if err := r.Done(ctx); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	callers.Wait()
	stretches := int64(time.Since(start)/(10*time.Second)) + 1
	if n := made.Load(); n < 100 || n > 100*stretches {
		t.Errorf("%d requests in %v, want 100 in each 10 s", n, time.Since(start))
	}
}
