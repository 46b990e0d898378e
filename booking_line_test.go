package weir_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

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

// Whatever is booked, recorded, given back or changed while callers wait: once nothing changes any more, callers and bookings
// go at the rate.
func TestWaitersAndBookingsTogetherKeepTheRate(t *testing.T) {
	for _, seed := range waitSeeds(200) {
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
						t.Fatalf("%d units within %v, want no more than %d at once and one a second: %v; repeat with -wait.seed %d", j-i+1, at[j]-at[i], burst, at, seed)
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
