package weir_test

import (
	"context"
	"math/big"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// The limits of the slow model, each as its definition in rationals, and how to draw them.

var errCancelled = context.Canceled

var slowFamilies = map[string]slowFamily{
	"TokenBucket": {
		draw: func(r *rand.Rand) (weir.Limit, int64) {
			rate := drawRate(r)
			return weir.TokenBucket{Rate: rate, Burst: 1 + r.Int64N(12)}, unitOf(rate)
		},
		change: func(r *rand.Rand, l weir.Limit) weir.Limit {
			return weir.TokenBucket{Rate: drawRate(r), Burst: 1 + r.Int64N(12)}
		},
		state: func(l weir.Limit) slowState {
			b := l.(weir.TokenBucket)
			return &slowBucket{limit: b, tokens: whole(b.Burst), at: new(big.Rat)}
		},
	},
	"LeakyBucket": {
		draw: func(r *rand.Rand) (weir.Limit, int64) {
			rate := drawRate(r)
			return drawLeaky(r, rate), unitOf(rate)
		},
		change: func(r *rand.Rand, l weir.Limit) weir.Limit { return drawLeaky(r, drawRate(r)) },
		state: func(l weir.Limit) slowState {
			return &slowLeaky{limit: l.(weir.LeakyBucket), free: new(big.Rat)}
		},
	},
	"FixedWindow": windows(
		func(r *rand.Rand, rate weir.Rate) weir.Limit { return weir.FixedWindow{Rate: rate} },
		func(l weir.Limit) slowState { return &slowWindow{rate: l.(weir.FixedWindow).Rate} }),
	"SlidingWindow": windows(
		func(r *rand.Rand, rate weir.Rate) weir.Limit { return weir.SlidingWindow{Rate: rate} },
		func(l weir.Limit) slowState {
			return &slowWindow{rate: l.(weir.SlidingWindow).Rate, sliding: true}
		}),
	"Cycle": windows(
		func(r *rand.Rand, rate weir.Rate) weir.Limit { return weir.Cycle{Rate: rate} },
		func(l weir.Limit) slowState { return &slowCycle{rate: l.(weir.Cycle).Rate} }),
	"SlidingLog": windows(
		func(r *rand.Rand, rate weir.Rate) weir.Limit {
			return weir.SlidingLog{Rate: rate, Gap: time.Duration(max(0, r.Int64N(int64(rate.Period))-int64(rate.Period)/2))}
		},
		func(l weir.Limit) slowState {
			log := l.(weir.SlidingLog)
			return &slowLog{rate: log.Rate, gap: int64(log.Gap)}
		}),
	"RateGate": windows(
		func(r *rand.Rand, rate weir.Rate) weir.Limit { return weir.RateGate{Rate: rate} },
		func(l weir.Limit) slowState { return &slowLog{rate: l.(weir.RateGate).Rate} }),
}

func drawRate(r *rand.Rand) weir.Rate {
	return weir.Per(1+r.Int64N(12), time.Duration(1000+r.Int64N(1e10)))
}

func drawLeaky(r *rand.Rand, rate weir.Rate) weir.LeakyBucket {
	queue := r.Int64N(12)
	return weir.LeakyBucket{Rate: rate, Queue: queue, NoDelay: r.Int64N(queue + 1)}
}

func unitOf(rate weir.Rate) int64 { return max(1, int64(rate.Period)/rate.Count) }

// windows is a family of limits that keep their state as long as the period stays the same.
func windows(limit func(*rand.Rand, weir.Rate) weir.Limit, state func(weir.Limit) slowState) slowFamily {
	return slowFamily{
		draw: func(r *rand.Rand) (weir.Limit, int64) {
			rate := drawRate(r)
			return limit(r, rate), unitOf(rate)
		},
		change: func(r *rand.Rand, l weir.Limit) weir.Limit {
			rate := drawRate(r)
			if r.IntN(4) > 0 {
				rate.Period = periodOf(l)
			}
			return limit(r, rate)
		},
		state: state,
	}
}

func periodOf(l weir.Limit) time.Duration { return rateOf(l).Period }

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
	case weir.Cycle:
		return l.Rate
	case weir.RateGate:
		return l.Rate
	}
	return weir.Rate{}
}

// slowBucket holds tokens as of an instant.
type slowBucket struct {
	limit      weir.TokenBucket
	tokens, at *big.Rat
}

func perNano(rate weir.Rate) *big.Rat { return frac(rate.Count, int64(rate.Period)) }

func perUnit(rate weir.Rate) *big.Rat { return frac(int64(rate.Period), rate.Count) }

