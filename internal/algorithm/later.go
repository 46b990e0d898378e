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

// planner is an Algorithm whose waiting callers spend their units at the planned instant, however late they wake. The
// other limits are strict: they count the instant of the release.
type planner interface {
	Planned() bool
}

// backlogger is a booker that bounds the units booked in advance.
type backlogger interface {
	Backlog(s State, now, n int64) int64
}

// CanBook reports whether units can be booked for a later instant.
func CanBook(a Algorithm) bool {
	_, ok := a.(booker)
	return ok
}

// Backlog returns the time until the bookings leave room for n more units.
func Backlog(a Algorithm, s State, now, n int64) int64 {
	if b, ok := a.(backlogger); ok {
		return b.Backlog(s, now, n)
	}
	return 0
}

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
func Leases(a Algorithm) bool {
	_, ok := a.(leaser)
	return ok
}

// TakeFor works like Take for units held by identity, if the limit has identities; 0 means none.
func TakeFor(a Algorithm, s State, now, n int64, identity uint64) State {
	if identity != 0 {
		if l, ok := a.(leaser); ok {
			return l.TakeLease(s, now, n, identity)
		}
	}
	return a.Take(s, now, n)
}

// Planned reports whether waiting callers spend their units at the planned instant.
func Planned(a Algorithm) bool {
	p, ok := a.(planner)
	return ok && p.Planned()
}

// AddsUp reports whether takes of n units in total leave the same state as one take of n, in any order, if each take
// happens at the instant that the takes before it permit.
func AddsUp(a Algorithm, s State, now, n int64) bool {
	adder, ok := a.(interface {
		AddsUp(s State, now, n int64) bool
	})
	return ok && adder.AddsUp(s, now, n)
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
func Delays(a Algorithm) bool {
	_, ok := a.(delayer)
	return ok
}

// starter is an Algorithm whose state changes while idle. The state of a key that begins now differs from that of a
// new key, so no state can be evicted.
type starter interface {
	Start(now int64) State
}

// Start returns the state of a key that begins now.
func Start(a Algorithm, now int64) State {
	if s, ok := a.(starter); ok {
		return s.Start(now)
	}
	return a.Fresh()
}

// Endless reports whether units are held until they are released, without expiry.
func Endless(a Algorithm) bool {
	e, ok := a.(interface{ Endless() bool })
	return ok && e.Endless()
}
