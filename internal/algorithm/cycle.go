package algorithm

import "math"

// Cycle gives out limit permits at the start of each cycle, and permits of
// cycles to come may be booked. Cycles begin at origin and every period from
// there. State: A is the number of the cycle, B the permits used of it and of
// those after it: limit - B is what resilience4j calls the permissions. Time
// behind the stored cycle is taken as the start of it.
type Cycle struct {
	limit, period int64
	origin        int64 // 0 to period - 1
}

// NewCycle makes a limit of so many permits in each cycle of period ns, one of
// which begins at origin.
func NewCycle(limit, period, origin int64) *Cycle {
	_, phase := floorDivMod(origin, period)
	return &Cycle{limit: limit, period: period, origin: phase}
}

// Wait is the time to the start of the first cycle with n permits left.
func (c *Cycle) Wait(s State, now, n int64) int64 {
	s = c.at(s, now)
	return c.until(s, now, s.B-(c.limit-n))
}

// until is the time to the start of the cycle that has brought so many permits
// back: each brings limit.
func (c *Cycle) until(s State, now, lacking int64) int64 {
	if lacking <= 0 {
		return 0
	}
	cycles := mul(lacking, 1).ceilDiv(c.limit)
	start := mul(s.A, c.period).add(mul(cycles, c.period)).add(mul(c.origin, 1))
	return start.sub(mul(now, 1)).ceilDiv(1)
}

// Take uses n permits, up to a debt of 2^53.
func (c *Cycle) Take(s State, now, n int64) State {
	s = c.at(s, now)
	s.B = min(AddSaturating(s.B, n), max(s.B, AddSaturating(c.limit, maxUnits)))
	return s
}

// Give brings n permits back.
func (c *Cycle) Give(s State, now, n int64) State {
	s = c.at(s, now)
	s.B = max(s.B-n, 0)
	return s
}

// Room is the permits left in the cycle.
func (c *Cycle) Room(s State, now int64) int64 { return max(c.limit-c.at(s, now).B, 0) }

// Fresh is an unused cycle before all others.
func (c *Cycle) Fresh() State { return State{A: math.MinInt64} }

// Capacity is the limit.
func (c *Cycle) Capacity() int64 { return c.limit }

// Solitary is false.
func (c *Cycle) Solitary() bool { return false }

// Backlog is the time until the debt has room for n more permits.
func (c *Cycle) Backlog(s State, now, n int64) int64 {
	s = c.at(s, now)
	return c.until(s, now, s.B-c.limit-(maxUnits-n))
}

// Book is Take: permits of cycles to come are a debt.
func (c *Cycle) Book(s State, now, n int64) State { return c.Take(s, now, n) }

// Unbook is the state before.
func (c *Cycle) Unbook(before, _ State, _ int64) State { return before }

// at is the state as of now: each cycle that began since brought limit permits,
// never more than are lacking.
func (c *Cycle) at(s State, now int64) State {
	cycle, elapsed := floorDivMod(now, c.period)
	if elapsed < c.origin {
		cycle--
	}
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

// Carry applies the permits that earlier cycles brought, under the limit they
// had.
func (c *Cycle) Carry(before Algorithm, s State, now int64) State {
	return before.(*Cycle).at(s, now)
}

// AppendState appends the cycle and the permits used.
func (c *Cycle) AppendState(into []int64, s State) []int64 { return appendNumbers(into, s, 2) }

// RestoreState refuses a debt beyond what Take allows.
func (c *Cycle) RestoreState(numbers []int64) (s State, ok bool) {
	s, ok = restoreNumbers(numbers, 2)
	return s, ok && s.B >= 0 && s.B <= 2*maxUnits
}
