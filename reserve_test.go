package weir_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
)

// bookable holds the limits that give future release times.
var bookable = []weir.Limit{
	weir.TokenBucket{Rate: weir.Per(3, 7*time.Second), Burst: 5},
	weir.LeakyBucket{Rate: weir.Per(3, 7*time.Second), Queue: 30, NoDelay: 2},
	weir.RateGate{Rate: weir.Per(5, 7*time.Second)},
	weir.Cycle{Rate: weir.Per(5, 7*time.Second)},
	weir.Bursty{Rate: weir.PerSecond(3)},
	weir.WarmUp{Rate: weir.PerSecond(3), Over: 4 * time.Second},
}

// answers returns the limiter's answers to every small cost, now and later.
func answers(lim *weir.Limiter) string {
	now, text := time.Now(), ""
	for _, after := range []time.Duration{0, 1, time.Second, 3 * time.Second, 7 * time.Second, 20 * time.Second, time.Minute} {
		for n := range int64(6) {
			text += fmt.Sprintln(after, n, lim.PeekAt(now.Add(after), n))
		}
	}
	return text
}

func mustReserve(t *testing.T, lim *weir.Limiter, n int64) *weir.Reservation {
	t.Helper()
	b, err := lim.Reserve(n, weir.Never)
	if err != nil {
		t.Fatalf("%v: Reserve(%d): %v", lim.Limit(), n, err)
	}
	return b
}

// usedBefore returns a limiter with a random past that has spent so much that a booking has to wait.
func usedBefore(t *testing.T, r *rand.Rand, limit weir.Limit) *weir.Limiter {
	lim := mustNew(t, limit)
	for range r.IntN(5) {
		lim.Take(1 + r.Int64N(5))
		time.Sleep(time.Duration(r.Int64N(3e9)))
	}
	for lim.Take(1+r.Int64N(3)).Allowed && r.IntN(6) > 0 {
	}
	return lim
}

func TestCancelledBookingLeavesNoTrace(t *testing.T) {
	for seed := range randtest.Seeds(t, 40, 4) {
		for _, limit := range bookable {
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 2))
				lim := usedBefore(t, r, limit)
				var was []string
				var bookings []*weir.Reservation
				for range 1 + r.IntN(4) {
					before := answers(lim)
					b := mustReserve(t, lim, 1+r.Int64N(3))
					if !b.Decision.Allowed || b.Decision.Delay == 0 {
						continue
					}
					was, bookings = append(was, before), append(bookings, b)
				}
				for i := len(bookings) - 1; i >= 0; i-- {
					bookings[i].Cancel(t.Context())
					if got := answers(lim); got != was[i] {
						t.Errorf("%v: after the newest of %d bookings was cancelled: got\n%swant\n%s", limit, i+1, got, was[i])
					}
				}
			})
		}
	}
}

func TestOlderBookingGivesNothingBackWhileAnInstantLiesAhead(t *testing.T) {
	for _, limit := range bookable {
		synctest.Test(t, func(t *testing.T) {
			lim := mustNew(t, limit)
			lim.Take(3)
			var older *weir.Reservation
			for older = mustReserve(t, lim, 2); older.Decision.Delay == 0; {
				older = mustReserve(t, lim, 2)
			}
			mustReserve(t, lim, 2)
			before := answers(lim)
			older.Cancel(t.Context())
			if got := answers(lim); got != before {
				t.Errorf("%v: an older booking came back:\n%swant\n%s", limit, got, before)
			}
		})
	}
}

// Without a later instant, a booking gives units back like a Record of them.
func TestBookingWhoseInstantHasComeGivesBackLikeRecord(t *testing.T) {
	for _, limit := range bookable {
		for _, actual := range []int64{0, 1, 2, 5} {
			synctest.Test(t, func(t *testing.T) {
				lim, twin := mustNew(t, limit), mustNew(t, limit)
				var newest *weir.Reservation
				for range 4 {
					newest = mustReserve(t, lim, 2)
					mustReserve(t, twin, 2)
				}
				time.Sleep(newest.Decision.Delay)
				if err := newest.Settle(t.Context(), actual); err != nil {
					t.Fatal(err)
				}
				signedAt(twin, time.Now(), actual-2)
				if got, want := answers(lim), answers(twin); got != want {
					t.Errorf("%v: reserved 2, settled at %d: got\n%swant\n%s", limit, actual, got, want)
				}
				newest.Settle(t.Context(), 7)
				newest.Cancel(t.Context())
				if got, want := answers(lim), answers(twin); got != want {
					t.Errorf("%v: settled again: got\n%swant\n%s", limit, got, want)
				}
			})
		}
	}
}

