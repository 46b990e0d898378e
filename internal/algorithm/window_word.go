package algorithm

import (
	"math"
	"math/bits"
)

// A window in a word is its number, from the window of the base on and counted
// from 1, above its count, or above the count before and the count.
type windowLayout struct {
	width uint   // bits of the count, or of both
	mask  uint64 // of width bits
	half  uint   // bits of the count beside the one before
	least uint64 // of half bits
	end   uint64 // no number is as large
}

func layoutOf(period int64) (l windowLayout) {
	l.end = uint64(1)<<wordTime/uint64(period) + 2
	l.width = uint(64 - bits.Len64(l.end))
	l.half = l.width / 2
	l.mask, l.least = 1<<l.width-1, 1<<l.half-1
	return l
}

// number is a window counted from that of the base, which is 1.
func (l *windowLayout) number(window, base, period int64) (uint64, bool) {
	first, _ := floorDivMod(base, period)
	number := uint64(window-first) + 1
	return number, window >= first && number < l.end
}

// window is the one of a number.
func (l *windowLayout) window(number uint64, base, period int64) int64 {
	first, _ := floorDivMod(base, period)
	return first + int64(number) - 1
}

// at is the number of the window of now, and how much of it has passed. The
// base is the start of a window.
func (l *windowLayout) at(base, now, period int64) (number, elapsed uint64, ok bool) {
	since := uint64(now - base)
	windows := since / uint64(period)
	return windows + 1, since - windows*uint64(period), now >= base && windows < l.end-2
}

// AlignWords is the start of the window of the base.
func (f *FixedWindow) AlignWords(base int64) int64 { return alignedTo(base, f.period) }

// Pack is the word of a window and its count.
func (f *FixedWindow) Pack(s State, base int64) (uint64, bool) {
	if s.A == math.MinInt64 {
		return 0, true
	}
	number, ok := f.layout.number(s.A, base, f.period)
	return number<<f.layout.width | uint64(s.B), ok && uint64(s.B) <= f.layout.mask
}

// Unpack is the window of a word and its count.
func (f *FixedWindow) Unpack(word uint64, base int64) State {
	if word == 0 {
		return f.Fresh()
	}
	l := &f.layout
	return State{A: l.window(word>>l.width, base, f.period), B: int64(word & l.mask)}
}

// IdleWord says that the window is over, or nothing counts in it.
func (f *FixedWindow) IdleWord(word uint64, base, now int64) bool {
	return Idle(f, f.Unpack(word, base), now)
}

// TakeWord decides on the count.
func (f *FixedWindow) TakeWord(word uint64, base, now, n int64) (next uint64, a Answer, ok bool) {
	count, number, elapsed, ok := f.counted(word, base, now, n)
	if !ok {
		return takeWord(f, word, base, now, n)
	}
	left := f.period - int64(elapsed)
	a.Limit = f.limit
	if count+n <= f.limit {
		a.Allowed, a.Changed, count = true, true, count+n
	} else {
		a.RetryAfter = left
	}
	if count > 0 {
		a.ResetAfter = left
	}
	a.Remaining = max(f.limit-count, 0)
	return number<<f.layout.width | uint64(count), a, uint64(count) <= f.layout.mask
}

// AllowWord decides on the count.
func (f *FixedWindow) AllowWord(word uint64, base, now, n int64) (next uint64, allowed, ok bool) {
	count, number, _, ok := f.counted(word, base, now, n)
	switch {
	case !ok:
		return allowWord(f, word, base, now, n)
	case count+n > f.limit:
		return word, false, true
	}
	count += n
	return number<<f.layout.width | uint64(count), true, uint64(count) <= f.layout.mask
}

// counted is the count of the window of now, if that is not behind the one of
// the word, and the cost is one that could fit.
func (f *FixedWindow) counted(word uint64, base, now, n int64) (count int64, number, elapsed uint64, ok bool) {
	l := &f.layout
	number, elapsed, ok = l.at(base, now, f.period)
	stored := word >> l.width
	if stored == number {
		count = int64(word & l.mask)
	}
	return count, number, elapsed, ok && stored <= number && uint64(n-1) < uint64(f.limit)
}

// AlignWords is the start of the window of the base.
func (l *SlidingWindow) AlignWords(base int64) int64 { return alignedTo(base, l.period) }

// Pack is the word of a window and two counts.
func (l *SlidingWindow) Pack(s State, base int64) (uint64, bool) {
	if s.A == math.MinInt64 {
		return 0, true
	}
	number, ok := l.layout.number(s.A, base, l.period)
	return l.word(number, s.C, s.B), ok && uint64(s.B|s.C) <= l.layout.least
}

func (l *SlidingWindow) word(number uint64, before, count int64) uint64 {
	return number<<l.layout.width | uint64(before)<<l.layout.half | uint64(count)
}

// Unpack is the window of a word and two counts.
func (l *SlidingWindow) Unpack(word uint64, base int64) State {
	if word == 0 {
		return l.Fresh()
	}
	layout := &l.layout
	return State{
		A: layout.window(word>>layout.width, base, l.period),
		B: int64(word & layout.least),
		C: int64(word & layout.mask >> layout.half),
	}
}

// IdleWord says that nothing counts any more.
func (l *SlidingWindow) IdleWord(word uint64, base, now int64) bool {
	return Idle(l, l.Unpack(word, base), now)
}

// TakeWord decides on the counts. A refusal is left to the exact functions: it
// has to tell when the weights will have fallen far enough.
func (l *SlidingWindow) TakeWord(word uint64, base, now, n int64) (next uint64, a Answer, ok bool) {
	before, count, number, left, ok := l.counted(word, base, now, n)
	if !ok {
		return takeWord(l, word, base, now, n)
	}
	a.Limit, a.Allowed, a.Changed, a.ResetAfter = l.limit, true, true, left+l.period
	count += n
	a.Remaining = l.limit - count
	if before > 0 {
		a.Remaining -= mul(before, left).ceilDiv(l.period)
	}
	return l.word(number, before, count), a, uint64(count) <= l.layout.least
}

// AllowWord decides on the counts.
func (l *SlidingWindow) AllowWord(word uint64, base, now, n int64) (next uint64, allowed, ok bool) {
	before, count, number, _, ok := l.counted(word, base, now, n)
	if !ok {
		return allowWord(l, word, base, now, n)
	}
	count += n
	return l.word(number, before, count), true, uint64(count) <= l.layout.least
}

// counted is the counts at now and what is left of the window, if n fits: before
// × left <= (limit - count - n) × period.
func (l *SlidingWindow) counted(word uint64, base, now, n int64) (before, count int64, number uint64, left int64, ok bool) {
	layout := &l.layout
	number, elapsed, ok := layout.at(base, now, l.period)
	left = l.period - int64(elapsed)
	switch stored := word >> layout.width; {
	case stored > number:
		return 0, 0, 0, 0, false
	case stored == number:
		before, count = int64(word&layout.mask>>layout.half), int64(word&layout.least)
	case stored == number-1:
		before = int64(word & layout.least)
	}
	room := l.limit - count - n
	fits := room >= before || room >= 0 && !mul(room, l.period).less(mul(before, left))
	return before, count, number, left, ok && fits && uint64(n-1) < uint64(l.limit)
}

// alignedTo is the start of the window of base, or of the next one if that lies
// before all time.
func alignedTo(base, period int64) int64 {
	_, elapsed := floorDivMod(base, period)
	if base < math.MinInt64+elapsed {
		return base + (period - elapsed)
	}
	return base - elapsed
}
