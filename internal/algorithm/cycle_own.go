package algorithm

import "math"

// OwnCycle is a Cycle whose cycles begin at the first use of the subject. State: A and B as of a Cycle, and C the
// origin of the cycles, or notBegun.
type OwnCycle struct {
	Plain
	limit, period int64
}

// notBegun stands for an origin, which is 0 or more.
const notBegun = -1

// NewOwnCycle returns a limit of limit permits in each cycle of period ns.
func NewOwnCycle(limit, period int64) *OwnCycle { return &OwnCycle{limit: limit, period: period} }

// of returns the cycles of a state, and the state, which begins now unless it has begun.
func (o *OwnCycle) of(s State, now int64) (Cycle, State) {
	if s.C == notBegun {
		_, s.C = floorDivMod(now, o.period)
	}
	return Cycle{limit: o.limit, period: o.period, origin: s.C}, s
}

// Wait returns the time to the start of the first cycle with n permits left.
func (o *OwnCycle) Wait(s State, now, n int64) int64 {
	c, s := o.of(s, now)
	return c.Wait(s, now, n)
}

// Take uses n permits. The first use begins the cycles.
func (o *OwnCycle) Take(s State, now, n int64) State {
	c, s := o.of(s, now)
	return since(s.C, c.Take(s, now, n))
}

// Give returns n permits.
func (o *OwnCycle) Give(s State, now, n int64) State {
	if s.C == notBegun {
		return s
	}
	c, s := o.of(s, now)
	return since(s.C, c.Give(s, now, n))
}

// since returns the state of a Cycle with its origin.
func since(origin int64, s State) State {
	s.C = origin
	return s
}

// Room returns the permits left in the cycle.
func (o *OwnCycle) Room(s State, now int64) int64 {
	c, s := o.of(s, now)
	return c.Room(s, now)
}

// Fresh returns a state that begins at its first use.
func (o *OwnCycle) Fresh() State { return State{A: math.MinInt64, C: notBegun} }

// Capacity returns the permits of a cycle.
func (o *OwnCycle) Capacity() int64 { return o.limit }

// Backlog returns the time until the debt has room for n more permits.
func (o *OwnCycle) Backlog(s State, now, n int64) int64 {
	c, s := o.of(s, now)
	return c.Backlog(s, now, n)
}

// Book works like Take: permits of later cycles are a debt.
func (o *OwnCycle) Book(s State, now, n int64) State { return o.Take(s, now, n) }

// Unbook returns the state before.
func (o *OwnCycle) Unbook(before, _ State, _ int64) State { return before }

// Carry grants the permits of the cycles begun since under the earlier limit. The cycles keep their origin.
func (o *OwnCycle) Carry(before Algorithm, s State, now int64) State {
	if s.C == notBegun {
		return s
	}
	c, s := before.(*OwnCycle).of(s, now)
	return since(s.C, c.at(s, now))
}

// Start returns Fresh: the first use begins the cycles.
func (o *OwnCycle) Start(int64) State { return o.Fresh() }

// PerKey returns the limit itself.
func (o *OwnCycle) PerKey() Algorithm { return o }

// Rested reports whether the subject has not begun. A later state has cycles of its own.
func (o *OwnCycle) Rested(s State, _ int64) bool { return s.C == notBegun }

// Spare reports whether all permits are there: a new key has as many now, and gets the next ones later.
func (o *OwnCycle) Spare(s State, now int64) bool { return o.Room(s, now) == o.limit }