func TestNewestBookingSettledForLessKeepsItsInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The third unit in 10s waits until the first two leave the window.
		lim := mustNew(t, weir.RateGate{Rate: weir.Per(2, 10*time.Second)})
		lim.Take(1)
		time.Sleep(5 * time.Second)
		lim.Take(1)
		b := mustReserve(t, lim, 2)
		if b.Decision.Delay != 10*time.Second {
			t.Fatalf("delay %v, want 10s", b.Decision.Delay)
		}
		b.Settle(t.Context(), 1)
		time.Sleep(10*time.Second - 1)
		if lim.Allow() {
			t.Error("Allow overtook the unit with a release time 1ns later")
		}
		time.Sleep(time.Nanosecond)
		if !lim.Allow() || lim.Allow() {
			t.Error("one of two units was settled: want room for one more")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 10})
		lim.Take(10)
		b := mustReserve(t, lim, 6)
		b.Settle(t.Context(), 2)
		if d := lim.Peek(1); d.RetryAfter != 3*time.Second {
			t.Errorf("6 reserved and 2 settled: come back in %v, want 3s", d.RetryAfter)
		}
	})
}

// A booking behind waiting callers gets the time of its turn, is released then, and takes no more than its units.
func TestBookingBehindWaitersHasTheDelayOfItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(3), Burst: 1})
		lim.Allow()
		start := time.Now()
		waits := func() {
			if err := lim.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		}
		go waits()
		synctest.Wait()
		for i := range 29 {
			b := mustReserve(t, lim, 1)
			if want := (time.Duration(i+2)*time.Second + 2) / 3; b.Decision.Delay != want {
				t.Fatalf("booking %d: delay %v, want %v", i, b.Decision.Delay, want)
			}
		}
		waits()
		if got := time.Since(start); got != 31*time.Second/3+1 {
			t.Errorf("the waiter behind went after %v, want %v: no rounding piles up", got, 31*time.Second/3+1)
		}
	})
}

func TestBookingInLineIsCancelledWithoutDebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 4})
		lim.Take(4)
		first := mustReserve(t, lim, 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go lim.Wait(ctx)
		synctest.Wait()
		second, third := mustReserve(t, lim, 2), mustReserve(t, lim, 2)
		for _, b := range []struct {
			*weir.Reservation
			want time.Duration
		}{{first, 1e9}, {second, 4e9}, {third, 6e9}} {
			if b.Decision.Delay != b.want {
				t.Errorf("delay %v, want %v", b.Decision.Delay, b.want)
			}
		}
		first.Cancel(t.Context()) // older than a later release time: nothing comes back
		if got := mustReserve(t, lim, 1); got.Decision.Delay != 7*time.Second {
			t.Errorf("delay %v, want 7s: an older booking came back", got.Decision.Delay)
		} else {
			got.Cancel(t.Context())
		}
		third.Settle(t.Context(), 1)
		if got := mustReserve(t, lim, 1); got.Decision.Delay != 6*time.Second {
			t.Errorf("delay %v, want 6s: the unit that the third gave back, behind its instant", got.Decision.Delay)
		}
	})
}

func TestBookingIsRefusedIfItsTurnIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, lim := range map[string]*weir.Limiter{
			"two classes": mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1}, weir.Options{Weights: []int64{1, 1}}),
			"a gate":      mustNew(t, weir.RateGate{Rate: weir.PerSecond(1)}),
		} {
			lim.Allow()
			go lim.Wait(t.Context())
			synctest.Wait()
			b := mustReserve(t, lim, 1)
			if b.Decision.Allowed || b.Decision.RetryAfter <= 0 {
				t.Errorf("%s: a booking behind a waiter: %+v, want a refusal", name, b.Decision)
			}
			lim.Close()
		}
		var bad *weir.RequestError
		if _, err := mustNew(t, weir.FixedWindow{Rate: weir.PerDay(1)}).Reserve(1, 1); !errors.As(err, &bad) || bad.Field != "limit" {
			t.Errorf("a fixed window reserved for later: %v, want a RequestError of the limit", err)
		}
	})
}

func TestGateBooksAtMostTwiceItsUnitsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.RateGate{Rate: weir.PerSecond(3)})
		for range 9 {
			if b := mustReserve(t, lim, 1); !b.Decision.Allowed {
				t.Fatalf("refused: %+v", b.Decision)
			}
		}
		b := mustReserve(t, lim, 1)
		if b.Decision.Allowed || b.Decision.RetryAfter != time.Second {
			t.Errorf("a seventh unit ahead: %+v, want to come back in 1s", b.Decision)
		}
		time.Sleep(time.Second)
		if b := mustReserve(t, lim, 1); !b.Decision.Allowed {
			t.Errorf("after the RetryAfter: %+v", b.Decision)
		}
	})
}