func (b *slowBucket) flow(at *big.Rat) {
	b.tokens = sum(b.tokens, times(less(at, b.at), perNano(b.limit.Rate)))
	if full := whole(b.limit.Burst); b.tokens.Cmp(full) > 0 {
		b.tokens = full
	}
	b.at = at
}

func (b *slowBucket) capacity() int64 { return b.limit.Burst }

func (b *slowBucket) earliest(from, n int64) *big.Rat {
	missing := less(whole(n), b.tokens)
	return later(whole(from), sum(b.at, times(missing, perUnit(b.limit.Rate))))
}

func (b *slowBucket) take(_ int64, at *big.Rat, n int64) {
	b.flow(at)
	b.tokens = less(b.tokens, whole(n))
}

func (b *slowBucket) give(now, n int64) {
	b.flow(whole(now))
	b.tokens = sum(b.tokens, whole(n))
	b.flow(whole(now))
}

// set keeps the units used, as a time that it rounds up to a tick.
func (b *slowBucket) set(now int64, limit weir.Limit) {
	b.flow(whole(now))
	used := less(whole(b.limit.Burst), b.tokens)
	b.limit = limit.(weir.TokenBucket)
	ahead := roundUp(times(used, perUnit(b.limit.Rate)), b.limit.Rate)
	b.tokens = less(whole(b.limit.Burst), times(ahead, perNano(b.limit.Rate)))
}

func (b *slowBucket) clone() slowState { c := *b; return &c }

// roundUp rounds up to a tick of a rate: 1 over the denominator of the time of one unit.
func roundUp(d *big.Rat, rate weir.Rate) *big.Rat {
	ticks := perUnit(rate).Denom().Int64()
	return frac(ceilRat(times(d, whole(ticks))), ticks)
}

// slowLeaky holds the next free slot.
type slowLeaky struct {
	limit weir.LeakyBucket
	free  *big.Rat
}

func (b *slowLeaky) capacity() int64 { return b.limit.Queue + 1 }

// released returns when the last of n units that come at an instant leaves.
func (b *slowLeaky) released(from, n int64) *big.Rat {
	return sum(later(b.free, whole(from)), times(whole(n-1), perUnit(b.limit.Rate)))
}

func (b *slowLeaky) room(now, n int64) bool {
	longest := times(whole(b.limit.Queue), perUnit(b.limit.Rate))
	return less(b.released(now, n), whole(now)).Cmp(longest) <= 0
}

func (b *slowLeaky) earliest(from, n int64) *big.Rat {
	early := times(whole(b.limit.NoDelay), perUnit(b.limit.Rate))
	return later(whole(from), less(b.released(from, n), early))
}

func (b *slowLeaky) take(from int64, _ *big.Rat, n int64) {
	b.free = sum(later(b.free, whole(from)), times(whole(n), perUnit(b.limit.Rate)))
}

func (b *slowLeaky) give(now, n int64) {
	b.free = later(less(later(b.free, whole(now)), times(whole(n), perUnit(b.limit.Rate))), whole(now))
}

func (b *slowLeaky) set(now int64, limit weir.Limit) {
	used := times(less(later(b.free, whole(now)), whole(now)), perNano(b.limit.Rate))
	b.limit = limit.(weir.LeakyBucket)
	b.free = sum(whole(now), roundUp(times(used, perUnit(b.limit.Rate)), b.limit.Rate))
}

func (b *slowLeaky) clone() slowState { c := *b; return &c }

// slowWindow holds the counts of all windows; sliding ones weigh the previous one.
type slowWindow struct {
	rate    weir.Rate
	sliding bool
	counts  map[int64]int64
}

func (w *slowWindow) capacity() int64 { return w.rate.Count }

func (w *slowWindow) period() int64 { return int64(w.rate.Period) }

func (w *slowWindow) fits(at, n int64) bool {
	k, elapsed := at/w.period(), at%w.period()
	used := whole(w.counts[k] + n)
	if w.sliding {
		used = sum(used, times(whole(w.counts[k-1]), frac(w.period()-elapsed, w.period())))
	}
	return used.Cmp(whole(w.rate.Count)) <= 0
}

// earliest searches this window and the next two by bisection: within a window, a cost that fits continues to fit.
func (w *slowWindow) earliest(from, n int64) *big.Rat {
	for range 3 {
		end := (from/w.period() + 1) * w.period()
		low, high := from, end
		for low < high {
			if mid := low + (high-low)/2; w.fits(mid, n) {
				high = mid
			} else {
				low = mid + 1
			}
		}
		if low < end {
			return whole(low)
		}
		from = end
	}
	return nil
}

