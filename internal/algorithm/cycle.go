package algorithm

import "math"

// Cycle grants limit permits at the start of each cycle, and callers may book permits of later cycles. Cycles begin
// at origin and every period from there. State: A is the number of the cycle, B the permits used of it and of later
// cycles; limit - B is what resilience4j calls the permissions. Times before the stored cycle are clamped to its
// start.
type Cycle struct {
	Plain
	limit, period int64
	origin        int64 // 0 to period - 1

	window FixedWindow // decides on words
}

// NewCycle returns a limit of limit permits in each cycle of period ns. One cycle begins at origin.
func NewCycle(limit, period, origin int64) *Cycle {
	_, phase := floorDivMod(origin, period)
	return &Cycle{limit: limit, period: period, origin: phase, window: *NewFixedWindow(limit, period)}
}

// Wait returns the time to the start of the first cycle with n permits left.
func (c *Cycle) Wait(s State, now, n int64) int64 {
	s = c.at(s, now)
	return c.until(s, now, s.B-(c.limit-n))
}

// until returns the time to the start of the cycle that has granted the lacking permits, limit of them in each cycle.
func (c *Cycle) until(s State, now, lacking int64) int64 {
	if lacking <= 0 {
		return 0
	}
	cycles := mul(lacking, 1).ceilDiv(c.limit)
	start := mul(s.A, c.period).add(mul(cycles, c.period)).add(mul(c.origin, 1))
	return start.sub(mul(now, 1)).ceilDiv(1)
}

// Take uses n permits, with a debt of at most 2^53.
func (c *Cycle) Take(s State, now, n int64) State {
	s = c.at(s, now)
	s.B = min(AddSaturating(s.B, n), max(s.B, AddSaturating(c.limit, maxUnits)))
	return s
}

// Give returns n permits.
func (c *Cycle) Give(s State, now, n int64) State {
	s = c.at(s, now)
	s.B = max(s.B-n, 0)
	return s
}

// Room returns the permits left in the cycle.
func (c *Cycle) Room(s State, now int64) int64 { return max(c.limit-c.at(s, now).B, 0) }

// Fresh returns an unused cycle before all others.
func (c *Cycle) Fresh() State { return State{A: math.MinInt64} }

// Capacity returns the limit.
func (c *Cycle) Capacity() int64 { return c.limit }

// Backlog returns the time until the debt has room for n more permits.
func (c *Cycle) Backlog(s State, now, n int64) int64 {
	s = c.at(s, now)
	return c.until(s, now, s.B-c.limit-(maxUnits-n))
}

// Book works like Take: permits of later cycles are a debt.
func (c *Cycle) Book(s State, now, n int64) State { return c.Take(s, now, n) }

// Unbook returns the state before.
func (c *Cycle) Unbook(before, _ State, _ int64) State { return before }

// at returns the state as of now. Each cycle begun since has granted limit permits, up to the used ones.
func (c *Cycle) at(s State, now int64) State {
	cycle := c.number(now)
	if cycle <= s.A {
		return s
	}
	began := uint64(cycle) - uint64(s.A)
	if began >= uint64(s.B) {
		return State{A: cycle} // limit is at least 1
	}
	left := mul(s.B, 1).sub(mul(int64(began), c.limit))
	return State{A: cycle, B: left.floorDiv(1)}
}

// Carry grants the permits of the cycles begun since under the earlier limit.
func (c *Cycle) Carry(before Algorithm, s State, now int64) State {
	return before.(*Cycle).at(s, now)
}

// AppendState appends the cycle and the permits used.
func (c *Cycle) AppendState(into []int64, s State) []int64 { return appendNumbers(into, s, 2) }

// RestoreState refuses a debt above the bound of Take, and numbers of no cycle.
func (c *Cycle) RestoreState(numbers []int64) (s State, ok bool) {
	s, ok = restoreNumbers(numbers, 2)
	return s, ok && s.B >= 0 && s.B <= 2*maxUnits && isWindow(s, c.period, c.origin)
}
