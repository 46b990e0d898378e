package pace_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/waittest"
	"github.com/weirflow/weir/pace"
)

// farBooked is a bucket of a unit a second, under which a process has booked a cost of 50 some 49 seconds ahead, beside small
// callers of another process that wait again and again.
type farBooked struct {
	rule         *weir.Rule
	large, small *pace.Queue
	leave        func() // ends the wait of the large caller
	die          func() // no call of its process reaches the server any more
	granted      atomic.Int64
	end          func()
}

func newFarBooked(t *testing.T) *farBooked {
	f := &farBooked{rule: rule(t, "r", "token bucket 60/m burst 60")}
	server := newServer(t)
	_, _ = server.Memory.Take(t.Context(), f.rule.For("k", 60))
	var dead atomic.Bool
	f.die = func() { dead.Store(true) }
	way := waittest.Between(randtest.New(randtest.Seed(t)), 150*time.Microsecond, 450*time.Microsecond)
	f.large = mustQueue(t, server.Connect(waittest.Network{Way: way, Down: dead.Load}))
	f.small = mustQueue(t, server.Connect(waittest.Network{Way: way}))
	ctx, stop := context.WithCancel(t.Context())
	own, leave := context.WithCancel(ctx)
	f.leave = leave
	var all sync.WaitGroup
	f.end = func() { stop(); all.Wait(); time.Sleep(5 * time.Minute) }
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				if _, err := f.small.Wait(ctx, f.rule.For("k", 1)); err == nil {
					f.granted.Add(1)
				}
			}
		})
	}
	all.Go(func() { _, _ = f.large.Wait(own, f.rule.For("k", 50)) })
	for range 60_000 { // until it is booked
		time.Sleep(10 * time.Millisecond)
		if d, err := server.Memory.Peek(t.Context(), f.rule.For("k", 1)); err == nil && d.RetryAfter > 40*time.Second {
			return f
		}
	}
	t.Fatal("the large caller is not booked after 10 minutes")
	return nil
}

// wantNext fails unless a small caller of the other process goes within a time.
func (f *farBooked) wantNext(t *testing.T, within time.Duration) {
	t.Helper()
	start, before := time.Now(), f.granted.Load()
	for f.granted.Load() == before && time.Since(start) < 2*time.Minute {
		time.Sleep(10 * time.Millisecond)
	}
	if took := time.Since(start); took > within {
		t.Errorf("the next small caller of the other process went after %v, want %v at most", took, within)
	}
}

// A large caller leaves, whose instant lies far ahead. Nobody waits for that instant, though a small caller of its process stays.
func TestALargeCallerThatLeavesKeepsNobody(t *testing.T) {
	for _, beside := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFarBooked(t)
			start, took := time.Now(), make(chan time.Duration, 1)
			if beside {
				go func() {
					_, _ = f.large.Wait(t.Context(), f.rule.For("k", 1))
					took <- time.Since(start)
				}()
				synctest.Wait()
			}
			f.leave()
			f.wantNext(t, 2500*time.Millisecond)
			if beside {
				if took := <-took; took > 2500*time.Millisecond {
					t.Errorf("the small caller of its process went after %v, want 2.5 s at most", took)
				}
			}
			f.end()
		})
	}
}

// A process dies. What it has booked passes unused: at most a second, and the time of its own cost.
func TestAProcessThatDiesKeepsOthersForASecondAndTheTimeOfItsCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFarBooked(t)
		f.die()
		f.wantNext(t, 50*time.Second+time.Second+time.Second) // and the unit after it
		f.leave()
		f.end()
	})
}

