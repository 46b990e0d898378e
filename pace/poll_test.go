package pace_test

import (
	"context"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/waittest"
)

// A process asks for the keys without news together, and more and more rarely.
func TestCallersOfTakenSlotsCostFewCalls(t *testing.T) {
	for _, c := range []struct {
		deaf bool
		come time.Duration // within which the callers come
		most int64         // calls in 10 s
	}{
		{false, 0, 50},            // polls do not double: 134
		{true, 0, 50},             // and 200
		{false, time.Second, 210}, // polls are not together: 2,000
		{true, time.Second, 210},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := newServer(t)
			slots := rule(t, "slots", "concurrency 1 lease 1m")
			holder, q := mustQueue(t, server.Connect(waittest.Network{})), mustQueue(t, server.Connect(waittest.Network{Deaf: func() bool { return c.deaf }}))
			ctx, stop := context.WithCancel(t.Context())
			var all sync.WaitGroup
			comes := waittest.Between(randtest.New(randtest.Seed(t)), 0, c.come)
			for i := range 200 {
				mustAcquire(t, holder, slots.For(strconv.Itoa(i), 1))
				all.Go(func() {
					time.Sleep(comes())
					_, _ = q.Acquire(ctx, slots.For(strconv.Itoa(i), 1))
				})
			}
			time.Sleep(5 * time.Second)
			before := server.Calls.Load()
			time.Sleep(10 * time.Second)
			if n := server.Calls.Load() - before; n > c.most {
				t.Errorf("200 callers of taken slots, deaf: %v, that came within %v made %d calls in 10 s, want %d at most", c.deaf, c.come, n, c.most)
			}
			stop()
			all.Wait()
			time.Sleep(time.Second)
		})
	}
}

// Processes with synchronised clocks that no signal reaches ask at different times.
func TestProcessesAskAtDifferentTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(t)
		slots := rule(t, "slots", "concurrency 1 lease 1m")
		mustAcquire(t, mustQueue(t, server.Connect(waittest.Network{})), slots.For("k", 1))
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var mu sync.Mutex
		calls := map[time.Time]int{}
		for range 100 {
			q := mustQueue(t, server.Connect(waittest.Network{Deaf: func() bool { return true }, Way: func() time.Duration {
				mu.Lock()
				defer mu.Unlock()
				calls[time.Now().Truncate(time.Millisecond)]++
				return 0
			}}))
			all.Go(func() { _, _ = q.Acquire(ctx, slots.For("k", 1)) })
		}
		time.Sleep(time.Second)
		mu.Lock()
		clear(calls) // of the first question
		mu.Unlock()
		time.Sleep(20 * time.Second)
		mu.Lock()
		asked := maps.Clone(calls)
		mu.Unlock()
		for at, n := range asked {
			if n /= 2; n > 20 { // one way to the server, and one back
				t.Errorf("%d of 100 processes asked at %v", n, at)
			}
		}
		stop()
		all.Wait()
		time.Sleep(time.Second)
	})
}

// A slot that comes free while the question about it is under way goes to the next caller, though the answer is a refusal.
func TestASlotThatComesFreeDuringAQuestionIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(t)
		slots := rule(t, "slots", "concurrency 1 lease 1m")
		held := mustAcquire(t, mustQueue(t, server.Connect(waittest.Network{})), slots.For("k", 1))
		var trips atomic.Int64
		q := mustQueue(t, server.Connect(waittest.Network{Way: func() time.Duration {
			if trips.Add(1) == 2 { // the first answer
				return 20 * time.Millisecond
			}
			return time.Millisecond
		}}))
		time.AfterFunc(10*time.Millisecond, func() { _ = held.Done(t.Context()) })
		start := time.Now()
		mustAcquire(t, q, slots.For("k", 1))
		if took := time.Since(start); took > 50*time.Millisecond {
			t.Errorf("the caller had the slot after %v, want 21 ms until the answer, a question and a random time of 5 ms", took)
		}
		time.Sleep(2 * time.Second)
	})
}
