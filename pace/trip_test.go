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
	"github.com/weirflow/weir/internal/waittest"
)

// Callers of one process ask for the same, and some leave while a trip asks for them. The others go in order of arrival.
func TestCallersKeepTheirOrderThoughSomeLeaveDuringATrip(t *testing.T) {
	grants := 0
	for seed := range randtest.Seeds(t, 200, 100) {
		synctest.Test(t, func(t *testing.T) {
			random := randtest.New(seed)
			server := newServer(t)
			a, b := rule(t, "a", "concurrency 1 lease 30s"), rule(t, "b", "concurrency 2 lease 30s")
			connect := func(seed uint64) weir.Engine {
				return server.Connect(waittest.Network{Way: waittest.Between(randtest.New(seed), 0, 20*time.Millisecond)})
			}
			q, other := mustQueue(t, connect(seed)), mustQueue(t, connect(seed+1))
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					for range 20 {
						if slot, err := other.Acquire(t.Context(), a.For("k", 1)); err == nil {
							time.Sleep(20 * time.Millisecond)
							_ = slot.Done(context.Background())
						}
					}
				})
			}
			var mu sync.Mutex
			went := map[int]time.Time{}
			for i := range 60 {
				both, leaves := random.IntN(3) == 0, random.IntN(3) == 0
				hold, patience := time.Duration(random.Int64N(int64(60*time.Millisecond))), time.Duration(random.Int64N(int64(300*time.Millisecond)))
				all.Go(func() {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if leaves {
						defer time.AfterFunc(patience, cancel).Stop()
					}
					requests := []weir.Request{a.For("k", 1)}
					if both {
						requests = append(requests, b.For("k", 1))
					}
					slot, err := q.Acquire(ctx, requests...)
					if err != nil {
						return
					}
					if !both {
						mu.Lock()
						went[i] = time.Now()
						mu.Unlock()
					}
					time.Sleep(hold)
					_ = slot.Done(context.Background())
				})
				synctest.Wait()
				time.Sleep(time.Duration(random.Int64N(int64(30 * time.Millisecond))))
			}
			all.Wait()
			for i, at := range went {
				for j, later := range went {
					if i < j && later.Before(at) {
						t.Errorf("caller %d went %v before the older caller %d", j, at.Sub(later), i)
					}
				}
			}
			grants += len(went)
			time.Sleep(2 * time.Second)
		})
	}
	if grants == 0 {
		t.Error("no caller went")
	}
}

// The answer that grants a slot takes longer than its lease. The slot is another caller's by then, so the caller asks anew.
func TestAcquireHandsOverNoLeaseThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(t)
		slots := rule(t, "slots", "concurrency 1 lease 500ms")
		var ways atomic.Int64
		q := mustQueue(t, server.Connect(waittest.Network{Way: func() time.Duration {
			if ways.Add(1) == 2 { // the first answer
				return 600 * time.Millisecond
			}
			return time.Millisecond
		}}))
		a, err := q.Acquire(t.Context(), slots.For("k", 1))
		if err != nil {
			t.Fatal(err)
		}
		if d, err := server.Memory.Take(t.Context(), slots.For("k", 1)); err != nil || d.Allowed {
			t.Errorf("while a caller holds the slot another one takes it (%v), because its lease had ended when it was handed over", err)
		}
		_ = a.Done(t.Context())
		time.Sleep(time.Second)
	})
}

// A key sleeps until an instant. A caller of any flow whose deadline is before it is refused when it comes, and waits for nothing.
func TestACallerOfAnotherFlowIsRefusedAtOnceToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, queues := queuesOn(t, 1)
		log := rule(t, "log", "sliding log 2/m")
		_, _ = queues[0].Wait(t.Context(), log.For("k", 2))
		ctx, leave := context.WithCancel(t.Context())
		go queues[0].Wait(ctx, log.For("k", 1))
		synctest.Wait()
		start := time.Now()
		own, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := mustFlow(t, queues[0], "another", 1).Wait(own, log.For("k", 1))
		if !errors.As(err, new(*weir.WaitError)) || time.Since(start) > 0 {
			t.Errorf("a caller that has 10 s of the minute was refused after %v: %v; want a WaitError at once", time.Since(start), err)
		}
		leave()
		synctest.Wait()
	})
}

// The call of a caller that has left ends before the engine's answer. That is no failure of the engine, after which callers
// pause: the one behind asks at once.
func TestACallerThatLeavesDuringATripDelaysNobody(t *testing.T) {
	for _, limit := range []string{"sliding log 100/s", "concurrency 100 lease 30s"} {
		t.Run(limit, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const way = 5 * time.Millisecond
				r := rule(t, "r", limit)
				q := mustQueue(t, newServer(t).Connect(waittest.Network{Way: func() time.Duration { return way }}))
				for range 5 {
					impatient, leave := context.WithTimeout(t.Context(), way)
					go func() { _, _ = q.Acquire(impatient, r.For("k", 2)) }()
					synctest.Wait()
					began := time.Now()
					a, err := q.Acquire(t.Context(), r.For("k", 1))
					if err != nil {
						t.Fatal(err)
					}
					if took, want := time.Since(began), way+2*way; took > want {
						t.Errorf("a caller behind one that left after %v went after %v, want %v", way, took, want)
					}
					_ = a.Done(t.Context())
					leave()
				}
				time.Sleep(time.Second)
			})
		})
	}
}
