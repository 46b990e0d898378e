package algorithm

import (
	"math"
	"math/bits"
)

// windowLayout describes a window in a word: its number, counted from 1 at the window of the base, above its count,
// or above the previous count and its count.
type windowLayout struct {
	mask  uint64 // width bits set
	least uint64 // half bits set
	end   uint64 // all numbers are smaller
	width uint8  // bits of the count, or of both counts
	half  uint8  // bits of the count beside the previous count
}

func layoutOf(period int64) (l windowLayout) {
	l.end = uint64(1)<<wordTime/uint64(period) + 2
	l.width = uint8(64 - bits.Len64(l.end))
	l.half = l.width / 2
	l.mask, l.least = 1<<l.width-1, 1<<l.half-1
	return l
}

// number returns the number of a window, counted from that of the base, which is 1.
func (l *windowLayout) number(window, base, period int64) (uint64, bool) {
	first, _ := floorDivMod(base, period)
	number := uint64(window-first) + 1
	return number, window >= first && number < l.end
}

// window returns the window of a number.
func (l *windowLayout) window(number uint64, base, period int64) int64 {
	first, _ := floorDivMod(base, period)
	return first + int64(number) - 1
}

// at returns the number of the window of now and its elapsed part. The base is the start of a window.
func (l *windowLayout) at(base, now, period int64) (number, elapsed uint64, ok bool) {
	since := now - base
	windows := since / period
	return uint64(windows) + 1, uint64(since - windows*period), now >= base && uint64(since) < 1<<wordTime
}

// AlignWords returns the start of the window of the base.
func (f *FixedWindow) AlignWords(base int64) int64 { return alignedTo(base, f.period) }

// Pack returns the word of a window and its count.
func (f *FixedWindow) Pack(s State, base int64) (uint64, bool) {
	if s.A == math.MinInt64 {
		return 0, true
	}
	number, ok := f.layout.number(s.A, base, f.period)
	return number<<f.layout.width | uint64(s.B), ok && uint64(s.B) <= f.layout.mask
}

// Unpack returns the window and the count of a word.
func (f *FixedWindow) Unpack(word uint64, base int64) State {
	if word == 0 {
		return f.Fresh()
	}
	l := &f.layout
	return State{A: l.window(word>>l.width, base, f.period), B: int64(word & l.mask)}
}

// decideWord decides on the count of the word, like Decide.
func (f *FixedWindow) decideWord(word uint64, base, now, n int64, a *Answer) (next uint64, allowed, ok bool) {
	count, number, elapsed, ok := f.counted(word, base, now, n)
	if !ok {
		return 0, false, false
	}
	left := f.period - int64(elapsed)
	if next = word; n == 0 || count+n <= f.limit {
		allowed, count = true, count+n
	}
	if allowed && n > 0 {
		next, ok = number<<f.layout.width|uint64(count), uint64(count) <= f.layout.mask
	}
	if a == nil {
		return next, allowed, ok
	}
	a.Limit, a.Remaining, a.Allowed, a.Changed = f.limit, max(f.limit-count, 0), allowed, allowed && n > 0
	if !allowed {
		a.RetryAfter = left
	}
	if count > 0 {
		a.ResetAfter, a.LimitReset = left, left
	}
	return next, allowed, ok
}

// ResetWord returns the time to the end of a window with a count.
func (f *FixedWindow) ResetWord(word uint64, base, now int64) (reset int64, ok bool) {
	count, _, elapsed, ok := f.counted(word, base, now, 0)
	if count > 0 {
		reset = f.period - int64(elapsed)
	}
	return reset, ok
}

// counted returns the count of the window of now. ok is false if that window is before the one of the word, or if the
// cost can never fit.
func (f *FixedWindow) counted(word uint64, base, now, n int64) (count int64, number, elapsed uint64, ok bool) {
	l := &f.layout
	number, elapsed, ok = l.at(base, now, f.period)
	stored := word >> l.width
	if stored == number {
		count = int64(word & l.mask)
	}
	return count, number, elapsed, ok && stored <= number && uint64(n) <= uint64(f.limit)
}

// AlignWords returns the start of the window of the base.
func (l *SlidingWindow) AlignWords(base int64) int64 { return alignedTo(base, l.period) }

// Pack returns the word of a window and two counts.
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

// Unpack returns the window and the two counts of a word.
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

