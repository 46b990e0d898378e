package algorithm

import "math"

// Concurrency lets so many units be held at once. A unit is held by a lease,
// which has an identity to release it by and an end at which it releases
// itself. State: A is the instant of the last write; time behind it is taken as
// that instant. B is the units of the leases kept, ended ones included. Log is
// the leases.
//
// A release by identity looks through the leases, so it costs time in
// proportion to the limit.
type Concurrency struct {
	slots int64
	lease int64 // ns; 0 if leases do not end by themselves
}

// NewConcurrency makes a limit of so many units held at once, for at most so
// many ns each; 0 is without end.
func NewConcurrency(slots, lease int64) *Concurrency {
	return &Concurrency{slots: slots, lease: lease}
}

// Wait is the time until enough leases have ended for n. Releases may come
// earlier; and if not enough leases ever end, nobody knows and it is Never.
func (c *Concurrency) Wait(s State, now, n int64) int64 {
	ended, live := c.live(s, now)
	lacking := live - (c.slots - n)
	if lacking <= 0 {
		return 0
	}
	held := leases(s.Log)
	last := held.len() - 1
	if lacking < live { // for all of them the last is the answer
		for last = ended; ; last++ {
			if lacking -= held.at(last).units; lacking <= 0 {
				break
			}
		}
	}
	if end := held.at(last).end; end != Never {
		return subSat(end, now)
	}
	return Never
}

// Take holds n units for nobody in particular.
func (c *Concurrency) Take(s State, now, n int64) State { return c.TakeLease(s, now, n, 0) }

// TakeLease holds n units for identity. What is recorded beyond twice the slots
// is held for nobody in particular, which bounds the leases.
func (c *Concurrency) TakeLease(s State, now, n int64, identity uint64) State {
	s = c.forget(s, now)
	n = min(n, maxUnits-s.B)
	if n <= 0 {
		return s
	}
	s.B += n
	held := lease{end: c.end(s.A), identity: identity, units: n}
	if s.B > 2*c.slots {
		s.Log = leases(s.Log).withNobodys(held)
	} else {
		s.Log = leases(s.Log).with(held)
	}
	return s
}

// Give releases n units held for nobody in particular, those that end first.
func (c *Concurrency) Give(s State, now, n int64) State { return c.GiveLease(s, now, n, 0) }

// GiveLease releases n units held for identity, those that end first, and no
// others': what has ended is not there to be released.
func (c *Concurrency) GiveLease(s State, now, n int64, identity uint64) State {
	s = c.forget(s, now)
	left, released := leases(s.Log).without(n, identity)
	s.B -= released
	s.Log = left
	return s
}

// Room is the slots left.
func (c *Concurrency) Room(s State, now int64) int64 {
	_, live := c.live(s, now)
	return max(c.slots-live, 0)
}

// Fresh is without leases.
func (c *Concurrency) Fresh() State { return State{A: math.MinInt64} }

// Capacity is the slots.
func (c *Concurrency) Capacity() int64 { return c.slots }

// Endless says that only the holder ends what it holds.
func (c *Concurrency) Endless() bool { return c.lease == 0 }

// Solitary is false.
func (c *Concurrency) Solitary() bool { return false }

func (c *Concurrency) end(at int64) int64 {
	if c.lease == 0 {
		return Never
	}
	return AddSaturating(at, c.lease)
}

// live is how many leases have ended, and the units of the others.
func (c *Concurrency) live(s State, now int64) (ended int, units int64) {
	at, units, held := max(s.A, now), s.B, leases(s.Log)
	for ; ended < held.len(); ended++ {
		l := held.at(ended)
		if l.end > at || l.end == Never {
			break
		}
		units -= l.units
	}
	return ended, units
}

// forget drops the leases that have ended, before a write.
func (c *Concurrency) forget(s State, now int64) State {
	ended, live := c.live(s, now)
	s.A, s.B = max(s.A, now), live
	s.Log = leases(s.Log).drop(ended)
	return s
}

// AppendState appends the last instant and the leases.
func (c *Concurrency) AppendState(into []int64, s State) []int64 {
	return append(append(into, s.A), s.Log...)
}

// RestoreState refuses leases out of order, and more units than can be held.
func (c *Concurrency) RestoreState(numbers []int64) (State, bool) {
	if len(numbers) == 0 {
		return State{}, false
	}
	held, units, ok := restoreLeases(numbers[1:])
	return State{A: numbers[0], B: units, Log: held}, ok
}
