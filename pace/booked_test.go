package pace_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
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

func TestBookedCallersOfSeveralQueuesUseTheRateWholeInOrderWithinEach(t *testing.T) {
	for _, limits := range []string{"token bucket 10/s burst 1", "cycle 1/100ms", "leaky bucket 10/s queue 1000", "token bucket 10/s burst 1 and cycle 2/200ms", "rate gate 10/s"} {
		synctest.Test(t, func(t *testing.T) {
			server, queues := queuesOn(t, 3)
			vendor, start := rule(t, "vendor", limits), time.Now()
			time.Sleep(time.Until(start.Truncate(time.Second).Add(time.Second)))
			began := time.Now()
			var mu sync.Mutex
			var went []int
			var callers sync.WaitGroup
			for i := range 300 {
				callers.Go(func() {
					if _, err := queues[i*7%3].Wait(t.Context(), vendor.For("k", 1)); err != nil {
						t.Error(err)
					}
					mu.Lock()
					went = append(went, i)
					mu.Unlock()
				})
				time.Sleep(30 * time.Millisecond)
			}
			callers.Wait()
			last := [3]int{-1, -1, -1}
			for _, caller := range went {
				if q := caller * 7 % 3; caller < last[q] {
					t.Fatalf("%s: caller %d went after a later one of its queue", limits, caller)
				} else {
					last[q] = caller
				}
			}
			if took := time.Since(began); took < 29*time.Second-time.Millisecond || took > 31*time.Second {
				t.Errorf("%s: 300 callers took %v, want the 29 to 29.9 s of the limit, and a second at most", limits, took)
			}
			if calls := server.Calls.Load(); calls > 870 {
				t.Errorf("%s: %d calls for 300 grants, want at most 2.9 a grant", limits, calls)
			}
		})
	}
}

// The last caller of a key leaves while a booking is on its way, and the next comes before the answer.
func TestACallerComesWhenTheLastOneHasLeftDuringABooking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trip := 20 * time.Millisecond
		q, vendor := mustQueue(t, newServer(t).Connect(waittest.Network{Way: func() time.Duration { return trip / 2 }})), rule(t, "vendor", "token bucket 1/s burst 1")
		var all sync.WaitGroup
		defer all.Wait()
		for i := range 400 {
			key := strconv.Itoa(i)
			waits := func(wait time.Duration) {
				ctx, leave := context.WithTimeout(context.WithoutCancel(t.Context()), wait)
				defer leave()
				_, _ = q.Wait(ctx, vendor.For(key, 1))
			}
			waits(time.Minute)
			all.Go(func() {
				ctx, leave := context.WithCancel(t.Context())
				time.AfterFunc(time.Duration(i)*3*time.Millisecond, leave)
				_, _ = q.Wait(ctx, vendor.For(key, 1))
				waits(time.Minute)
			})
		}
	})
}

// Callers of several costs are booked in one call, and those of two are refused because of their deadlines.
func TestCallersOfSeveralCostsAreRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, queues := queuesOn(t, 1)
		vendor, start := rule(t, "vendor", "token bucket 1/s burst 10"), time.Now()
		mustAcquire(t, queues[0], vendor.For("k", 10))
		var callers sync.WaitGroup
		for cost, deadline := range map[int64]time.Duration{1: time.Hour, 2: 1500 * time.Millisecond, 3: 1600 * time.Millisecond, 4: time.Hour} {
			callers.Go(func() {
				time.Sleep(time.Duration(cost) * time.Millisecond)
				ctx, cancel := context.WithDeadline(t.Context(), start.Add(deadline))
				defer cancel()
				_, err := queues[0].Wait(ctx, vendor.For("k", cost))
				if late := errors.As(err, new(*weir.WaitError)); late != (deadline < time.Hour) {
					t.Errorf("cost %d: %v", cost, err)
				}
			})
		}
		callers.Wait()
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("the last caller goes after %v, want 5s", took)
		}
	})
}

// A caller that asks, because one of several keys waited, is not overtaken by a later one for the same key once that one has
// left. It sleeps without a place, because one of another flow went before it.
func TestACallerThatAsksIsNotOvertakenByOneThatWouldBook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, queues := queuesOn(t, 1)
		q, rate, slow := queues[0], rule(t, "rate", "token bucket 1/s burst 1"), rule(t, "slow", "token bucket 1/h burst 1")
		mustAcquire(t, q, rate.For("k", 1))
		mustAcquire(t, q, slow.For("", 1))
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		go func() { _, _ = q.Wait(ctx, rate.For("k", 1), slow.For("", 1)) }()
		went := make(chan int, 3)
		flow := mustFlow(t, q, "a", 1)
		for i, wait := range []func(context.Context, ...weir.Request) (weir.Decision, error){flow.Wait, q.Wait, q.Wait} {
			if i == 2 {
				time.Sleep(time.Second) // the first has gone, and the second sleeps
				leave()
			}
			time.Sleep(50 * time.Millisecond)
			go func() {
				if _, err := wait(t.Context(), rate.For("k", 1)); err != nil {
					t.Error(err)
				}
				went <- i
			}()
		}
		for want := range 3 {
			if i := <-went; i != want {
				t.Errorf("caller %d goes, want caller %d", i, want)
			}
		}
	})
}

func TestACallerThatLeavesPassesItsInstantOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, queues := queuesOn(t, 1)
		vendor := rule(t, "vendor", "token bucket 1/s burst 1")
		ctx, leave := context.WithCancel(t.Context())
		start, went := time.Now(), make([]time.Duration, 6)
		var callers sync.WaitGroup
		for i := range went {
			own := t.Context()
			if i == 2 || i == 5 {
				own = ctx
			}
			callers.Go(func() {
				_, err := queues[0].Wait(own, vendor.For("k", 1))
				if left := i == 2 || i == 5; left != errors.Is(err, context.Canceled) {
					t.Errorf("caller %d: %v", i, err)
				}
				went[i] = time.Since(start)
			})
			synctest.Wait()
		}
		leave()
		callers.Wait()
		for i, want := range []time.Duration{0, 1, 0, 2, 3, 0} {
			if went[i] != want*time.Second {
				t.Errorf("caller %d went after %v, want %v", i, went[i], want*time.Second)
			}
		}
		if _, err := queues[0].Wait(t.Context(), vendor.For("k", 1)); err != nil || time.Since(start) != 4*time.Second {
			t.Errorf("the next caller went after %v with %v, want the 4 s of the cancelled instants", time.Since(start), err)
		}
	})
}

func TestABookedCallerIsRefusedAtOnceIfItsInstantIsTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, queues := queuesOn(t, 1)
		for _, limits := range []string{"token bucket 1/10s burst 1", "rate gate 1/10s", "leaky bucket 1/10s queue 5"} {
			vendor, start := rule(t, limits, limits), time.Now()
			if _, err := queues[0].Wait(t.Context(), vendor.For("k", 1)); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
			_, err := queues[0].Wait(ctx, vendor.For("k", 1))
			cancel()
			var late *weir.WaitError
			if !errors.As(err, &late) || !errors.Is(err, context.DeadlineExceeded) || late.Need != 10*time.Second || time.Since(start) > 0 {
				t.Errorf("%s: got %v after %v, want a WaitError of 10 s at once", limits, err, time.Since(start))
			}
			var never *weir.CostError
			if _, err := queues[0].Wait(t.Context(), vendor.For("k", 7)); !errors.As(err, &never) {
				t.Errorf("%s: a cost of 7: got %v, want a CostError", limits, err)
			}
		}
		if n := queues[0].Waiting(); n != 0 {
			t.Errorf("%d callers wait at the end", n)
		}
	})
}

func TestCallersBeyondTheBookingsOfAGateGoInOrderToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, queues := queuesOn(t, 1)
		gate := rule(t, "gate", "rate gate 2/s")
		went := arrive(t.Context(), t, queues[0], 21, func(int) []weir.Request { return []weir.Request{gate.For("k", 1)} })()
		for i, at := range went {
			if want := time.Duration(i/2) * time.Second; at < want || at > want+250*time.Millisecond {
				t.Errorf("caller %d went after %v, want %v", i, at, want)
			}
		}
	})
}

// A caller that waits for two keys is not starved by callers of one of them, which book nothing meanwhile.
func TestACallerOfTwoKeysIsNotStarvedByBookings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, queues := queuesOn(t, 1)
		host, total := rule(t, "host", "token bucket 1/s burst 1"), rule(t, "total", "token bucket 10/s burst 1")
		ctx, stop := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		for range 20 {
			callers.Go(func() {
				for ctx.Err() == nil {
					_, _ = queues[0].Wait(ctx, total.For("all", 1))
				}
			})
		}
		time.Sleep(time.Second)
		start := time.Now()
		if _, err := queues[0].Wait(t.Context(), host.For("a", 1), total.For("all", 1)); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("the caller of two keys waited for %v beside 20 callers of one, which need 2 s", took)
		}
		stop()
		callers.Wait()
	})
}

