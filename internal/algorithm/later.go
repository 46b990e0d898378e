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

// Book returns the state after n units were booked for now + Hold.
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

// Leases reports whether units can be released by identity.
func Leases(a Algorithm) bool { return is[leaser](a) }

// TakeFor works like Take for units held by identity, if the limit has identities; 0 means none.
func TakeFor(a Algorithm, s State, now, n int64, identity uint64) State {
	if identity != 0 {
		if l, ok := a.(leaser); ok {
			return l.TakeLease(s, now, n, identity)
		}
	}
	return a.Take(s, now, n)
}

// Hold returns how long cost n must be held back: the wait, or the delay of a limit that queues. n may exceed the
// capacity.
func Hold(a Algorithm, s State, now, n int64) int64 {
	if d, ok := a.(delayer); ok {
		return d.Delay(a.Take(s, now, n), now)
	}
	return a.Wait(s, now, n)
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

// Delays reports whether the limit admits with a delay, up to a queue of its own.
func Delays(a Algorithm) bool { return is[delayer](a) }

// is reports whether a limit has the methods or the type of T.
func is[T any](a Algorithm) bool {
	_, ok := a.(T)
	return ok
}
