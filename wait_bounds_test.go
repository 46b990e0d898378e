package weir_test

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

// moved is units that went ahead at an instant.
type moved struct{ at, n int64 }

// No schedule of arrivals, cancels and attempts breaks the bounds of a limit, measured at the instants at which
// callers really go ahead.
func TestNoScheduleOfWaitersBreaksABound(t *testing.T) {
	for name, family := range slowFamilies {
		bound := bounds[name]
		if bound == nil {
			continue // a leaky bucket bounds the delay, not a count
		}
		t.Run(name, func(t *testing.T) {
			for _, seed := range waitSeeds(150) {
				r := rand.New(rand.NewPCG(seed, 3))
				limit, unit := family.draw(r)
				events := slices.DeleteFunc(schedule(r, family, limit, unit), func(e event) bool {
					return e.verb != "arrive" && e.verb != "cancel" && e.verb != "allow"
				})
				synctest.Test(t, func(t *testing.T) {
					time.Sleep(time.Duration(seed % 1e12))
					start := time.Now().UnixNano()
					went := playOnLimiter(t, limit, events).moved
					for i := range went {
						went[i].at += start
					}
					slices.SortStableFunc(went, func(a, b moved) int { return cmp.Compare(a.at, b.at) })
					checkBound(t, limit, went, bound, seed)
				})
			}
		})
	}
}

// A bound reports whether a number of units may be released in [from, to], where both are the instants of releases.
var bounds = map[string]func(l weir.Limit, from, to, units int64) bool{
	"TokenBucket": func(l weir.Limit, from, to, units int64) bool {
		b := l.(weir.TokenBucket) // a release is rounded up by less than 1 ns
		most := sum(whole(b.Burst), times(whole(to-from+1), perNano(b.Rate)))
		return whole(units).Cmp(most) <= 0
	},
	"SlidingLog":    inAnyPeriod,
	"RateGate":      inAnyPeriod,
	"FixedWindow":   perWindow,
	"SlidingWindow": perWindow,
	"Cycle":         perWindow,
}

func inAnyPeriod(l weir.Limit, from, to, units int64) bool {
	return to-from >= int64(periodOf(l)) || units <= rateOf(l).Count
}

func perWindow(l weir.Limit, from, to, units int64) bool {
	return from/int64(periodOf(l)) != to/int64(periodOf(l)) || units <= rateOf(l).Count
}

func checkBound(t *testing.T, limit weir.Limit, went []moved, holds func(l weir.Limit, from, to, units int64) bool, seed uint64) {
	t.Helper()
	for i := range went {
		var units int64
		for _, m := range went[i:] {
			units += m.n
			if !holds(limit, went[i].at, m.at, units) {
				t.Fatalf("%v: %d units went within %v; -wait.seed %d", limit, units, time.Duration(m.at-went[i].at), seed)
			}
		}
	}
}

// A line that has just run dry may be kept for callers that come straight back. Units recorded or booked meanwhile
// count for the bounds of later waits.
func TestBoundOfAWaitCountsWhatCameAfterALateTimer(t *testing.T) {
	for name, use := range map[string]func(*weir.Limiter){
		"record":  func(l *weir.Limiter) { l.Record(10) },
		"reserve": func(l *weir.Limiter) { _, _ = l.Reserve(10, weir.Never) },
	} {
		synctest.Test(t, func(t *testing.T) {
			var skew atomic.Int64
			clock := func() int64 { return time.Now().UnixNano() + skew.Load() }
			lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 10}, weir.Options{Clock: clock})
			lim.AllowN(10)
			go lim.WaitN(t.Context(), 1)
			synctest.Wait()
			lim.Take(1) // asks for the plan of the line
			time.Sleep(50 * time.Millisecond)
			skew.Store(int64(time.Millisecond)) // the timer is late by that
			time.Sleep(50 * time.Millisecond)
			synctest.Wait()
			use(lim)
			start := time.Now()
			if err := lim.WaitMax(t.Context(), 1, 500*time.Millisecond); !errors.Is(err, weir.ErrWait) || time.Since(start) != 0 {
				t.Errorf("%s: WaitMax of 500ms: %v after %v, want ErrWait at once", name, err, time.Since(start))
			}
		})
	}
}