func TestCallersThatComeAndGoLoseNoBookedUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, queues := queuesOn(t, 2)
		vendor, start := rule(t, "vendor", "token bucket 100/s burst 5"), time.Now()
		var granted atomic.Int64
		var callers sync.WaitGroup
		random := rand.New(rand.NewPCG(1, 2))
		for range 2000 {
			own := t.Context()
			if random.IntN(3) == 0 {
				leaving, cancel := context.WithCancel(own)
				own = leaving
				time.AfterFunc(time.Duration(random.IntN(3000))*time.Millisecond, cancel)
			}
			q := queues[random.IntN(2)]
			callers.Go(func() {
				if _, err := q.Wait(own, vendor.For("k", 1)); err == nil {
					n := granted.Add(1)
					if most := 5 + 100*time.Since(start).Seconds(); float64(n) > most+1e-6 {
						t.Errorf("%d grants after %v, want at most %.2f", n, time.Since(start), most)
					}
				}
			})
			time.Sleep(time.Duration(random.IntN(10)) * time.Millisecond)
		}
		callers.Wait()
		for i, q := range queues {
			if n := q.Waiting(); n != 0 {
				t.Errorf("queue %d: %d callers wait at the end", i, n)
			}
		}
		if n := granted.Load(); n < 1300 {
			t.Errorf("%d grants of 2000 callers, a third of which left at some time", n)
		}
	})
}

// Little is booked ahead, so a crowd that leaves wastes little.
func TestCallersThatLeaveTogetherLeaveNoBookingBehind(t *testing.T) {
	for _, limits := range []string{"token bucket 1/s burst 1", "cycle 1/s", "rate gate 1/s"} {
		synctest.Test(t, func(t *testing.T) {
			server, queues := queuesOn(t, 1)
			vendor := rule(t, "vendor", limits)
			if d, err := server.Memory.Take(t.Context(), vendor.For("k", 1)); err != nil || !d.Allowed {
				t.Fatalf("%s: got %+v, %v", limits, d, err)
			}
			ctx, leave := context.WithCancel(t.Context())
			var callers sync.WaitGroup
			for range 50 {
				callers.Go(func() { _, _ = queues[0].Wait(ctx, vendor.For("k", 1)) })
			}
			synctest.Wait()
			leave()
			callers.Wait()
			time.Sleep(300 * time.Millisecond) // until the instants that were booked ahead have passed
			if d, err := server.Memory.Peek(t.Context(), vendor.For("k", 1)); err != nil || d.RetryAfter > time.Second {
				t.Errorf("%s: after 50 callers have left, the next unit comes in %v (%v), want 1s at most", limits, d.RetryAfter, err)
			}
		})
	}
}

// Callers that come and leave waste little of a rate: an instant of a caller that leaves goes to the next one.
func TestCallersThatLeaveWasteLittleOfARate(t *testing.T) {
	for _, processes := range []int{1, 3} {
		for _, trip := range []time.Duration{600 * time.Microsecond, 20 * time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				server := newServer(t)
				vendor := rule(t, "vendor", "token bucket 100/s burst 1")
				ctx, stop := context.WithCancel(t.Context())
				random := randtest.New(randtest.Seed(t))
				patience := func() time.Duration { // 200 ms on average
					return time.Duration(random.ExpFloat64() * float64(200*time.Millisecond))
				}
				var callers sync.WaitGroup
				var granted atomic.Int64
				for i := range processes {
					q := mustQueue(t, server.Connect(waittest.Network{Way: func() time.Duration { return trip / 2 }}))
					for range 150 / processes {
						callers.Go(func() {
							for ctx.Err() == nil {
								own, cancel := context.WithCancel(ctx)
								timer := time.AfterFunc(patience(), cancel)
								if _, err := q.Wait(own, vendor.For("k", 1)); err == nil {
									granted.Add(1)
								}
								timer.Stop()
								cancel()
							}
						})
					}
					time.Sleep(time.Duration(i) * time.Millisecond)
				}
				time.Sleep(time.Second)
				calls := server.Calls.Load()
				before := granted.Load()
				time.Sleep(20 * time.Second)
				now := server.Calls.Load()
				grants := granted.Load() - before
				each := float64(now-calls) / float64(grants)
				t.Logf("%d processes, round trip %v: %d of 2000 units used, %.2f calls a grant", processes, trip, grants, each)
				if grants < 1900 || grants > 2010 || each > 1.6 {
					t.Errorf("%d processes, round trip %v: %d grants in 20 s, want 95 %% of 2000 at least; %.2f calls a grant, want at most 1.6", processes, trip, grants, each)
				}
				stop()
				callers.Wait()
				time.Sleep(300 * time.Millisecond)
				if d, err := server.Memory.Peek(t.Context(), vendor.For("k", 1)); err != nil || !d.Allowed {
					t.Errorf("300 ms after the last caller has left, the key refuses for %v (%v)", d.RetryAfter, err)
				}
			})
		}
	}
}

func TestFlushGivesBackTheInstantsThatNobodyNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, queues := queuesOn(t, 1)
		vendor := rule(t, "vendor", "token bucket 20/s burst 1")
		ctx, leave := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		for range 10 {
			callers.Go(func() { _, _ = queues[0].Wait(ctx, vendor.For("k", 1)) })
		}
		time.Sleep(10 * time.Millisecond)
		leave()
		callers.Wait()
		if err := queues[0].Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if d, err := server.Memory.Peek(t.Context(), vendor.For("k", 1)); err != nil || d.RetryAfter > 50*time.Millisecond {
			t.Errorf("after a flush the key refuses for %v (%v), want the 50 ms of the only unit that was used", d.RetryAfter, err)
		}
	})
}

