package redislimit_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/pace"
	"github.com/weirflow/weir/redislimit"
)

// Three engines, as three processes have them, with 100 waiting callers each, use one rate together.
func TestQueuesOfThreeEnginesShareOneRate(t *testing.T) {
	const perSecond, burst = 1000, 10
	server := redistest.Start(t)
	rate := newRule(t, "rate", weir.TokenBucket{Rate: weir.PerSecond(perSecond), Burst: burst})
	var granted atomic.Int64
	var callers sync.WaitGroup
	start := time.Now()
	for range 3 {
		queue, err := pace.NewQueue(newEngine(t, dial(t, server), redislimit.Options{}), pace.QueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			callers.Go(func() {
				for range 5 {
					if _, err := queue.Wait(t.Context(), rate.For("vendor", 1)); err != nil {
						t.Error(err)
						return
					}
					n := granted.Add(1)
					if most := burst + perSecond*time.Since(start).Seconds(); float64(n) > most {
						t.Errorf("%d grants after %v, want at most %.0f", n, time.Since(start), most)
					}
				}
			})
		}
	}
	callers.Wait()
	if n := granted.Load(); n != 1500 {
		t.Errorf("%d grants, want 1500", n)
	}
	t.Logf("1500 grants at %d/s took %v", perSecond, time.Since(start))
}

// The server forgets its scripts while a caller waits for a slot that another process holds.
func TestAWaitingCallerGoesAlthoughTheServerForgotItsScripts(t *testing.T) {
	server := redistest.Start(t)
	engine := newEngine(t, dial(t, server), redislimit.Options{})
	slots := newRule(t, "slots", weir.Concurrency{Slots: 1, Lease: time.Hour})
	held, err := newEngine(t, dial(t, server), redislimit.Options{}).Reserve(t.Context(), slots.For("vendor", 1))
	if err != nil {
		t.Fatal(err)
	}
	queue, err := pace.NewQueue(engine, pace.QueueOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		a, err := queue.Acquire(t.Context(), slots.For("vendor", 1))
		if err == nil {
			err = a.Done(t.Context())
		}
		got <- err
	}()
	for engine.Stats().Decisions < 2 { // until the caller has asked
		time.Sleep(time.Millisecond)
	}
	server.Do("SCRIPT", "FLUSH")
	if err := held.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-got:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("the slot was released, and the waiting caller did not get it")
	}
}
