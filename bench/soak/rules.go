package main

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
)

// rule is a rule with the run's own counts of its decisions.
type rule struct {
	*weir.Rule
	limits   []weir.Limit
	capacity int64
	can      abilities
	slots    bool // some of its units are slots, which every settlement ends

	decisions, refusals       atomic.Uint64
	admitted, recorded, given atomic.Int64
}

// abilities are the calls after which an account stays exact. A log, for example, keeps at most its limit, so units
// recorded above it cannot be given back.
type abilities struct {
	give, record, reserve, together bool
	denied                          bool // refused attempts count
}

func abilitiesOf(l weir.Limit) abilities {
	switch l := l.(type) {
	case weir.LeakyBucket:
		return abilities{give: true, record: true}
	case weir.SlidingLog:
		if l.CountDenied {
			return abilities{denied: true}
		}
		return abilities{give: true, reserve: true, together: true}
	case weir.RateGate, weir.Concurrency:
		return abilities{give: true, reserve: true, together: true}
	}
	return abilities{give: true, record: true, reserve: true, together: true}
}

func (a abilities) and(b abilities) abilities {
	return abilities{a.give && b.give, a.record && b.record, a.reserve && b.reserve, a.together && b.together, a.denied || b.denied}
}

func newRule(name string, limits ...weir.Limit) (*rule, error) {
	made, err := weir.NewRule(name, limits...)
	if err != nil {
		return nil, err
	}
	r := &rule{Rule: made, limits: limits, capacity: math.MaxInt64, can: abilitiesOf(limits[0])}
	for _, l := range limits {
		r.capacity = min(r.capacity, capacityOf(l))
		r.can = r.can.and(abilitiesOf(l))
		if _, is := l.(weir.Concurrency); is {
			r.slots = true
		}
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

func capacityOf(l weir.Limit) int64 {
	switch l := l.(type) {
	case weir.TokenBucket:
		if l.Burst == 0 {
			return l.Rate.Count
		}
		return l.Burst
	case weir.LeakyBucket:
		return l.Queue + 1
	case weir.Concurrency:
		return l.Slots
	}
	return rateOf(l).Count
}

// rateOf returns the rate at which units refill.
func rateOf(l weir.Limit) weir.Rate {
	switch l := l.(type) {
	case weir.TokenBucket:
		return l.Rate
	case weir.LeakyBucket:
		return l.Rate
	case weir.FixedWindow:
		return l.Rate
	case weir.SlidingWindow:
		return l.Rate
	case weir.SlidingLog:
		return l.Rate
	case weir.RateGate:
		return l.Rate
	case weir.Cycle:
		return l.Rate
	case weir.Concurrency:
		return weir.Rate{Count: l.Slots, Period: l.Lease}
	}
	return weir.Rate{}
}

// most returns the bound on net units used by decisions at clock readings from lo to hi, in any order, as in
// docs/guarantees.md.
func (r *rule) most(lo, hi int64) int64 {
	least := int64(math.MaxInt64)
	for _, l := range r.limits {
		least = min(least, mostOf(l, lo, hi))
	}
	return least
}

func mostOf(l weir.Limit, lo, hi int64) int64 {
	rate := rateOf(l)
	period := int64(rate.Period)
	var periods int64 // touched periods
	switch l := l.(type) {
	case weir.TokenBucket, weir.LeakyBucket:
		return capacityOf(l) + flow(rate, hi-lo)
	case weir.FixedWindow, weir.SlidingWindow:
		periods = floorDiv(hi, period) - floorDiv(lo, period) + 1
	case weir.Cycle:
		origin := int64(l.Origin)
		periods = floorDiv(hi-origin, period) - floorDiv(lo-origin, period) + 1
	default:
		periods = (hi-lo)/period + 1
	}
	return capacityOf(l) * periods
}

// flow returns the whole units that refill in a time.
func flow(rate weir.Rate, time int64) int64 {
	high, low := bits.Mul64(uint64(time), uint64(rate.Count))
	if high >= uint64(rate.Period) {
		return math.MaxInt64 / 2
	}
	units, _ := bits.Div64(high, low, uint64(rate.Period))
	return int64(min(units, math.MaxInt64/2))
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
