package algorithm

import "slices"

// What the verbs that wait need to know, made of the four functions and of two
// abilities that only some limits have.

// booker is an Algorithm that admits for a later instant: its state then says
// itself how much is spent ahead of time.
type booker interface {
	// Book is the state after n units were told to go at now + Wait.
	Book(s State, now, n int64) State
	// Unbook undoes the newest booking exactly: after is the state that it
	// left, before the one that it found.
	Unbook(before, after State, n int64) State
}

// rebooker is a booker that keeps a part of a booking in its own way.
type rebooker interface {
	Rebook(before, after State, taken, n, keep int64) State
}

// planner is an Algorithm whose waiters spend their units at the instant that
// was planned for them, however late they wake. The others are strict: what
// counts is the instant of the release.
type planner interface {
	Planned() bool
}

// backlogger is a booker that bounds what lies ahead.
type backlogger interface {
	Backlog(s State, now, n int64) int64
}

// CanBook says that units can be told an instant to come.
func CanBook(a Algorithm) bool {
	_, ok := a.(booker)
	return ok
}

// Backlog is how long until what is booked leaves room for another n units: a
// limit may bound what lies ahead.
func Backlog(a Algorithm, s State, now, n int64) int64 {
	if b, ok := a.(backlogger); ok {
		return b.Backlog(s, now, n)
	}
	return 0
}

// Book is the state after n units were told to go at now + Hold.
func Book(a Algorithm, s State, now, n int64) State {
	if b, ok := a.(booker); ok {
		return b.Book(s, now, n)
	}
	return a.Take(s, now, n)
}

// Unbook undoes the newest booking, of n units. Of an algorithm without
// bookings it makes the state that was there before.
func Unbook(a Algorithm, before, after State, n int64) State {
	if b, ok := a.(booker); ok {
		return b.Unbook(before, after, n)
	}
	return before
}

// Rebook undoes the newest booking but for keep of its n units, which still go
// at the instant that they were told; taken is when it was booked.
func Rebook(a Algorithm, before, after State, taken, n, keep int64) State {
	if r, ok := a.(rebooker); ok {
		return r.Rebook(before, after, taken, n, keep)
	}
	return Book(a, Unbook(a, before, after, n), taken, keep)
}

// Leases says that units have an identity to come back by.
func Leases(a Algorithm) bool {
	_, ok := a.(leaser)
	return ok
}

// TakeFor is Take of units that identity holds, where they can have one; 0 is
// none.
func TakeFor(a Algorithm, s State, now, n int64, identity uint64) State {
	if identity != 0 {
		if l, ok := a.(leaser); ok {
			return l.TakeLease(s, now, n, identity)
		}
	}
	return a.Take(s, now, n)
}

// Planned says whether waiters spend their units at the planned instant.
func Planned(a Algorithm) bool {
	p, ok := a.(planner)
	return ok && p.Planned()
}

// AddsUp says that takes of n units in all, from now on and each at the instant
// at which the ones before let it go, leave what one take of n leaves, in any
// order.
func AddsUp(a Algorithm, s State, now, n int64) bool {
	adder, ok := a.(interface {
		AddsUp(s State, now, n int64) bool
	})
	return ok && adder.AddsUp(s, now, n)
}

// Hold is how long cost n has to be held back: the wait, or the delay of a limit
// that queues. n may be more than the limit takes at once.
func Hold(a Algorithm, s State, now, n int64) int64 {
	if d, ok := a.(delayer); ok {
		return d.Delay(a.Take(s, now, n), now)
	}
	return a.Wait(s, now, n)
}

// Clone is a copy of s that can be taken from without changing s.
func (s State) Clone() State {
	if all := s.Log[:cap(s.Log)]; len(all) > 0 {
		s.Log = slices.Clone(all)[:len(s.Log):len(all)]
	}
	return s
}

// Delays says that the limit admits with a delay, up to a queue of its own.
func Delays(a Algorithm) bool {
	_, ok := a.(delayer)
	return ok
}

// starter is an Algorithm that idleness changes: the state of a key that begins
// now is not the one of a key never seen, so no state can be forgotten.
type starter interface {
	Start(now int64) State
}

// Start is the state of a key that begins now.
func Start(a Algorithm, now int64) State {
	if s, ok := a.(starter); ok {
		return s.Start(now)
	}
	return a.Fresh()
}

// Starts says that idleness changes the limit.
func Starts(a Algorithm) bool {
	_, ok := a.(starter)
	return ok
}

// Endless says that units are held until they are given back, however long.
func Endless(a Algorithm) bool {
	e, ok := a.(interface{ Endless() bool })
	return ok && e.Endless()
}