// Callers of a flow, and those that ask for another key too, are not starved by those that book in their process.
func TestCallersThatCannotBeBookedAreNotStarvedByBookings(t *testing.T) {
	for name, wait := range map[string]func(t *testing.T, q *pace.Queue, total, host *weir.Rule) error{
		"of a flow": func(t *testing.T, q *pace.Queue, total, _ *weir.Rule) error {
			flow, err := q.InFlow("f", 1)
			if err == nil {
				_, err = flow.Wait(t.Context(), total.For("all", 1))
			}
			return err
		},
		"of two keys": func(t *testing.T, q *pace.Queue, total, host *weir.Rule) error {
			_, err := q.Wait(t.Context(), total.For("all", 1), host.For("h", 1))
			return err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, queues := queuesOn(t, 1)
			total, host := rule(t, "total", "token bucket 10/s burst 1"), rule(t, "host", "token bucket 10/s burst 1")
			ctx, stop := context.WithCancel(t.Context())
			var callers sync.WaitGroup
			for range 20 {
				callers.Go(func() {
					for ctx.Err() == nil {
						_, _ = queues[0].Wait(ctx, total.For("all", 1))
					}
				})
			}
			time.Sleep(3 * time.Second)
			start := time.Now()
			if err := wait(t, queues[0], total, host); err != nil {
				t.Error(err)
			}
			if took := time.Since(start); took > 6*time.Second {
				t.Errorf("a caller %s beside 20 that book waited for %v, want about the 2 s of those before it", name, took)
			}
			stop()
			callers.Wait()
			time.Sleep(2 * time.Second)
		})
	}
}

// Callers of slots and a rate have their share of the rate beside callers of the rate alone in their process.
func TestCallersThatAskHaveTheirShareBesideBookings(t *testing.T) {
	for _, askers := range []int{1, 5, 20} {
		synctest.Test(t, func(t *testing.T) {
			const bookers, rate, seconds = 20, 100, 10
			_, queues := queuesOn(t, 2)
			vendor, slots := rule(t, "vendor", "token bucket 100/s burst 1"), rule(t, "slots", "concurrency 50 lease 30s")
			ctx, stop := context.WithCancel(t.Context())
			var booked, asked atomic.Int64
			var callers sync.WaitGroup
			for range bookers {
				callers.Go(func() {
					for ctx.Err() == nil {
						if _, err := queues[0].Wait(ctx, vendor.For("k", 1)); err == nil {
							booked.Add(1)
						}
					}
				})
			}
			for range askers {
				callers.Go(func() {
					for ctx.Err() == nil {
						if a, err := queues[0].Acquire(ctx, vendor.For("k", 1), slots.For("s", 1)); err == nil {
							asked.Add(1)
							_ = a.Done(context.Background())
						}
					}
				})
			}
			time.Sleep(2 * time.Second)
			b, a := booked.Load(), asked.Load()
			time.Sleep(seconds * time.Second)
			b, a = booked.Load()-b, asked.Load()-a
			share := float64(rate*seconds) * float64(askers) / float64(askers+bookers)
			if math.Abs(float64(a)-share) > 20+0.2*share || a+b < 0.95*rate*seconds {
				t.Errorf("%d callers that ask, %d that book: %d and %d grants, want about %.0f of %d", askers, bookers, a, b, share, rate*seconds)
			}
			stop()
			callers.Wait()
			time.Sleep(2 * time.Second)
		})
	}
}

// A caller that sleeps for the rate of its host holds up no younger caller of the total.
func TestACallerThatSleepsForAHostBarsNobodyFromTheTotal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, queues := queuesOn(t, 2)
		total, host := rule(t, "total", "token bucket 100/s burst 1"), rule(t, "host", "token bucket 1/m burst 1")
		for i := range 50 {
			if _, err := server.Memory.Record(t.Context(), host.For(strconv.Itoa(i), 1)); err != nil {
				t.Fatal(err)
			}
			go queues[0].Wait(t.Context(), host.For(strconv.Itoa(i), 1), total.For("all", 1))
			time.Sleep(50 * time.Millisecond)
		}
		start := time.Now()
		var others sync.WaitGroup
		for i := range 50 {
			others.Go(func() {
				if _, err := queues[1].Wait(t.Context(), host.For("fresh"+strconv.Itoa(i), 1), total.For("all", 1)); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		others.Wait()
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("50 callers of fresh hosts took %v of a total of 100/s, want at most 3s", took)
		}
		time.Sleep(2 * time.Minute)
	})
}
