package algorithm

import (
	"math"
	"math/bits"
)

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

// SpendAt returns the instant at which units are taken that must wait for hold from an instant. They are a debt from
// that instant on. The units used under a faster rate are converted when the wait is over.
func (b *TokenBucket) SpendAt(s State, from, hold int64) int64 {
	if b.slows(&s) {
		return AddSaturating(from, hold)
	}
	return from
}

// Settled reports whether no promised instant lies ahead.
func (b *TokenBucket) Settled(s State, now int64) bool { return s.Promised <= now }

// Book takes n units for now + Wait, the promised instant: a booking is a debt.
func (b *TokenBucket) Book(s State, now, n int64) State {
	hold := b.Wait(s, now, n)
	return promise(b.Take(s, b.SpendAt(s, now, hold), n), now, hold)
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
func promise(s State, now, hold int64) State {
	if hold > 0 {
		s.Promised = max(s.Promised, AddSaturating(now, hold))
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