// A large caller leaves. The instant that it was told is none of those behind it.
func TestADeadlineIsNotRefusedForACallerThatHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, queues := queuesOn(t, 1)
		r, start := rule(t, "r", "token bucket 60/m burst 60"), time.Now()
		_, _ = server.Memory.Take(t.Context(), r.For("k", 60))
		ctx, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		defer all.Wait()
		all.Go(func() { _, _ = queues[0].Wait(ctx, r.For("k", 50)) })
		time.Sleep(3 * time.Second)
		all.Go(func() {
			if _, err := queues[0].Wait(t.Context(), r.For("k", 1)); err != nil || time.Since(start) > 5500*time.Millisecond {
				t.Errorf("the caller behind went after %v (%v), want 5 s, when the large one left", time.Since(start), err)
			}
		})
		time.Sleep(2 * time.Second)
		leave()
		synctest.Wait()
		own, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := queues[0].Wait(own, r.For("k", 1)); err != nil {
			t.Errorf("a caller of a unit that has 10 s, with 5 units in the bucket: %v", err)
		}
	})
}

// A caller of another flow goes before a large one that was refused. It is booked when it comes.
func TestACallerThatGoesBeforeARefusedOneIsBookedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, queues := queuesOn(t, 1)
		r := rule(t, "r", "token bucket 10/s burst 60")
		_, _ = server.Memory.Take(t.Context(), r.For("k", 60))
		ctx, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		defer all.Wait()
		defer leave()
		for _, cost := range []int64{1, 50} { // the first goes after 100 ms, so the flow is charged
			all.Go(func() { _, _ = mustFlow(t, queues[0], "large", 1).Wait(ctx, r.For("k", cost)) })
			synctest.Wait()
		}
		time.Sleep(150 * time.Millisecond)
		start := time.Now()
		if _, err := mustFlow(t, queues[0], "small", 1).Wait(t.Context(), r.For("k", 1)); err != nil || time.Since(start) > 50*time.Millisecond {
			t.Errorf("the caller went after %v (%v), want the 50 ms until a unit is there", time.Since(start), err)
		}
	})
}

// Callers of a large cost that have no time for it are refused, and come again. They take no booking from others.
func TestCallersWithoutTimeTakeNoBookingFromOthers(t *testing.T) {
	for _, asks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			server, r := newServer(t), rule(t, "r", "token bucket 100/s burst 20")
			q, err := pace.NewQueue(server.Connect(waittest.Network{Way: func() time.Duration { return 300 * time.Microsecond }}), pace.QueueOptions{NoBooking: asks})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = server.Memory.Take(t.Context(), r.For("k", 20))
			bad, good := mustFlow(t, q, "bad", 1), mustFlow(t, q, "good", 1)
			ctx, stop := context.WithCancel(t.Context())
			var all sync.WaitGroup
			var granted atomic.Int64
			for range 4 {
				all.Go(func() {
					for ctx.Err() == nil {
						own, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
						if _, err := bad.Wait(own, r.For("k", 20)); err == nil {
							t.Error("a caller of 20 units was admitted within 20 ms")
						}
						cancel()
						time.Sleep(100 * time.Microsecond)
					}
				})
			}
			for range 30 {
				all.Go(func() {
					for ctx.Err() == nil {
						if _, err := good.Wait(ctx, r.For("k", 1)); err == nil {
							granted.Add(1)
						}
					}
				})
			}
			time.Sleep(10 * time.Second)
			if n := granted.Load(); n < 980 {
				t.Errorf("asks %v: %d grants of 1000 in 10 s beside callers that are refused because of their deadlines, want 98 %%", asks, n)
			}
			stop()
			all.Wait()
			time.Sleep(time.Second)
		})
	}
}

// Keys that are booked and refused share trips.
func TestManyBookedKeysAreFewCallsAtRest(t *testing.T) {
	for _, limit := range []string{"token bucket 1/h burst 1", "rate gate 1/h"} {
		synctest.Test(t, func(t *testing.T) {
			server, queues := queuesOn(t, 1)
			r := rule(t, "r", limit)
			ctx, stop := context.WithCancel(t.Context())
			var all sync.WaitGroup
			const keys = 3000
			for i := range keys {
				_, _ = server.Memory.Take(t.Context(), r.For(strconv.Itoa(i), 1))
				all.Go(func() {
					if _, err := queues[0].Wait(ctx, r.For(strconv.Itoa(i), 1)); !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				})
			}
			time.Sleep(5 * time.Second)
			before := server.Calls.Load()
			time.Sleep(20 * time.Second)
			if each := float64(server.Calls.Load()-before) / 20; each > 2*keys/128+20 {
				t.Errorf("%s: %.0f calls a second for %d keys that are asked for each second, want twice the %d of full trips, and the 20 of their instants", limit, each, keys, keys/128)
			}
			stop()
			all.Wait()
			time.Sleep(time.Second)
		})
	}
}