func (w *slowWindow) take(_ int64, at *big.Rat, n int64) {
	w.counts = cloneCounts(w.counts)
	w.counts[ceilRat(at)/w.period()] += n
}

func (w *slowWindow) give(now, n int64) {
	w.counts = cloneCounts(w.counts)
	k := now / w.period()
	w.counts[k] = max(0, w.counts[k]-n)
}

func cloneCounts(counts map[int64]int64) map[int64]int64 {
	c := map[int64]int64{}
	for k, n := range counts {
		c[k] = n
	}
	return c
}

func (w *slowWindow) set(_ int64, limit weir.Limit) {
	rate := rateOf(limit)
	if rate.Period != w.rate.Period {
		w.counts = nil
	}
	w.rate = rate
}

func (w *slowWindow) clone() slowState { c := *w; return &c }

// slowCycle holds the permits used of this cycle and later ones.
type slowCycle struct {
	rate        weir.Rate
	cycle, used int64
}

func (c *slowCycle) capacity() int64 { return c.rate.Count }

func (c *slowCycle) flow(at int64) {
	for c.used > 0 && c.cycle < at/int64(c.rate.Period) {
		c.used = max(0, c.used-c.rate.Count)
		c.cycle++
	}
	c.cycle = at / int64(c.rate.Period)
}

func (c *slowCycle) earliest(from, n int64) *big.Rat {
	ahead := *c
	for ahead.flow(from); ahead.used+n > ahead.rate.Count; ahead.flow(from) {
		from = (from/int64(c.rate.Period) + 1) * int64(c.rate.Period)
	}
	return whole(from)
}

func (c *slowCycle) take(_ int64, at *big.Rat, n int64) {
	c.flow(ceilRat(at))
	c.used += n
}

func (c *slowCycle) give(now, n int64) {
	c.flow(now)
	c.used = max(0, c.used-n)
}

func (c *slowCycle) set(now int64, limit weir.Limit) {
	c.flow(now)
	rate := rateOf(limit)
	if rate.Period != c.rate.Period {
		c.cycle, c.used = 0, 0
	}
	c.rate = rate
}

func (c *slowCycle) clone() slowState { d := *c; return &d }

// slowLog holds the instant of every unit. Without bookings a gate is the same.
type slowLog struct {
	rate  weir.Rate
	gap   int64
	units []int64
}

func (l *slowLog) capacity() int64 { return l.rate.Count }

func (l *slowLog) counting(at int64) (units []int64) {
	for _, s := range l.units {
		if at < s+int64(l.rate.Period) {
			units = append(units, s)
		}
	}
	return units
}

func (l *slowLog) fits(at, n int64) bool {
	if int64(len(l.counting(at)))+n > l.rate.Count {
		return false
	}
	return len(l.units) == 0 || at >= l.units[len(l.units)-1]+l.gap
}

// earliest returns now, or the instant at which a unit leaves, or the end of the gap.
func (l *slowLog) earliest(from, n int64) *big.Rat {
	candidates := []int64{from}
	for _, s := range l.units {
		candidates = append(candidates, s+int64(l.rate.Period), s+l.gap)
	}
	slices.Sort(candidates)
	for _, at := range candidates {
		if at >= from && l.fits(at, n) {
			return whole(at)
		}
	}
	return nil
}

func (l *slowLog) take(_ int64, at *big.Rat, n int64) {
	l.units = slices.Clone(l.units)
	for range n {
		l.units = append(l.units, ceilRat(at))
	}
}

func (l *slowLog) give(now, n int64) {
	counting := l.counting(now)
	l.units = counting[min(n, int64(len(counting))):]
}

func (l *slowLog) set(_ int64, limit weir.Limit) {
	rate := rateOf(limit)
	if rate.Period != l.rate.Period {
		l.units = nil
	}
	l.rate, l.gap = rate, 0
	if log, ok := limit.(weir.SlidingLog); ok {
		l.gap = int64(log.Gap)
	}
}

func (l *slowLog) clone() slowState { c := *l; return &c }

func whole(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func frac(a, b int64) *big.Rat { return big.NewRat(a, b) }

func sum(a, b *big.Rat) *big.Rat { return new(big.Rat).Add(a, b) }

func times(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) }

func less(a, b *big.Rat) *big.Rat { return new(big.Rat).Sub(a, b) }

func later(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return b
	}
	return a
}

// ceilRat returns r rounded up; r is positive.
func ceilRat(r *big.Rat) int64 {
	num := new(big.Int).Add(r.Num(), new(big.Int).Sub(r.Denom(), big.NewInt(1)))
	return num.Quo(num, r.Denom()).Int64()
}
