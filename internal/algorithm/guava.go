package algorithm

import "math"

// Guava is its RateLimiter (31.1), bit for bit: SmoothBursty and
// SmoothWarmingUp. Permits stored while idle are cheap (bursty) or dear
// (warm-up), a request of any size goes as soon as the one before it is paid
// for, and the next one pays: so there is no largest cost. Alone of all
// algorithms it computes with float64, whose products are rounded explicitly so
// that no processor fuses them. Time counts in whole microseconds inside.
//
// State: A is the bits of the stored permits, B the microsecond since the epoch
// at which the next request may go, C whether any came. A state is never as good
// as fresh, since idling stores permits: it is for one subject, whose beginning
// is known (Start), and must not be forgotten.
type Guava struct {
	perSecond float64
	interval  float64 // µs that a permit takes at the stable rate
	most      float64 // permits that can be stored
	idle      float64 // µs of idleness that store a permit
	start     float64 // permits stored at the beginning

	// Of a warm-up: above the threshold a stored permit takes longer, by slope
	// µs for each permit stored. A bursty limit gives its permits for nothing.
	warmUp           bool
	threshold, slope float64
}

const microsecond = 1000 // ns

// NewBursty stores the permits of up to so many seconds of idleness, at least
// 0, and gives them out at once.
func NewBursty(perSecond, seconds float64) *Guava {
	interval := 1e6 / perSecond
	return &Guava{perSecond: perSecond, interval: interval, most: float64(seconds * perSecond), idle: interval}
}

// NewWarmUp comes to the rate within so many microseconds, above 0, from one
// that is slower by the factor cold, at least 1. It begins cold.
func NewWarmUp(perSecond, micros, cold float64) *Guava {
	interval := 1e6 / perSecond
	coldInterval := float64(interval * cold)
	threshold := float64(0.5*micros) / interval
	most := threshold + float64(2.0*micros)/(interval+coldInterval)
	return &Guava{
		perSecond: perSecond, interval: interval, most: most, idle: micros / most, start: most,
		warmUp: true, threshold: threshold, slope: (coldInterval - interval) / (most - threshold),
	}
}

// Wait is the time until the next request may go, whatever its cost.
func (g *Guava) Wait(s State, now, _ int64) int64 {
	if s.C == untouched {
		return 0
	}
	return mul(s.B, microsecond).sub(mul(now, 1)).ceilDiv(1)
}

// Take spends stored permits, and makes the next request wait for them and for
// those that were lacking.
func (g *Guava) Take(s State, now, n int64) State {
	return g.reserve(g.begun(s, now), floorMicros(now), float64(n))
}

// Give makes the next request wait for n permits less. Stored permits do not
// come back: a key never gets better than fresh, and fresh has none.
func (g *Guava) Give(s State, now, n int64) State {
	s, micros := g.begun(s, now), floorMicros(now)
	if s.B > micros {
		s.B = max(subSat(s.B, toLong(float64(float64(n)*g.interval))), micros)
	}
	return s
}

// Room is all there is or nothing, since any cost may go when its turn has
// come.
func (g *Guava) Room(s State, now int64) int64 {
	if g.Wait(s, now, 1) > 0 {
		return 0
	}
	return maxUnits
}

// Fresh is a state that begins when it is first used.
func (g *Guava) Fresh() State { return g.untouched(math.MaxInt64) }

// Start is a state that begins now, or when it is first used if that is earlier.
func (g *Guava) Start(now int64) State { return g.untouched(floorMicros(now)) }

// Capacity is the largest cost of any limit.
func (g *Guava) Capacity() int64 { return maxUnits }

// Solitary is true.
func (g *Guava) Solitary() bool { return true }

// Planned is true: the next free instant says by itself what was spent ahead.
func (g *Guava) Planned() bool { return true }

// Book is Take: a booking is paid for by the next.
func (g *Guava) Book(s State, now, n int64) State { return g.Take(s, now, n) }

// Unbook is the state before.
func (g *Guava) Unbook(before, _ State, _ int64) State { return before }

// PerSecond is the rate as Guava reports it.
func (g *Guava) PerSecond() float64 { return 1e6 / g.interval }

// Stored is the permits stored when s was last written.
func (g *Guava) Stored(s State) float64 { return math.Float64frombits(uint64(s.A)) }

const untouched = 1

func (g *Guava) untouched(micros int64) State {
	return State{A: int64(math.Float64bits(g.start)), B: micros, C: untouched}
}

func (g *Guava) begun(s State, now int64) State {
	if s.C == untouched {
		s.B, s.C = min(s.B, floorMicros(now)), 0
	}
	return s
}

// reserve is Guava's reserveEarliestAvailable; the caller goes at the s.B it
// came with, or now.
func (g *Guava) reserve(s State, micros int64, n float64) State {
	stored, next := g.resync(s, micros)
	spent := min(n, stored)
	lacking := n - spent
	wait := g.storedWait(stored, spent) + toLong(float64(lacking*g.interval))
	return State{A: int64(math.Float64bits(stored - spent)), B: AddSaturating(next, wait)}
}

// resync stores the permits of the time since the last request was paid for.
func (g *Guava) resync(s State, micros int64) (stored float64, next int64) {
	stored, next = g.Stored(s), s.B
	if micros > next {
		stored = min(g.most, stored+float64(subSat(micros, next))/g.idle)
		next = micros
	}
	return stored, next
}

// storedWait is the µs that stored permits take: the area under the line of
// the intervals, a trapezoid above the threshold and a rectangle below.
func (g *Guava) storedWait(stored, spent float64) int64 {
	if !g.warmUp {
		return 0
	}
	var wait int64
	if above := stored - g.threshold; above > 0 {
		dear := min(above, spent)
		sides := g.intervalAt(above) + g.intervalAt(above-dear)
		wait = toLong(float64(dear*sides) / 2)
		spent -= dear
	}
	return wait + toLong(float64(g.interval*spent))
}

func (g *Guava) intervalAt(above float64) float64 { return g.interval + float64(above*g.slope) }

// rescaled is Guava's setRate: the store stays as full as it was.
func (g *Guava) rescaled(old *Guava, s State, now int64) State {
	stored, next := old.resync(old.begun(s, now), floorMicros(now))
	switch {
	case math.IsInf(old.most, 1) && g.warmUp:
		stored = 0
	case math.IsInf(old.most, 1):
		stored = g.most
	case old.most == 0:
		stored = g.start
	default:
		stored = float64(stored*g.most) / old.most
	}
	return State{A: int64(math.Float64bits(stored)), B: next}
}

// toLong is Java's conversion: it truncates, saturates, and makes 0 of NaN.
func toLong(f float64) int64 {
	switch {
	case f != f:
		return 0
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	}
	return int64(f)
}

func floorMicros(now int64) int64 {
	micros, _ := floorDivMod(now, microsecond)
	return micros
}

// Carry keeps the store of permits as full as it was.
func (g *Guava) Carry(before Algorithm, s State, now int64) State {
	return g.rescaled(before.(*Guava), s, now)
}
