package limittest

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/weirflow/weir"
)

const (
	callers      = 8
	callsEach    = 200
	sharedLimit  = callers * callsEach / 3
	contendTries = 100
)

func concurrentTotals(f *fixture) {
	for _, limit := range []weir.Limit{
		weir.TokenBucket{Rate: weir.PerHour(sharedLimit)},
		weir.LeakyBucket{Rate: weir.PerHour(1), Queue: sharedLimit - 1},
		weir.FixedWindow{Rate: weir.PerDay(sharedLimit)},
		weir.FirstWindow{Rate: weir.PerDay(sharedLimit)},
		weir.Quota{Count: sharedLimit, Unit: weir.Day},
		weir.SlidingWindow{Rate: weir.PerDay(sharedLimit)},
		weir.SlidingLog{Rate: weir.PerDay(sharedLimit)},
		weir.SlidingLog{Rate: weir.PerDay(sharedLimit), CountDenied: true},
	} {
		rule := f.rule("shared "+limit.String(), limit)
		f.untilContended(func(round int) []int64 {
			key := fmt.Sprint("round ", round)
			admitted := f.race(func(int) []weir.Request { return []weir.Request{rule.For(key, 1)} })
			if got := sum(admitted); got != sharedLimit {
				f.Errorf("%s: %d callers together: got %d admitted, want %d", rule, callers, got, sharedLimit)
			}
			f.wantRemaining(rule.String()+" afterwards", rule, key, 0)
			return admitted
		})
	}
}

// concurrentTogether takes two keys in both orders. No caller deadlocks, and no caller takes one key without the
// other.
func concurrentTogether(f *fixture) {
	users := f.rule("users", weir.TokenBucket{Rate: weir.PerHour(sharedLimit)})
	tenants := f.rule("tenants", weir.FixedWindow{Rate: weir.PerDay(2 * sharedLimit)})
	f.untilContended(func(round int) []int64 {
		key := fmt.Sprint("round ", round)
		admitted := f.race(func(caller int) []weir.Request {
			requests := []weir.Request{users.For(key, 1), tenants.For(key, 1)}
			if caller%2 == 1 {
				requests[0], requests[1] = requests[1], requests[0]
			}
			return requests
		})
		if got := sum(admitted); got != sharedLimit {
			f.Errorf("two keys in both orders: got %d admitted, want %d", got, sharedLimit)
		}
		f.wantRemaining("users afterwards", users, key, 0)
		f.wantRemaining("tenants afterwards", tenants, key, sharedLimit)
		return admitted
	})
}

// race lets all callers take at once and returns the units that each caller was admitted.
func (f *fixture) race(requests func(caller int) []weir.Request) []int64 {
	admitted := make([]int64, callers)
	var ready, all sync.WaitGroup
	var begin atomic.Bool
	ready.Add(callers)
	for caller := range callers {
		all.Go(func() {
			mine := requests(caller)
			ready.Done()
			for !begin.Load() {
				runtime.Gosched()
			}
			for range callsEach {
				d, err := f.engine.Take(f.Context(), mine...)
				if err != nil {
					f.Errorf("Take(%s): %v", texts(mine), err)
					return
				}
				if d.Allowed {
					admitted[caller]++
				}
				runtime.Gosched()
			}
		})
	}
	ready.Wait()
	begin.Store(true)
	all.Wait()
	return admitted
}

// untilContended repeats a round until at least two callers were admitted, so that a pass means that callers met.
func (f *fixture) untilContended(round func(int) []int64) {
	f.Helper()
	for i := range contendTries {
		winners := 0
		for _, n := range round(i) {
			if n > 0 {
				winners++
			}
		}
		if winners > 1 || f.Failed() {
			return
		}
	}
	f.Errorf("callers never met in %d rounds: the totals prove nothing", contendTries)
}

func sum(counts []int64) (total int64) {
	for _, n := range counts {
		total += n
	}
	return total
}
