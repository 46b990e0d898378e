package algorithm

import (
	"math"
	"math/bits"
)

// TokenBucket is the generic cell rate algorithm. Its state is one instant, the theoretical arrival time (TAT). The
// bucket is full when TAT is not ahead of now, and each unit taken moves TAT ahead by T = period/rate.
//
// T is a fraction of nanoseconds, so instants are counted in ticks of 1/den ns, where den is the denominator of T in
// lowest terms. A unit is then a whole number of ticks, and no rate drifts.
//
// State: A and B are the high and low half of TAT in ticks, C is den, and Unit the ticks of one unit. The last two are
// those of the limit that wrote the state, because TAT means units only under that rate (tokenbucket_change.go).
// Converted is the instant of the last conversion from another rate. Promised is the newest instant that a booking was
// given, and no other unit is admitted before it. Both are math.MinInt64 if there was none.
type TokenBucket struct {
	Plain
	den   int64 // ticks in a nanosecond
	unit  int64 // ticks that one unit takes
	burst int64
	whole int64 // the time of the burst in ns, if units take whole ns without a delay, and it fits in a word; otherwise -1

	one       mixed // the time of one unit
	free      mixed // how far TAT may lie ahead of now without a delay: the time of the burst, except in a leaky bucket
	burstTime mixed
}

