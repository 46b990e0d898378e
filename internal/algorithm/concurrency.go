package algorithm

import "math"

// Concurrency bounds the units held at a time. A lease holds a unit. It has an identity to release it by, and an end
// when it expires. State: A is the instant of the last write; earlier times are clamped to it. B is the units of the
// stored leases, including expired ones. Log holds the leases.
//
// A release by identity searches the leases, so it takes time in proportion to the limit.
type Concurrency struct {
	Plain
	slots int64
	lease int64 // ns; 0 if leases do not expire
}

// NewConcurrency returns a limit of slots units with leases of lease ns; a lease of 0 does not expire.
func NewConcurrency(slots, lease int64) *Concurrency {
	return &Concurrency{slots: slots, lease: lease}
}

// Wait returns the time until enough leases have expired for n. Releases may come earlier. If not enough leases
// expire, it returns Never.
func (c *Concurrency) Wait(s State, now, n int64) int64 {
	ended, live := c.live(&s, now)
	return c.free(&s, now, ended, live, live-(c.slots-n))
}

// free returns the time until lacking units have expired of the live ones, or 0 if none are lacking.
func (c *Concurrency) free(s *State, now int64, ended int, live, lacking int64) int64 {
	if lacking <= 0 {
		return 0
	}
	held := leasesOf(s)
	last := held.len() - 1
	if lacking < live { // the last lease answers for all of them
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

// Take holds n units without an identity.
func (c *Concurrency) Take(s State, now, n int64) State { return c.TakeLease(s, now, n, 0) }

// TakeLease holds n units for identity. Units recorded beyond twice the slots are held without an identity, which
// bounds the number of leases.
func (c *Concurrency) TakeLease(s State, now, n int64, identity uint64) State {
	ended, live := c.live(&s, now)
	c.forget(&s, now, ended, live)
	n = min(n, maxUnits-s.B)
	if n <= 0 {
		return s
	}
	s.B += n
	held := lease{end: c.end(s.A), identity: identity, units: n}
	if s.B > 2*c.slots {
		setLog(&s, leasesOf(&s).withUnnamed(held))
	} else {
		setLog(&s, leasesOf(&s).with(held))
	}
	return s
}

// Give releases n units without an identity, those that expire first.
func (c *Concurrency) Give(s State, now, n int64) State { return c.GiveLease(s, now, n, 0) }

// GiveLease releases n units of identity, those that expire first. It cannot release expired units.
func (c *Concurrency) GiveLease(s State, now, n int64, identity uint64) State {
	ended, live := c.live(&s, now)
	c.forget(&s, now, ended, live)
	left, released := leasesOf(&s).without(n, identity)
	s.B -= released
	if s.Log != nil {
		*s.Log = left
	}
	return s
}

// Renew restarts the leases of n units of identity. ok is false, and the state is invalid, if fewer of them live.
func (c *Concurrency) Renew(s State, now, n int64, identity uint64) (_ State, ok bool) {
	_, live := c.live(&s, now)
	s = c.GiveLease(s, now, n, identity)
	if live-s.B < n {
		return s, false
	}
	return c.TakeLease(s, now, n, identity), true
}

// Room returns the free slots.
func (c *Concurrency) Room(s State, now int64) int64 {
	_, live := c.live(&s, now)
	return max(c.slots-live, 0)
}

// Fresh returns a state without leases.
func (c *Concurrency) Fresh() State { return State{A: math.MinInt64} }

// Capacity returns the number of slots.
func (c *Concurrency) Capacity() int64 { return c.slots }

// Endless reports whether leases never expire.
func (c *Concurrency) Endless() bool { return c.lease == 0 }

// Lease returns the length of a lease, or 0 if leases never expire.
func (c *Concurrency) Lease() int64 { return c.lease }

func (c *Concurrency) end(at int64) int64 {
	if c.lease == 0 {
		return Never
	}
	return AddSaturating(at, c.lease)
}

// live returns the number of expired leases and the units of the others.
func (c *Concurrency) live(s *State, now int64) (ended int, units int64) {
	at, units, held := max(s.A, now), s.B, leasesOf(s)
	for ; ended < held.len(); ended++ {
		l := held.at(ended)
		if l.end > at || l.end == Never {
			break
		}
		units -= l.units
	}
	return ended, units
}

// forget drops the leases that have ended by now before a write. Those that live have live units.
func (c *Concurrency) forget(s *State, now int64, ended int, live int64) {
	s.A, s.B = max(s.A, now), live
	if ended > 0 {
		*s.Log = leasesOf(s).drop(ended)
	}
}

// AppendState appends the last instant and the leases.
func (c *Concurrency) AppendState(into []int64, s State) []int64 {
	return append(append(into, s.A), leasesOf(&s)...)
}

// RestoreState refuses leases out of order, units above the bound, and leases that no write at the last instant keeps.
func (c *Concurrency) RestoreState(numbers []int64) (State, bool) {
	if len(numbers) == 0 {
		return State{}, false
	}
	held, units, ok := restoreLeases(numbers[1:], numbers[0])
	s := State{A: numbers[0], B: units}
	if len(held) > 0 {
		setLog(&s, held)
	}
	return s, ok
}
