package algorithm

import "math"

// Guava is the RateLimiter of Guava 31.1, bit for bit: SmoothBursty and SmoothWarmingUp. It stores permits while
// idle; they are cheap (bursty) or expensive (warm-up). A request of any size proceeds as soon as the request before
// it is paid for, and the next request pays for it, so there is no largest cost. It is the only algorithm that
// computes with float64. Explicit conversions round the products, so that no processor fuses them. Times are whole
// microseconds.
//
// State: A is the bits of the stored permits, B the microsecond since the epoch at which the next request may
// proceed, C whether a request has come. Idling stores permits. A new warm-up has all of them, so its state becomes
// that of a new one again; a new bursty limit has none, so its state does not (Rested).
type Guava struct {
	Plain
	perSecond float64
	interval  float64 // µs that a permit takes at the stable rate
	maxStored float64 // permits that can be stored
	idle      float64 // µs of idleness that store a permit
	start     float64 // permits stored at the beginning
	perKey    bool    // it begins at its first use

	// For a warm-up: above the threshold a stored permit takes longer, by slope µs for each stored permit. A bursty
	// limit gives stored permits without a wait.
	warmUp           bool
	threshold, slope float64
}

const microsecond = 1000 // ns

// NewBursty returns a limit that stores the permits of up to seconds seconds of idleness, at least 0, and grants them
// at once.
func NewBursty(perSecond, seconds float64) *Guava {
	interval := 1e6 / perSecond
	return &Guava{perSecond: perSecond, interval: interval, maxStored: float64(seconds * perSecond), idle: interval}
}

// NewWarmUp returns a limit that reaches its rate within micros microseconds, above 0, from a rate that is slower by
// the factor cold, at least 1. It begins cold.
func NewWarmUp(perSecond, micros, cold float64) *Guava {
	interval := 1e6 / perSecond
	coldInterval := float64(interval * cold)
	threshold := float64(0.5*micros) / interval
	maxStored := threshold + float64(2.0*micros)/(interval+coldInterval)
	return &Guava{
		perSecond: perSecond, interval: interval, maxStored: maxStored, idle: micros / maxStored, start: maxStored,
		warmUp: true, threshold: threshold, slope: (coldInterval - interval) / (maxStored - threshold),
	}
}

// Wait returns the time until the next request may proceed, which does not depend on its cost.
func (g *Guava) Wait(s State, now, _ int64) int64 {
	if s.C == untouched {
		return 0
	}
	return mul(s.B, microsecond).sub(mul(now, 1)).ceilDiv(1)
}

// Take is Guava's reserveEarliestAvailable. It spends stored permits, and makes the next request wait for them and for
// the missing ones. The caller itself proceeds at s.B, or now.
func (g *Guava) Take(s State, now, n int64) State {
	stored, next := g.resync(&s, now)
	spent := min(float64(n), stored)
	lacking := float64(n) - spent
	wait := g.storedWait(stored, spent) + toLong(float64(lacking*g.interval))
	return State{A: int64(math.Float64bits(stored - spent)), B: AddSaturating(next, wait)}
}

// Give shortens the wait of the next request by n permits. It does not restore stored permits, because a key must not
// become better than fresh, and a fresh key has none.
func (g *Guava) Give(s State, now, n int64) State {
	if micros := floorMicros(now); s.C != untouched && s.B > micros {
		s.B = max(subSat(s.B, toLong(float64(float64(n)*g.interval))), micros)
	}
	return s
}

// Room returns maxUnits or 0, because a request of any cost may proceed at its turn.
func (g *Guava) Room(s State, now int64) int64 {
	if g.Wait(s, now, 1) > 0 {
		return 0
	}
	return maxUnits
}

// Fresh returns a state that begins at its first use.
func (g *Guava) Fresh() State { return g.untouched(math.MaxInt64) }

// Start returns a state that begins now, or at its first use if that is earlier or the limit is PerKey.
func (g *Guava) Start(now int64) State {
	if g.perKey {
		return g.Fresh()
	}
	return g.untouched(floorMicros(now))
}

// PerKey returns the limit with states that begin at their first use.
func (g *Guava) PerKey() Algorithm {
	perKey := *g
	perKey.perKey = true
	return &perKey
}

// Rested reports whether s is untouched, or cold again. A limit that begins with nothing and stores permits is never
// like a new one.
func (g *Guava) Rested(s State, now int64) bool {
	if s.C == untouched || g.start != g.maxStored {
		return s.C == untouched
	}
	stored, next := g.resync(&s, now)
	return stored == g.start && next <= floorMicros(now)
}

// Spare reports whether nothing is owed: a new key has no more permits stored. A warm-up stays until it is cold, because
// its permits are cheap before.
func (g *Guava) Spare(s State, now int64) bool {
	if g.warmUp {
		return g.Rested(s, now)
	}
	return g.Wait(s, now, 1) == 0
}

// Capacity returns the largest cost of any limit.
func (g *Guava) Capacity() int64 { return maxUnits }

// Solitary returns true: the cost of a request falls on the next one.
func (g *Guava) Solitary() bool { return true }

// Planned returns true: the next free instant records what was spent in advance.
func (g *Guava) Planned() bool { return true }

// Book works like Take: the next request pays for a booking.
func (g *Guava) Book(s State, now, n int64) State { return g.Take(s, now, n) }

// Unbook returns the state before.
func (g *Guava) Unbook(before, _ State, _ int64) State { return before }

// Stored returns the permits stored at the last write.
func (g *Guava) Stored(s State) float64 { return math.Float64frombits(uint64(s.A)) }

const untouched = 1

func (g *Guava) untouched(micros int64) State {
	return State{A: int64(math.Float64bits(g.start)), B: micros, C: untouched}
}

// resync stores the permits of the time since the last request was paid for. A key that has not begun begins now, or at
// s.B if that is earlier. The state is a pointer because each copy of its seven words takes longer than this arithmetic.
func (g *Guava) resync(s *State, now int64) (stored float64, next int64) {
	stored, next = math.Float64frombits(uint64(s.A)), s.B
	micros := floorMicros(now)
	if s.C == untouched {
		next = min(next, micros)
	}
	if micros > next {
		stored = min(g.maxStored, stored+float64(subSat(micros, next))/g.idle)
		next = micros
	}
	return stored, next
}

// storedWait returns the µs that stored permits take: the area below the line of the intervals, a trapezoid above the
// threshold and a rectangle below it.
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

// rescaled is Guava's setRate: the store stays equally full.
func (g *Guava) rescaled(old *Guava, s State, now int64) State {
	stored, next := old.resync(&s, now)
	switch {
	case math.IsInf(old.maxStored, 1) && g.warmUp:
		stored = 0
	case math.IsInf(old.maxStored, 1):
		stored = g.maxStored
	case old.maxStored == 0:
		stored = g.start
	default:
		stored = float64(stored*g.maxStored) / old.maxStored
	}
	return State{A: int64(math.Float64bits(stored)), B: next}
}

// toLong is Java's conversion: it truncates, saturates, and converts NaN to 0.
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

// Carry keeps the store of permits equally full. A key that has not begun is still to begin.
func (g *Guava) Carry(before Algorithm, s State, now int64) State {
	if g.perKey && s.C == untouched {
		return g.Fresh()
	}
	return g.rescaled(before.(*Guava), s, now)
}
