package algorithm

import "math"

// A cycle in a word is its number, counted from 1 at the cycle of the base, above the permits used of it. A debt is in no
// word, so a later cycle has all its permits: a word decides like that of a fixed window whose windows begin with the
// cycles. It belongs to the limit that wrote it, because only under that limit there is no debt.

// AlignWords returns the start of the cycle of the base.
func (c *Cycle) AlignWords(base int64) int64 {
	if base < math.MinInt64+2*c.period { // before all whole cycles
		base += 2 * c.period
	}
	return alignedTo(base-c.origin, c.period) + c.origin
}

// number returns the number of the cycle of an instant.
func (c *Cycle) number(now int64) int64 {
	cycle, elapsed := floorDivMod(now, c.period)
	if elapsed < c.origin {
		cycle--
	}
	return cycle
}

// Pack returns the word of a cycle without debt.
func (c *Cycle) Pack(s State, base int64) (uint64, bool) {
	if s.A == math.MinInt64 {
		return 0, true
	}
	l := &c.window.layout
	number := uint64(s.A-c.number(base)) + 1
	ok := s.A >= c.number(base) && number < l.end && uint64(s.B) <= min(uint64(c.limit), l.mask)
	return number<<l.width | uint64(s.B), ok
}

// Unpack returns the cycle of a word and the permits used.
func (c *Cycle) Unpack(word uint64, base int64) State {
	if word == 0 {
		return c.Fresh()
	}
	l := &c.window.layout
	return State{A: c.number(base) + int64(word>>l.width) - 1, B: int64(word & l.mask)}
}

// ResetWord returns the time to the end of a cycle with used permits.
func (c *Cycle) ResetWord(word uint64, base, now int64) (reset int64, ok bool) {
	return c.window.ResetWord(word, base, now)
}
