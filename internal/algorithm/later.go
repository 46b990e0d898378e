package algorithm

import "slices"

// This file holds what the waiting verbs need: functions built on the four of Algorithm and on the optional abilities
// of some limits.

// booker is an Algorithm that admits for a later instant. Its state records what is spent in advance.
type booker interface {
	// Book returns the state after n units were booked for now + Wait.
	Book(s State, now, n int64) State
	// Unbook undoes the newest booking exactly. before is the state before the booking, after the state after it.
	Unbook(before, after State, n int64) State
}

// rebooker is a booker with its own way of keeping part of a booking.
type rebooker interface {
	Rebook(before, after State, taken, n, keep int64) State
}

// CanBook reports whether units can be booked for a later instant.
func CanBook(a Algorithm) bool { return is[booker](a) }

// Book returns the state after n units were booked for now + UntilDue.
func Book(a Algorithm, s State, now, n int64) State {
	if b, ok := a.(booker); ok {
		return b.Book(s, now, n)
	}
	return a.Take(s, now, n)
}

// Unbook undoes the newest booking, of n units. For an algorithm without bookings it returns before.
func Unbook(a Algorithm, before, after State, n int64) State {
	if b, ok := a.(booker); ok {
		return b.Unbook(before, after, n)
	}
	return before
}

// Rebook undoes the newest booking except for keep of its n units, which keep their instant. taken is the time of the
// booking.
func Rebook(a Algorithm, before, after State, taken, n, keep int64) State {
	if r, ok := a.(rebooker); ok {
		return r.Rebook(before, after, taken, n, keep)
	}
	return Book(a, Unbook(a, before, after, n), taken, keep)
}

// Clone returns a copy of s that can change independently.
func (s State) Clone() State {
	if s.Log != nil {
		used, all := len(*s.Log), (*s.Log)[:cap(*s.Log)]
		copied := slices.Clone(all)[:used:len(all)]
		s.Log = &copied
	}
	return s
}

// Size returns the numbers that the log of s has room for.
func (s State) Size() int {
	if s.Log == nil {
		return 0
	}
	return cap(*s.Log)
}