// A delay that a Take announced is a promise, also if the state was a word then.
func TestACancellationBeforeAnAnnouncedReleaseGivesNothingBack(t *testing.T) {
	now := int64(1_700_000_000_000_000_000)
	k, err := weir.NewKeyedWith[string](weir.LeakyBucket{Rate: weir.PerSecond(10), Queue: 9}, weir.Options{Clock: func() int64 { return now }})
	if err != nil {
		t.Fatal(err)
	}
	booked, err := k.Reserve("a", 1, time.Hour)
	if err != nil || !booked.Decision.Allowed || booked.Decision.Delay != 0 {
		t.Fatal(booked.Decision, err)
	}
	first := k.Take("a", 1)
	booked.Cancel(t.Context())
	second := k.Take("a", 1)
	if first.Delay != 100*time.Millisecond || second.Delay != 200*time.Millisecond {
		t.Errorf("two units leave after %v and %v, want 100ms and 200ms", first.Delay, second.Delay)
	}
}

// What was taken after the instant of a booking stays taken, although the clock is before that instant again.
func TestACancellationAfterAStepBackKeepsLaterTakes(t *testing.T) {
	now := int64(1_700_000_000_000_000_000)
	l, err := weir.NewWith(weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 5}, weir.Options{Clock: func() int64 { return now }})
	if err != nil {
		t.Fatal(err)
	}
	l.AllowN(5)
	booked, err := l.Reserve(1, weir.Never)
	if err != nil || booked.Decision.Delay != time.Second {
		t.Fatal(booked.Decision, err)
	}
	now += int64(20 * time.Second)
	l.Peek(1) // the instant has passed, so Allow decides without the lock
	if !l.AllowN(5) {
		t.Fatal("the burst is refused")
	}
	now -= int64(19500 * time.Millisecond)
	booked.Cancel(t.Context())
	if now += int64(19500 * time.Millisecond); l.Allow() {
		t.Error("a unit more than the burst at one instant")
	}
}

// goers notes when callers and the owners of bookings go ahead.
type goers struct {
	sync.Mutex
	start time.Time
	at    map[string]time.Duration
	all   sync.WaitGroup
}

func newGoers() *goers { return &goers{start: time.Now(), at: map[string]time.Duration{}} }

func (g *goers) note(name string) {
	g.Lock()
	defer g.Unlock()
	g.at[name] = time.Since(g.start)
}

func (g *goers) wait(t *testing.T, l *weir.Limiter, name string) { g.waitN(t, l, name, 1) }

func (g *goers) waitN(t *testing.T, l *weir.Limiter, name string, n int64) {
	g.all.Go(func() {
		if err := l.WaitN(t.Context(), n); err != nil {
			t.Error(err)
		}
		g.note(name)
	})
	synctest.Wait()
}

func (g *goers) book(t *testing.T, l *weir.Limiter, name string) *weir.Reservation {
	return g.bookN(t, l, name, 1)
}

func (g *goers) bookN(t *testing.T, l *weir.Limiter, name string, n int64) *weir.Reservation {
	b := mustReserve(t, l, n)
	if !b.Decision.Allowed {
		t.Fatalf("the booking of %s is refused", name)
	}
	g.all.Go(func() {
		time.Sleep(b.Decision.Delay)
		g.note(name)
	})
	return b
}

// A booking keeps its instant when a late cost delays the waiters before it, and they go where the rate still allows it.
func TestBookingsGoBeforeTheWaitersThatALateCostDelays(t *testing.T) {
	for _, c := range []struct {
		back int64
		want string
	}{
		{0, "[w1 3s w2 4s w3 5s b1 6s b2 7s w4 8s w5 9s w6 10s]"},
		{2, "[w1 1s w2 2s w3 3s w4 4s w5 5s b1 6s b2 7s w6 8s]"},
		{4, "[w1 0s w2 1s w3 2s w4 3s w5 4s b1 6s b2 7s w6 7.999999999s]"}, // nobody overtakes a booking that came before
	} {
		synctest.Test(t, func(t *testing.T) {
			l := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1})
			g := newGoers()
			l.Allow()
			for i := range 5 {
				g.wait(t, l, fmt.Sprint("w", i+1))
			}
			for i := range 2 {
				g.book(t, l, fmt.Sprint("b", i+1))
			}
			g.wait(t, l, "w6")
			l.Record(2)
			if c.back > 0 {
				l.Return(c.back)
			}
			g.all.Wait()
			names := make([]string, 0, len(g.at))
			for name := range g.at {
				names = append(names, name)
			}
			slices.SortFunc(names, func(a, b string) int { return cmp.Compare(g.at[a], g.at[b]) })
			got := []string{}
			for _, name := range names {
				got = append(got, name, g.at[name].String())
			}
			if fmt.Sprint(got) != c.want {
				t.Errorf("given back %d: %v, want %s", c.back, got, c.want)
			}
		})
	}
}