// DecideWord decides like [WordDecider.Decide]. ok is false where 128 bits decide.
func (l *SlidingWindow) DecideWord(word uint64, base, now, n int64, a *Answer) (next uint64, allowed, ok bool) {
	number, elapsed, ok := l.layout.at(base, now, l.period)
	w, known := l.counted(word, number, elapsed)
	if !ok || !known || uint64(n) > uint64(l.limit) {
		return 0, false, false
	}
	next, allowed = word, n == 0 || l.admits(&w, n)
	if allowed && n > 0 {
		w.count += n
		next, ok = l.word(w.number, w.before, w.count), uint64(w.count) <= l.layout.least
	}
	if a != nil {
		l.describe(&w, n, allowed, a)
	}
	return next, allowed, ok
}

// describe writes the answer of a decision that leaves counts.
func (l *SlidingWindow) describe(w *windowCounts, n int64, allowed bool, a *Answer) {
	a.Limit, a.Allowed, a.Changed = l.limit, allowed, allowed && n > 0
	if !allowed {
		a.RetryAfter = l.refused(w, n)
	}
	if n > 1 || allowed { // otherwise not even 1 unit fits
		a.Remaining = l.room(w)
	}
	a.ResetAfter = l.reset(w)
	a.LimitReset = a.ResetAfter
}

// reset returns the time until no count matters.
func (l *SlidingWindow) reset(w *windowCounts) int64 {
	switch {
	case w.count > 0:
		return w.left + l.period
	case w.before > 0:
		return w.left
	}
	return 0
}

// ResetWord returns the time until no count matters.
func (l *SlidingWindow) ResetWord(word uint64, base, now int64) (reset int64, ok bool) {
	number, elapsed, ok := l.layout.at(base, now, l.period)
	w, known := l.counted(word, number, elapsed)
	return l.reset(&w), ok && known
}

// windowCounts are the counts of a sliding window and the time left in it.
type windowCounts struct {
	before, count int64
	number        uint64
	left          int64 // at least 1
}

// counted returns the counts in the window of a number. ok is false if that window is before the one of the word.
func (l *SlidingWindow) counted(word, number, elapsed uint64) (w windowCounts, ok bool) {
	layout := &l.layout
	w.number, w.left = number, l.period-int64(elapsed)
	stored := word >> layout.width
	switch stored {
	case number:
		w.before, w.count = int64(word&layout.mask>>layout.half), int64(word&layout.least)
	case number - 1:
		w.before = int64(word & layout.least)
	}
	return w, stored <= number
}

// admits reports whether before × left <= (limit - count - n) × period.
func (l *SlidingWindow) admits(w *windowCounts, n int64) bool {
	room := l.limit - w.count - n
	return room >= w.before || room >= 0 && !mul(room, l.period).less(mul(w.before, w.left))
}

// refused returns the time until n units fit that do not fit now. That is in this window, while the weight of the
// previous one falls, or in the next window, while the weight of this one falls.
func (l *SlidingWindow) refused(w *windowCounts, n int64) int64 {
	if room := l.limit - w.count - n; room >= 0 {
		share, _ := shareOf(l.period, room, w.before)
		return w.left - share
	}
	share := int64(0)
	if room := l.limit - n; room > 0 { // a smaller limit may have callers that wait for more
		share, _ = shareOf(l.period, room, w.count)
	}
	return w.left + l.period - share
}

// room returns limit - count - the weighted previous count, rounded up.
func (l *SlidingWindow) room(w *windowCounts) int64 {
	left := l.limit - w.count
	if left <= 0 || w.before == 0 {
		return max(left, 0)
	}
	weight, rest := shareOf(w.before, w.left, l.period)
	if rest > 0 {
		weight++
	}
	return max(left-weight, 0)
}

// shareOf returns whole × part / parts, rounded down, and the remainder. No argument is negative, and part is at most
// parts. The product nearly always fits 64 bits.
func shareOf(whole, part, parts int64) (share, rest int64) {
	hi, lo := bits.Mul64(uint64(whole), uint64(part))
	if hi == 0 {
		return int64(lo / uint64(parts)), int64(lo % uint64(parts))
	}
	q, r := bits.Div64(hi, lo, uint64(parts))
	return int64(q), int64(r)
}

// alignedTo returns the start of the window of base, or of the next one if that lies before all time.
func alignedTo(base, period int64) int64 {
	_, elapsed := floorDivMod(base, period)
	if base < math.MinInt64+elapsed {
		return base + (period - elapsed)
	}
	return base - elapsed
}
