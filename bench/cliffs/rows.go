package main

import (
	"math/rand/v2"
	"time"

	"github.com/weirflow/weir"
)

// limit returns a limit that admits everything, or one that refuses everything after the first units.
type limit func(admit bool) weir.Limit

// row is one request for each of its rules, decided at once. Each rule has a key of its own.
type row struct {
	name  string
	rules [][]limit
	plans int  // of a Keyed whose keys have different limits; 0 for one limit
	list  bool // a state is a list of units, of which each key holds a handful
	aims  aims
}

// aims are the largest ratios to the row beside which a row is measured. No aim is 0.
type aims struct{ limiter, keyed, oneKey float64 }

var (
	likeOthers = aims{limiter: 1.25, keyed: 1.3, oneKey: 1.5}
	twoLimits  = aims{keyed: 1.6, oneKey: 1.6}
	several    = aims{keyed: 2.2, oneKey: 2.2}
	likeCycle  = aims{limiter: 1.5, keyed: 1.5, oneKey: 1.5}
	likeLists  = aims{limiter: 3, keyed: 3, oneKey: 3}
)

func (a aims) of(column string, m *mix) float64 {
	switch {
	case column == "Limiter":
		return a.limiter
	case m.Keys == 1:
		return a.oneKey
	}
	return a.keyed
}

func bucket(rate weir.Rate) limit { return burst(rate, 1<<26) }

func burst(rate weir.Rate, most int64) limit {
	return func(admit bool) weir.Limit {
		if admit {
			return weir.TokenBucket{Rate: rate, Burst: most}
		}
		return weir.TokenBucket{Rate: rate, Burst: 1}
	}
}

// counted returns a limit of n units in a day that counts them.
func counted(of func(weir.Rate) weir.Limit) limit {
	return func(admit bool) weir.Limit {
		if admit {
			return of(weir.PerDay(1 << 30))
		}
		return of(weir.PerDay(2))
	}
}

var (
	base    = one("10/s", bucket(weir.PerSecond(10)))
	window  = counted(func(r weir.Rate) weir.Limit { return weir.FixedWindow{Rate: r} })
	slide   = counted(func(r weir.Rate) weir.Limit { return weir.SlidingWindow{Rate: r} })
	cycle   = counted(func(r weir.Rate) weir.Limit { return weir.Cycle{Rate: r} })
	hundred = bucket(weir.PerDay(100))
)

func one(name string, l limit) row { return row{name: name, rules: [][]limit{{l}}, aims: likeOthers} }

func leaky(rate weir.Rate) limit {
	return func(admit bool) weir.Limit {
		if admit {
			return weir.LeakyBucket{Rate: rate, Queue: 1 << 26, NoDelay: 1 << 26}
		}
		return weir.LeakyBucket{Rate: rate}
	}
}

func rows(c *config, m *mix) []row {
	all := []row{}
	for _, rate := range []weir.Rate{
		weir.PerSecond(3), weir.PerMinute(7), weir.PerSecond(60), weir.PerSecond(300), weir.PerSecond(11), weir.PerSecond(333),
		weir.PerSecond(999_983), weir.PerSecond(1 << 20), weir.PerHour(1 << 30),
	} {
		all = append(all, one(rate.String(), bucket(rate)))
	}
	minute, second := bucket(weir.PerMinute(5)), bucket(weir.PerSecond(10))
	all = append(all,
		one("10/s burst 2^40", burst(weir.PerSecond(10), 1<<40)),
		one("333/s burst 2^40", burst(weir.PerSecond(333), 1<<40)),
		one("leaky 10/s", leaky(weir.PerSecond(10))), one("leaky 333/s", leaky(weir.PerSecond(333))),
		one("fixed window /1d", window), one("sliding window /1d", slide),
		row{name: "cycle /1d", rules: [][]limit{{cycle}}, aims: likeCycle},
		row{name: "5/m and 100/d", rules: [][]limit{{minute, hundred}}, aims: twoLimits},
		row{name: "5/m and window /1d", rules: [][]limit{{minute, window}}, aims: twoLimits},
		row{name: "two of 333/s", rules: [][]limit{{bucket(weir.PerSecond(333)), bucket(weir.PerSecond(334))}}, aims: aims{}},
		row{name: "333/s and window /1d", rules: [][]limit{{bucket(weir.PerSecond(333)), window}}, aims: aims{}},
		row{name: "5/m, window /1d, 10/s", rules: [][]limit{{minute, window, second}}, aims: several},
		row{name: "two rules with a key each", rules: [][]limit{{second}, {minute}}, aims: several},
		row{name: "1,000 limits by key", rules: [][]limit{{second}}, plans: 1000, aims: likeOthers},
	)
	if m.cores == 1 && !m.isLarge() && !m.Fresh {
		all = append(all, lists(m)...)
	}
	random := randomRows(c)
	if m.isLarge() || m.Fresh { // a tenth of them, because each takes long
		random = random[:(len(random)+9)/10]
	}
	return append(all, random...)
}

// lists are the limits whose states are lists of units. A unit that is admitted leaves again soon enough that each key holds
// about ten, whose number in the limit is never reached. A key that is refused holds 20.
func lists(m *mix) []row {
	soon, most := time.Microsecond, int64(20)
	if m.Keys > 1 {
		soon, most = 1500*time.Duration(m.Keys)*time.Nanosecond, 100 // keys are drawn at random
	}
	either := func(of func(weir.Rate) weir.Limit) [][]limit {
		return [][]limit{{func(admit bool) weir.Limit {
			if admit {
				return of(weir.Per(most, soon))
			}
			return of(weir.PerDay(20))
		}}}
	}
	return []row{
		{name: "sliding log", list: true, aims: likeLists, rules: either(func(r weir.Rate) weir.Limit { return weir.SlidingLog{Rate: r} })},
		{name: "rate gate", list: true, aims: likeLists, rules: either(func(r weir.Rate) weir.Limit { return weir.RateGate{Rate: r} })},
		{name: "concurrency", list: true, aims: likeLists, rules: either(func(r weir.Rate) weir.Limit { return weir.Concurrency{Slots: r.Count, Lease: r.Period} })},
	}
}

// randomRows are rates of all that are allowed, with numbers of any length.
func randomRows(c *config) []row {
	var all []row
	random := rand.New(rand.NewPCG(c.seed, 1))
	for range c.random {
		period := 1 + random.Int64N(int64(weir.MaxPeriod)>>random.IntN(50))
		count := 1 + random.Int64N(max(1, min(period, weir.MaxCount)>>random.IntN(40)))
		// A unit takes a tenth of a second at most, so that no state leaves its words during the measurement.
		period = min(period, max(count, count*100_000_000))
		rate := weir.Rate{Count: count, Period: time.Duration(period)}
		r := one(rate.String(), burst(rate, 1<<26<<random.IntN(15)))
		r.name = randomName + r.name
		all = append(all, r)
	}
	return all
}

const randomName = "random: "

// isLarge reports whether a subject of the mix takes long to make.
func (m *mix) isLarge() bool { return m.Keys > 100_000 }

// rounds returns how often a subject takes from all keys before it is measured: never if they are new, and otherwise
// until no key has a unit left for a row that refuses.
func (m *mix) rounds(admit bool) int {
	switch {
	case m.Fresh:
		return 0
	case admit:
		return 1
	}
	return 3
}