// NewTokenBucket returns a bucket of burst units that refills at rate units per period. The values must be within the
// bounds of package weir.
func NewTokenBucket(rate, period, burst int64) *TokenBucket {
	common := gcd(rate, period)
	b := &TokenBucket{den: rate / common, unit: period / common, burst: burst}
	b.one, b.burstTime = mixed{b.unit / b.den, b.unit % b.den}, mixedOf(mul(b.burst, b.unit), b.den)
	b.free, b.whole = b.burstTime, -1
	if b.den == 1 && b.unit > 0 && b.burstTime.ns < 1<<wordTime { // an engine that counts us refuses a unit of 0
		b.whole = b.burstTime.ns
	}
	return b
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Wait solves TAT + nT - (now + wait) <= burst T, and returns at least the time until a promised instant.
func (b *TokenBucket) Wait(s State, now, n int64) int64 {
	return max(b.wait(&s, now, n), subSat(s.Promised, now))
}

func (b *TokenBucket) wait(s *State, now, n int64) int64 {
	if b.slows(s) {
		w := b.writer(s)
		if wait := w.wait(s, now, n); wait > max(subSat(s.Promised, now), 0) {
			return wait
		}
	}
	ahead := b.tat(s, now).sub(b.ticks(now))
	return ahead.add(mul(n, b.unit)).sub(mul(b.burst, b.unit)).ceilDiv(b.den)
}

// Take moves TAT ahead by nT, up to a debt of 2^53 units below an empty bucket.
func (b *TokenBucket) Take(s State, now, n int64) State {
	s = b.own(s, now)
	tat := b.tat(&s, now)
	return b.state(s, minInt128(tat.add(mul(n, b.unit)), maxInt128(tat, b.mostDebt(now))))
}

// mostDebt returns the value where TAT saturates.
func (b *TokenBucket) mostDebt(now int64) int128 {
	return b.ticks(now).add(mul(b.burst+maxUnits, b.unit))
}

// AddsUp returns true up to the largest debt: a released caller leaves TAT ahead, so each take moves it by exactly
// its units.
func (b *TokenBucket) AddsUp(s State, now, n int64) bool {
	return b.owns(&s) && !b.tat(&s, now).add(mul(n, b.unit)).sub(b.mostDebt(now)).positive()
}

// Give moves TAT back by nT, but not behind now or a promised instant.
func (b *TokenBucket) Give(s State, now, n int64) State {
	return b.give(s, now, max(now, s.Promised), n)
}

// give moves TAT back by nT, but not behind floor.
func (b *TokenBucket) give(s State, now, floor, n int64) State {
	s = b.own(s, now)
	return b.state(s, maxInt128(b.tat(&s, now).sub(mul(n, b.unit)), b.ticks(floor)))
}

// Room returns the whole tokens left: burst - (TAT - now)/T. There are none before a promised instant.
func (b *TokenBucket) Room(s State, now int64) int64 {
	if s.Promised > now {
		return 0
	}
	return b.room(&s, now)
}

func (b *TokenBucket) room(s *State, now int64) int64 {
	ahead := b.tat(s, now).sub(b.ticks(now))
	return mul(b.burst, b.unit).sub(ahead).floorDiv(b.unit)
}

// Fresh returns a TAT before all time.
func (b *TokenBucket) Fresh() State {
	return State{A: math.MinInt64, C: b.den, Unit: b.unit, Converted: math.MinInt64, Promised: math.MinInt64}
}

// Capacity returns the burst.
func (b *TokenBucket) Capacity() int64 { return b.burst }

// Planned returns true: TAT records what was spent in advance.
func (b *TokenBucket) Planned() bool { return true }

// Unbook restores TAT.
func (b *TokenBucket) Unbook(before, _ State, _ int64) State { return before }

func (b *TokenBucket) ticks(t int64) int128 { return mul(t, b.den) }

// state returns s with another TAT in ticks of b, the rate that wrote s.
func (b *TokenBucket) state(s State, tat int128) State {
	s.A, s.B, s.C, s.Unit = tat.hi, int64(tat.lo), b.den, b.unit
	return s
}

// tat returns TAT in ticks, but not behind now. It converts a state of another rate.
func (b *TokenBucket) tat(s *State, now int64) int128 {
	stored := int128{s.A, uint64(s.B)}
	if !b.owns(s) {
		stored = b.converted(s, now)
	}
	return maxInt128(stored, b.ticks(now))
}

// AppendState appends TAT and its ticks, the ticks of a unit, the last conversion and the newest promised instant.
func (b *TokenBucket) AppendState(into []int64, s State) []int64 {
	return append(into, s.A, s.B, s.C, s.Unit, s.Converted, s.Promised)
}

// RestoreState refuses an instant without ticks, or one that no bucket writes.
func (b *TokenBucket) RestoreState(numbers []int64) (s State, ok bool) {
	if len(numbers) != 6 {
		return State{}, false
	}
	s = State{A: numbers[0], B: numbers[1], C: numbers[2], Unit: numbers[3], Converted: numbers[4], Promised: numbers[5]}
	return s, b.reads(&s)
}

// reads reports whether a bucket that counts time like b can have written s. TAT is no instant before all others. It can
// lie far ahead if the rate changed while the clock ran back, so its bound is generous: neither TAT nor, in ticks of b,
// the units that s lacks come near 128 bits.
func (b *TokenBucket) reads(s *State) bool {
	const far = 1 << 60
	switch {
	case s.C < 1 || s.C > maxUnits || s.Unit < 1 || s.Unit > maxPeriod:
		return false
	case mul(s.Unit, maxPeriod).less(mul(s.C, b.unit)): // a rate above that of all limits
		return false
	case s.A == math.MinInt64:
		return s.B == 0 && s.Converted == math.MinInt64 && s.Promised == math.MinInt64
	case s.A > far || mul(s.Unit, far).less(mul(s.A, b.unit)):
		return false
	}
	return !int128{s.A, uint64(s.B)}.less(mul(math.MinInt64, s.C))
}

// This file reads the state of a bucket under another rate than the one that wrote it. A changed rate keeps the units
// used: TAT' = q + (TAT - q) T'/T, rounded up to a tick, where q is the later of now and the newest promised instant. The
// rounding is always up, so that rates that take turns never add units.
//
// An admission and a record write the converted state. A refusal writes it only for a faster rate (Refused). Under a
// slower rate the state stays and its writer's rate decides the wait, so that a slower limit that is refused again and
// again does not slow down the callers of a faster one.

// owns reports whether the rate of b wrote s. A new state is of any rate.
func (b *TokenBucket) owns(s *State) bool {
	return s.C == b.den && s.Unit == b.unit || s.A == math.MinInt64
}

// slows reports whether a unit takes longer than under the rate that wrote s.
func (b *TokenBucket) slows(s *State) bool {
	return !b.owns(s) && mul(s.Unit, b.den).less(mul(b.unit, s.C))
}

// writer returns the bucket of the rate that wrote s, with the burst of b.
func (b *TokenBucket) writer(s *State) TokenBucket {
	return TokenBucket{den: s.C, unit: s.Unit, burst: b.burst}
}

// converted returns the TAT of another rate in ticks of b. A TAT up to the later of now and the newest promised instant
// holds no units and stays where it is.
func (b *TokenBucket) converted(s *State, now int64) int128 {
	from, tat := max(now, s.Promised), int128{s.A, uint64(s.B)}
	at := b.ticks(from)
	ahead := tat.sub(mul(from, s.C))
	if ahead.positive() {
		return at.add(ahead.scaled(b.unit, s.Unit, true))
	}
	return at.sub(int128{}.sub(ahead).scaled(b.den, s.C, false))
}

// own returns s as a state of the rate of b.
func (b *TokenBucket) own(s State, now int64) State {
	if b.owns(&s) {
		return s
	}
	s = b.state(s, b.converted(&s, now))
	s.Converted = now
	return s
}

// Refused converts a state of a slower rate.
func (b *TokenBucket) Refused(s State, now int64) State {
	if b.slows(&s) {
		return s
	}
	return b.own(s, now)
}

// Carry keeps the units used under the earlier limit.
func (b *TokenBucket) Carry(_ Algorithm, s State, now int64) State { return b.own(s, now) }

// Owns reports whether the rate of b wrote s.
func (b *TokenBucket) Owns(s State) bool { return s.Unit == 0 || s.C == 0 || b.owns(&s) }

func (b *TokenBucket) converts() {}

// SpendAt returns when units are taken that must wait for a delay from an instant: they are a debt from that instant.
// The units used under a faster rate are converted when the wait is over.
func (b *TokenBucket) SpendAt(s State, from, delay int64) int64 {
	if b.slows(&s) {
		return AddSaturating(from, delay)
	}
	return from
}

// Settled reports whether no promised instant lies ahead.
func (b *TokenBucket) Settled(s State, now int64) bool { return s.Promised <= now }

// Book takes n units for now + Wait, the promised instant: a booking is a debt.
func (b *TokenBucket) Book(s State, now, n int64) State {
	until := b.Wait(s, now, n)
	return promise(b.Take(s, b.SpendAt(s, now, until), n), now, until)
}

// Rebook books keep units in place of n. After a change of the rate it gives the others back instead, so that nothing
// comes before the promised instant.
func (b *TokenBucket) Rebook(before, after State, taken, n, keep int64) State {
	if !b.owns(&before) || !b.owns(&after) {
		w := b.writer(&after)
		return w.give(after, taken, max(taken, after.Promised), n-keep)
	}
	return b.Book(before, taken, keep)
}

// promise returns s after a caller was held back.
func promise(s State, now, delay int64) State {
	if delay > 0 {
		s.Promised = max(s.Promised, AddSaturating(now, delay))
	}
	return s
}

// scaled returns a * to / from, rounded up or down. a is at least 0, from above 0, and the result must fit.
func (a int128) scaled(to, from int64, up bool) int128 {
	high := a.hi / from // a / from may have more than 64 bits
	whole, rest := bits.Div64(uint64(a.hi%from), a.lo, uint64(from))
	part, left := mul(int64(rest), to).divMod(from)
	if up && left > 0 {
		part++
	}
	hi, lo := bits.Mul64(whole, uint64(to))
	return int128{int64(hi) + high*to, lo}.add(int128{lo: uint64(part)})
}