// Flows share by weight, whatever their costs: an instant of one cost is of no use to a caller of another one, so none is booked
// that a caller who comes meanwhile should have.
func TestFlowsOfSeveralCostsShareBookedLimitsByWeight(t *testing.T) {
	for _, limit := range []string{"rate gate 100/s", "cycle 100/s", "token bucket 100/s burst 10"} {
		for _, callers := range []int{30, 3} {
			synctest.Test(t, func(t *testing.T) {
				server := newServer(t)
				q := mustQueue(t, server.Connect(waittest.Network{Way: waittest.Between(randtest.New(1), 150*time.Microsecond, 450*time.Microsecond)}))
				r := rule(t, "r", limit)
				ctx, stop := context.WithCancel(t.Context())
				var all sync.WaitGroup
				var units [3]atomic.Int64
				weights, costs := []int64{1, 2, 5}, []int64{1, 3, 1}
				for f := range weights {
					flow := mustFlow(t, q, strconv.Itoa(f), weights[f])
					for range callers {
						all.Go(func() {
							for ctx.Err() == nil {
								if _, err := flow.Wait(ctx, r.For("k", costs[f])); err == nil {
									units[f].Add(costs[f])
								}
							}
						})
					}
				}
				time.Sleep(60 * time.Second)
				for f, w := range weights {
					apart := 0.02 // the burst at the beginning, and the last callers
					if callers == 3 && limit == "cycle 100/s" {
						apart = 0.13 // of a cycle that begins, three callers take nine units before they come again
					}
					if got, want := float64(units[f].Load()), 750*float64(w); got < want*(1-apart) || got > want*(1+apart) {
						t.Errorf("%s, %d callers a flow: %d, %d and %d units, want 750, 1500 and 3750 by weights", limit, callers, units[0].Load(), units[1].Load(), units[2].Load())
						break
					}
				}
				stop()
				all.Wait()
				time.Sleep(5 * time.Second)
			})
		}
	}
}

// Booking gives large costs of one process a share beside small ones of others. Without it the small ones starve them: the figures of
// the page on waiting.
func TestLargeCostsHaveAShareOnlyByBooking(t *testing.T) {
	for _, asks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			server, r := newServer(t), rule(t, "r", "token bucket 100/s burst 100")
			ctx, stop := context.WithCancel(t.Context())
			var all sync.WaitGroup
			var units [3]atomic.Int64
			for p, cost := range []int64{100, 1, 1} {
				q, err := pace.NewQueue(server.Connect(waittest.Network{Way: waittest.Between(randtest.New(uint64(p)), 150*time.Microsecond, 450*time.Microsecond)}), pace.QueueOptions{NoBooking: asks})
				if err != nil {
					t.Fatal(err)
				}
				for range 4 {
					all.Go(func() {
						for ctx.Err() == nil {
							if _, err := q.Wait(ctx, r.For("k", cost)); err == nil {
								units[p].Add(cost)
							}
						}
					})
				}
			}
			time.Sleep(10 * time.Second)
			before := units[0].Load()
			time.Sleep(2 * time.Minute)
			large := units[0].Load() - before
			t.Logf("asks %v: callers of 100 units got %d of 12,000 units", asks, large)
			if !asks && (large < 3600 || large > 4800) {
				t.Errorf("callers of 100 units got %d of 12,000 units beside two processes with callers of one, want 30 to 40 %%", large)
			}
			if asks && large > 0 {
				t.Errorf("without bookings callers of 100 units got %d of 12,000 units: the page says that they are starved", large)
			}
			stop()
			all.Wait()
			time.Sleep(5 * time.Second)
		})
	}
}