// Callers and bookings go at the rate again after units were booked, recorded or given back, or the limit changed, while they
// waited.
func TestWaitersAndBookingsTogetherKeepTheRate(t *testing.T) {
	for seed := range randtest.Seeds(t, 60, 6) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 9))
			burst := 1 + r.Int64N(4)
			limit := weir.TokenBucket{Rate: weir.PerSecond(1), Burst: burst}
			l := mustNew(t, limit)
			g := newGoers()
			l.AllowN(burst)
			costs := map[string]int64{}
			for i := range 40 {
				name, cost := fmt.Sprint(i), 1+r.Int64N(burst)
				switch costs[name] = cost; r.IntN(8) {
				case 0, 1, 2, 3:
					g.waitN(t, l, name, cost)
				case 4, 5:
					g.bookN(t, l, name, cost)
				case 6:
					l.Record(r.Int64N(5))
				case 7:
					time.Sleep(time.Duration(r.Int64N(3e9)))
				}
			}
			quiet := time.Since(g.start)
			g.all.Wait()
			var at []time.Duration
			for name, went := range g.at {
				if went > quiet {
					at = append(at, slices.Repeat([]time.Duration{went}, int(costs[name]))...)
				}
			}
			slices.Sort(at)
			for i := range at {
				for j := i + int(burst); j < len(at); j++ {
					if most := time.Duration(int64(j-i+1)-burst) * time.Second; at[j]-at[i] < most-time.Nanosecond {
						t.Fatalf("%d units within %v, want no more than %d at once and one a second: %v", j-i+1, at[j]-at[i], burst, at)
					}
				}
			}
		})
	}
}

// Callers that went behind a booking go before it again as soon as others leave the time for that.
func TestCallersMoveForwardPastABookingWhenOthersLeave(t *testing.T) {
	for _, c := range []struct {
		name string
		play func(t *testing.T, l *weir.Limiter, g *goers, leave func())
		want string
	}{
		{"two callers at the head leave", func(t *testing.T, l *weir.Limiter, g *goers, leave func()) {
			g.wait(t, l, "w3")
			g.wait(t, l, "w4")
			g.wait(t, l, "w5")
			g.book(t, l, "b")
			l.Record(2)
			leave()
		}, "map[b:6s w3:3s w4:4s w5:5s]"},
		{"the last caller before the booking leaves, and one behind it", func(t *testing.T, l *weir.Limiter, g *goers, leave func()) {
			g.wait(t, l, "w3")
			g.book(t, l, "b")
			l.Record(2)
			leave()
		}, "map[b:4s w3:3s]"},
		{"the late cost comes back after they left", func(t *testing.T, l *weir.Limiter, g *goers, leave func()) {
			g.wait(t, l, "w3")
			g.wait(t, l, "w4")
			g.book(t, l, "b")
			l.Record(4)
			leave()
			l.Return(4)
		}, "map[b:5s w3:1s w4:2s]"},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1})
			g := newGoers()
			l.Allow()
			ctx, cancel := context.WithCancel(t.Context())
			for range 2 {
				go l.Wait(ctx)
				synctest.Wait()
			}
			c.play(t, l, g, func() {
				cancel()
				synctest.Wait()
			})
			g.all.Wait()
			if got := fmt.Sprint(g.at); got != c.want {
				t.Errorf("%s: %s, want %s", c.name, got, c.want)
			}
		})
	}
}

func TestCallersMoveForwardPastABookingThatBecameCheaper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 5})
		g := newGoers()
		l.AllowN(5)
		g.wait(t, l, "w1")
		g.wait(t, l, "w2")
		booked := mustReserve(t, l, 5) // for 7 s
		l.Record(2)
		booked.Settle(t.Context(), 1)
		g.all.Wait()
		if got, want := fmt.Sprint(g.at), "map[w1:3s w2:4s]"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// A limit that plans nothing, such as slots, lets callers go in order of arrival: a booking may not fit there at all.
func TestABookingHoldsUpNobodyAfterAChangeToSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(t, weir.TokenBucket{Rate: weir.PerHour(1), Burst: 5})
		g := newGoers()
		l.AllowN(5)
		g.wait(t, l, "w1")
		g.wait(t, l, "w2")
		mustReserve(t, l, 5)
		l.Record(2) // the booking goes first
		if err := l.SetLimit(weir.Concurrency{Slots: 2}); err != nil {
			t.Fatal(err)
		}
		g.all.Wait()
		if got, want := fmt.Sprint(g.at), "map[w1:0s w2:0s]"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}
