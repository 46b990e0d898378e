package pace_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

func TestOneReleaseWakesOneOfAThousandCallers(t *testing.T) {
	onBoth(t, func(t *testing.T, engine weir.Engine, calls func() int64) {
		q, slots := mustQueue(t, engine), rule(t, "slots", "concurrency 1 lease 1d")
		held := mustAcquire(t, q, slots.For("k", 1))
		ctx, stop := context.WithCancel(t.Context())
		var went atomic.Int64
		var callers sync.WaitGroup
		for range 1000 {
			callers.Go(func() {
				if _, err := q.Acquire(ctx, slots.For("k", 1)); err == nil {
					went.Add(1)
				} else if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		before := calls()
		if err := held.Done(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if n := went.Load(); n != 1 {
			t.Errorf("one release let %d callers go, want 1", n)
		}
		if n := calls() - before; n > 8 {
			t.Errorf("one release beside 1000 callers took %d calls, want at most 8", n)
		}
		stop()
		callers.Wait()
	})
}

// A slot that comes back without a word to the queue, and an engine that lost its memory, delay a waiting caller by a
// second at most.
func TestACallerGoesWithinASecondAlthoughNoReleaseIsSeen(t *testing.T) {
	for how, free := range map[string]func(t *testing.T, r *remote, slot *weir.Reservation){
		"the message of the release is lost": func(t *testing.T, _ *remote, slot *weir.Reservation) {
			if err := slot.Done(t.Context()); err != nil {
				t.Error(err)
			}
		},
		"a failover lost the slot": func(t *testing.T, r *remote, _ *weir.Reservation) { r.state.Store(mustMemory(t)) },
	} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newRemote(t)
				q, slots := mustQueue(t, engine), rule(t, "slots", "concurrency 1 lease 1d")
				slot, err := engine.Reserve(t.Context(), slots.For("k", 1)) // as another process
				if err != nil {
					t.Fatal(err)
				}
				const after = 90 * time.Minute
				time.AfterFunc(after, func() { free(t, engine, slot) })
				start := time.Now()
				mustAcquire(t, q, slots.For("k", 1))
				if took := time.Since(start); took < after || took > after+time.Second {
					t.Errorf("the caller went after %v, want within a second of %v", took, after)
				}
			})
		})
	}
}

// Between the questions of a queue another caller of the engine takes the slot that just came back, and returns it soon.
func TestACallerGoesWithinASecondAlthoughAnotherWasFaster(t *testing.T) {
	for reading := range int64(8) {
		synctest.Test(t, func(t *testing.T) {
			var before atomic.Int64 // readings of the clock before the other caller takes the slot
			before.Store(math.MaxInt64)
			slots, faster := rule(t, "slots", "concurrency 1 lease 1h"), func() {}
			engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 {
				if before.Add(-1) == -1 {
					faster()
				}
				return time.Now().UnixNano()
			}})
			faster = func() {
				if slot, err := engine.Reserve(t.Context(), slots.For("k", 1)); err == nil && slot.Decision.Allowed {
					time.AfterFunc(time.Second, func() { _ = slot.Done(t.Context()) })
				}
			}
			q := mustQueue(t, engine)
			held, err := engine.Reserve(t.Context(), slots.For("k", 1))
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			time.AfterFunc(time.Second/2, func() {
				_ = held.Done(t.Context())
				before.Store(reading)
			})
			mustAcquire(t, q, slots.For("k", 1))
			if took := time.Since(start); took > 3*time.Second {
				t.Errorf("the other caller was faster at reading %d: the caller went after %v, want at most 3s", reading, took)
			}
		})
	}
}

// A caller of two slots is the head of the line while callers of one slot come and go.
func TestACallerOfTwoSlotsIsNotStarvedByCallersOfOne(t *testing.T) {
	onBoth(t, func(t *testing.T, engine weir.Engine, _ func() int64) {
		q, slots := mustQueue(t, engine), rule(t, "slots", "concurrency 2 lease 1m")
		ctx, stop := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		for i := range 10 {
			callers.Go(func() {
				for ctx.Err() == nil {
					if a, err := q.Acquire(ctx, slots.For("k", 1)); err == nil {
						time.Sleep(time.Duration(100+7*i) * time.Millisecond)
						_ = a.Done(t.Context())
					}
				}
			})
		}
		time.Sleep(time.Second)
		start := time.Now()
		both := mustAcquire(t, q, slots.For("k", 2))
		if took := time.Since(start); took > time.Second { // ten callers before it, two at once, 0.16 s each
			t.Errorf("the caller of both slots waited for %v, want at most 1s", took)
		}
		_ = both.Done(t.Context())
		stop()
		callers.Wait()
	})
}

func TestCallersBehindOneOfTwoSlotsGoAtOnceWhenItLeaves(t *testing.T) {
	onBoth(t, func(t *testing.T, engine weir.Engine, _ func() int64) {
		q, slots := mustQueue(t, engine), rule(t, "slots", "concurrency 2 lease 1d")
		mustAcquire(t, q, slots.For("k", 1))
		ctx, leave := context.WithCancel(t.Context())
		go func() { _, _ = q.Acquire(ctx, slots.For("k", 2)) }()
		synctest.Wait()
		start, behind := time.Now(), make(chan time.Duration, 1)
		go func() {
			mustAcquire(t, q, slots.For("k", 1))
			behind <- time.Since(start)
		}()
		synctest.Wait()
		if len(behind) > 0 {
			t.Error("a caller of one slot overtook the caller of two")
		}
		time.Sleep(10 * time.Second)
		leave()
		if took := <-behind; took != 10*time.Second {
			t.Errorf("the caller behind went after %v, want the 10 s at which the one before it left", took)
		}
	})
}

// A holder that slept beyond its lease has lost its slot to another caller. It frees nothing when it wakes up.
func TestAHolderThatOutlivesItsLeaseFreesNoOtherSlot(t *testing.T) {
	onBoth(t, func(t *testing.T, engine weir.Engine, _ func() int64) {
		q, slots := mustQueue(t, engine), rule(t, "slots", "concurrency 1 lease 10s")
		late := mustAcquire(t, q, slots.For("k", 1))
		second := mustAcquire(t, q, slots.For("k", 1)) // when the lease of the first has ended
		third := make(chan struct{})
		go func() {
			mustAcquire(t, q, slots.For("k", 1))
			close(third)
		}()
		synctest.Wait()
		for range 2 {
			if err := late.Done(t.Context()); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(2 * time.Second)
		select {
		case <-third:
			t.Error("a holder that was late freed the slot of another one")
		default:
		}
		_ = second.Done(t.Context())
		<-third
	})
}
