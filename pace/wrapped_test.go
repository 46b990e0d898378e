package pace_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

// A queue on a memory engine below a function plans as on the bare one, and each grant passes the function.
func TestGrantsOfAMemoryPassTheFunctionAroundIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var takes atomic.Int64
		engine := weir.Wrap(mustMemory(t), func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
			a, err := next(ctx, c)
			if a.Decision.Allowed && (c.Op == weir.OpTake || c.Op == weir.OpReserve) {
				takes.Add(1)
			}
			return a, err
		})
		q, vendor := mustQueue(t, engine), rule(t, "vendor", "token bucket 10/s burst 1")
		began := time.Now()
		for i := range 5 {
			if _, err := q.Wait(t.Context(), vendor.For("k", 1)); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != time.Duration(i)*100*time.Millisecond {
				t.Errorf("caller %d went after %v, want at once or each 100 ms later", i, took)
			}
		}
		if n := takes.Load(); n != 5 {
			t.Errorf("the function saw %d grants, want 5", n)
		}
	})
}

// A function that refuses, fails or panics ends one wait, and holds up no other.
func TestAFunctionAroundAMemoryThatMisbehavesEndsOneWait(t *testing.T) {
	broken := errors.New("broken")
	for name, act := range map[string]func() (weir.Answer, error){
		"an error":                     func() (weir.Answer, error) { return weir.Answer{}, broken },
		"a panic":                      func() (weir.Answer, error) { panic(broken) },
		"a refusal without an instant": func() (weir.Answer, error) { return weir.Answer{}, nil },
		"a refusal of another key": func() (weir.Answer, error) {
			return weir.Answer{Decision: weir.Decision{RetryAfter: time.Hour, Rule: "other"}}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var bad atomic.Bool
				engine := weir.Wrap(mustMemory(t), func(ctx context.Context, c weir.Call, next weir.Next) (weir.Answer, error) {
					if c.Op == weir.OpTake && bad.Swap(false) {
						return act()
					}
					return next(ctx, c)
				})
				q, vendor := mustQueue(t, engine), rule(t, "vendor", "token bucket 1/s burst 1")
				failed := make(chan error, 4)
				wait := func() { _, err := q.Wait(t.Context(), vendor.For("k", 1)); failed <- err }
				wait()
				for range 3 {
					go wait()
				}
				synctest.Wait()
				bad.Store(true)
				errs := 0
				for range 4 {
					if <-failed != nil {
						errs++
					}
				}
				if errs != 1 || q.Waiting() != 0 {
					t.Errorf("%d of 4 callers failed and %d wait, want one and none", errs, q.Waiting())
				}
			})
		})
	}
}
