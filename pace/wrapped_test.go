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
	"github.com/weirflow/weir/internal/randtest"
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

// A clock of a memory engine panics now and then, on whatever goroutine it is read. Each time that ends one wait at most.
func TestAClockThatPanicsEndsOneWait(t *testing.T) {
	for seed := range randtest.Seeds(t, 10, 10) {
		synctest.Test(t, func(t *testing.T) {
			random := randtest.New(seed)
			var bad atomic.Bool
			var panics, failed, granted atomic.Int64
			bad.Store(true)
			q := mustQueue(t, weir.NewMemory(weir.MemoryOptions{Clock: func() int64 {
				if bad.Load() && random.IntN(4) == 0 {
					panics.Add(1)
					panic("the clock")
				}
				return time.Now().UnixNano()
			}}))
			slots, rate := rule(t, "slots", "concurrency 2 lease 1s"), rule(t, "rate", "token bucket 50/s burst 1")
			ctx, stop := context.WithCancel(t.Context())
			var callers sync.WaitGroup
			for i := range 8 {
				callers.Go(func() {
					for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
						a, err := q.Acquire(ctx, []weir.Request{slots.For("k", 1), rate.For("k", 1)}[:1+i%2]...)
						if err != nil {
							failed.Add(1)
							continue
						}
						granted.Add(1)
						time.Sleep(3 * time.Millisecond)
						func() {
							defer func() { _ = recover() }() // the caller reads the clock itself
							_ = a.Done(context.Background())
						}()
					}
				})
			}
			time.Sleep(3 * time.Second)
			if n, p := failed.Load(), panics.Load(); p < 20 || n > p {
				t.Errorf("seed %d: %d waits failed of %d panics", seed, n, p)
			}
			bad.Store(false)
			before := granted.Load()
			time.Sleep(5 * time.Second)
			if n := granted.Load() - before; n < 300 {
				t.Errorf("seed %d: %d callers went in the 5 s after the clock was well", seed, n)
			}
			stop()
			callers.Wait()
			if q.Waiting() != 0 || q.Stats().Waiting != 0 {
				t.Errorf("seed %d: %d or %d callers wait", seed, q.Waiting(), q.Stats().Waiting)
			}
		})
	}
}
