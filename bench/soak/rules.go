package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/bench/internal/trial"
)

// rule is a rule with the run's own counts of its decisions.
type rule struct {
	*weir.Rule
	limits   []weir.Limit
	bounds   []trial.Bound
	capacity int64
	plain    bool // it can be decided beside other rules, and reserved
	denied   bool // refused attempts count

	decisions, refusals atomic.Uint64
}

func newRule(name string, limits ...weir.Limit) (*rule, error) {
	made, err := weir.NewRule(name, limits...)
	if err != nil {
		return nil, err
	}
	r := &rule{Rule: made, limits: limits, bounds: trial.Bounds(limits, 1), capacity: math.MaxInt64, plain: true}
	for i, l := range limits {
		r.capacity = min(r.capacity, int64(r.bounds[i].Units))
		_, leaky := l.(weir.LeakyBucket)
		log, _ := l.(weir.SlidingLog)
		r.denied = r.denied || log.CountDenied
		r.plain = r.plain && !leaky && !log.CountDenied
	}
	return r, nil
}

// steadyLimits returns one limit of each kind, and combinations, with random numbers.
func steadyLimits(random *rand.Rand) [][]weir.Limit {
	rate := func() weir.Rate {
		period := time.Duration(1+random.IntN(20)) * 250 * time.Millisecond
		return weir.Per(20+random.Int64N(60), period+time.Duration(random.IntN(1000)))
	}
	count := func() int64 { return 20 + random.Int64N(60) }
	origin := time.Duration(random.IntN(1_000_000_000))
	return [][]weir.Limit{
		{weir.TokenBucket{Rate: rate(), Burst: count()}},
		{weir.LeakyBucket{Rate: rate(), Queue: count(), NoDelay: 5}},
		{weir.FixedWindow{Rate: rate()}},
		{weir.SlidingWindow{Rate: rate()}},
		{weir.SlidingLog{Rate: rate()}},
		{weir.SlidingLog{Rate: rate(), CountDenied: true}},
		{weir.RateGate{Rate: rate()}},
		{weir.Cycle{Rate: rate(), Origin: origin}},
		{weir.Concurrency{Slots: count(), Lease: rate().Period}},
		{weir.TokenBucket{Rate: weir.PerSecond(333), Burst: count()}},
		{weir.TokenBucket{Rate: rate(), Burst: count()}, weir.FixedWindow{Rate: rate()}},
		{weir.TokenBucket{Rate: weir.PerSecond(10), Burst: count()}, weir.FixedWindow{Rate: rate()}, weir.SlidingWindow{Rate: rate()}},
		{weir.TokenBucket{Rate: rate()}, weir.SlidingWindow{Rate: rate()}, weir.SlidingLog{Rate: rate()}},
		{weir.Cycle{Rate: rate(), Origin: origin}, weir.RateGate{Rate: rate()}, weir.Concurrency{Slots: count(), Lease: rate().Period}},
	}
}

// floodLimits returns the limits of flooded rules: one whose states fit in words, and one whose states do not.
func floodLimits() [][]weir.Limit {
	return [][]weir.Limit{
		{weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 3}},
		{weir.SlidingLog{Rate: weir.PerSecond(3)}},
	}
}

func makeRules(name string, sets [][]weir.Limit) (rules []*rule, err error) {
	for i, limits := range sets {
		r, err := newRule(fmt.Sprint(name, "-", i), limits...)
		if err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// most returns the bound on net units used by decisions at clock readings from lo to hi, in any order, as in
// docs/why/guarantees.md.
func (r *rule) most(lo, hi int64) int64 {
	least := math.Inf(1)
	for _, b := range r.bounds {
		least = min(least, b.Most(lo, hi))
	}
	return int64(min(least+trial.Tolerance, math.MaxInt64/2))
}
