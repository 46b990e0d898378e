package pace_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/layertest"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/waittest"
	"github.com/weirflow/weir/pace"
)

func TestASlotThatAnotherQueueReleasesIsFoundWithinASecond(t *testing.T) {
	for _, limit := range []string{"concurrency 1 lease 1m", "concurrency 1", "concurrency 1 lease 1m and rate gate 100/s"} {
		synctest.Test(t, func(t *testing.T) {
			engine := weir.NewMemory(weir.MemoryOptions{})
			slots := rule(t, "slots", limit)
			var queues [2]*pace.Queue
			for i := range queues {
				var err error
				if queues[i], err = pace.NewQueue(layertest.Around(engine), pace.QueueOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			held, err := queues[0].Acquire(t.Context(), slots.For("k", 1))
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			time.AfterFunc(5*time.Second, func() { _ = held.Done(t.Context()) })
			other, err := queues[1].Acquire(t.Context(), slots.For("k", 1))
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took < 5*time.Second || took > 6*time.Second {
				t.Errorf("%s: the other queue has the slot after %v, want 5s to 6s", limit, took)
			}
			_ = other.Done(t.Context())
		})
	}
}

// On the memory engine nothing renews a lease: it bounds the time for which a slot is held. At its end the slot goes to
// the next caller, and the late Done of the first frees no other slot.
func TestALeaseThatEndsWhileHeldGoesToTheNextCallerOfTheMemoryEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := weir.NewMemory(weir.MemoryOptions{})
		queue, err := pace.NewQueue(layertest.Around(engine), pace.QueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		slots := rule(t, "slots", "concurrency 1 lease 30s")
		start := time.Now()
		first, err := queue.Acquire(t.Context(), slots.For("k", 1))
		if err != nil {
			t.Fatal(err)
		}
		second, err := queue.Acquire(t.Context(), slots.For("k", 1))
		if err != nil || time.Since(start) != 30*time.Second {
			t.Fatalf("the second caller has the slot after %v (%v), want the end of the lease", time.Since(start), err)
		}
		select {
		case <-first.Lost():
			t.Error("Lost is closed, though the lease ended at its time")
		default:
		}
		if err := first.Done(t.Context()); err != nil {
			t.Error(err)
		}
		if d, err := engine.Peek(t.Context(), slots.For("k", 1)); err != nil || d.Allowed {
			t.Errorf("after the late Done: %+v, %v; want the slot held by the second caller", d, err)
		}
		_ = second.Done(t.Context())
	})
}

// An earlier caller, which has to wait two hours for its rate, keeps the slots from a later caller until another caller of
// the engine returns one.
func TestASlotThatAnEarlierCallerKeepsNoLongerIsFoundWithinASecond(t *testing.T) {
	for name, c := range map[string]struct {
		slots       string
		held, other int64 // slots that a caller of the queue returns after a second, and one of the engine after five
		earlier     int64 // slots that the earlier caller asks for
	}{
		"it lacks slots":                    {"concurrency 2 lease 1h", 0, 1, 2},
		"it lacked slots at the last look":  {"concurrency 2 lease 1h", 1, 1, 2},
		"a take would put off its instant":  {"concurrency 2 lease 3h", 0, 1, 1},
		"a take would, and slots were busy": {"concurrency 3 lease 3h", 1, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := weir.NewMemory(weir.MemoryOptions{})
				q := mustQueue(t, engine)
				slots, rate := rule(t, "slots", c.slots), rule(t, "rate", "rate gate 1/2h")
				_, err := q.Wait(t.Context(), rate.For("k", 1))
				if err != nil {
					t.Fatal(err)
				}
				if c.held > 0 {
					held := mustAcquire(t, q, slots.For("k", c.held))
					time.AfterFunc(time.Second, func() { _ = held.Done(t.Context()) })
				}
				other, err := engine.Reserve(t.Context(), slots.For("k", c.other))
				if err != nil || !other.Decision.Allowed {
					t.Fatal(other.Decision, err)
				}
				time.AfterFunc(5*time.Second, func() { _ = other.Done(t.Context()) })
				go q.Acquire(t.Context(), slots.For("k", c.earlier), rate.For("k", 1))
				synctest.Wait()
				start := time.Now()
				mustAcquire(t, q, slots.For("k", 1))
				if took := time.Since(start); took < 5*time.Second || took > 6*time.Second {
					t.Errorf("the later caller has the slot after %v, want 5s to 6s", took)
				}
			})
		})
	}
}

// In a process, a caller of all slots goes before younger ones of one slot and a rate. While another process holds a slot for good,
// it lets them go every other second.
func TestACallerOfAllSlotsKeepsThemFromYoungerOnesForASecondAtATime(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			_, queues := queuesOn(t, 2)
			slots := rule(t, "slots", "concurrency 16")
			rate := rule(t, "rate", "token bucket 1000/s")
			if elsewhere {
				mustAcquire(t, queues[1], slots.For("k", 1))
			}
			ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
			defer stop()
			var callers sync.WaitGroup
			defer callers.Wait()
			var small, large atomic.Int64
			hold := waittest.Between(randtest.New(randtest.Seed(t)), 20*time.Millisecond, 60*time.Millisecond)
			come := func(went *atomic.Int64, requests ...weir.Request) {
				callers.Go(func() {
					for ctx.Err() == nil {
						if a, err := queues[0].Acquire(ctx, requests...); err == nil {
							went.Add(1)
							time.Sleep(hold())
							_ = a.Done(t.Context())
						}
					}
				})
			}
			for range 40 {
				come(&small, slots.For("k", 1), rate.For("k", 1))
			}
			time.Sleep(time.Second)
			come(&large, slots.For("k", 16))
			time.Sleep(9 * time.Second)
			if n := large.Load(); !elsewhere && n < 20 {
				t.Errorf("%d callers of all slots went in 9 s, want 20 at least", n)
			}
			if n := small.Load(); n < 1000 {
				t.Errorf("%d callers of one slot went in 10 s, one elsewhere: %v, want 1,000 at least", n, elsewhere)
			}
		})
	}
}
