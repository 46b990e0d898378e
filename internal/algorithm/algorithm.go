// Package algorithm holds the limits as pure state machines, one file each, and the verbs over them (decide.go). It
// reads no clock, takes no lock, logs nothing and does no I/O.
//
// Time is int64 nanoseconds since the Unix epoch, including negative times. Costs are units. All arithmetic is on
// integers, of 128 bits where needed (int128.go). Only waits are rounded; they are rounded up and never stored in a
// state.
package algorithm

import (
	"math"
)

const (
	// Never is the wait of a cost that can never fit, or whose wait does not fit the type.
	Never = math.MaxInt64

	// maxUnits is where counts and debts saturate.
	maxUnits = 1 << 53
	// maxPeriod is the longest period and the longest lease.
	maxPeriod = 366 * 24 * 3600 * 1_000_000_000
)

// Algorithm is one limit as four functions over a small state. Callers pass costs of at least 1, and to Wait at most
// Capacity. When time runs back behind the state, each function evaluates at an instant clamped by its definition;
// durations still count from now.
type Algorithm interface {
	// Fresh returns the state of a new key.
	Fresh() State
	// Wait returns the time until the limit admits cost n; 0 means now.
	Wait(s State, now, n int64) int64
	// Take returns the state after cost n was admitted. The state may go into debt.
	Take(s State, now, n int64) State
	// Give returns the state after n unused units were given back. It is never better than fresh.
	Give(s State, now, n int64) State
	// Room returns the units that could be taken now.
	Room(s State, now int64) int64

	// Capacity returns the largest cost that a fresh key admits.
	Capacity() int64

	// Most limits embed Plain for the rest.

	// Solitary reports whether the limit cannot be combined with others, because it delays what it admits or writes
	// what it refuses.
	Solitary() bool
	// CountsDenied reports whether the limit also takes refused costs, except those that can never fit.
	CountsDenied() bool
	// GapLeft returns what is left of the least time after the newest request.
	GapLeft(s State, now int64) int64
	// Endless reports whether units are held until they are released, without expiry.
	Endless() bool
	// Records reports whether a record leaves a state of bounded size.
	Records(s State, now int64) bool
	// Planned reports whether waiting callers spend their units at the planned instant, even if they wake late. The
	// other limits are strict: they count the instant of the release.
	Planned() bool
	// SpendAt returns when a waiting caller of a planned limit takes its units, if it must be held from an instant.
	SpendAt(s State, from, delay int64) int64
	// AddsUp reports whether takes of n units in total leave the same state as one take of n, in any order, if each
	// take happens at the instant that the takes before it permit.
	AddsUp(s State, now, n int64) bool
	// Backlog returns the time until the bookings leave room for n more units.
	Backlog(s State, now, n int64) int64

	// Carry returns the state under another limit of the same kind, before, converted at once.
	Carry(before Algorithm, s State, now int64) State
	// Owns reports whether s can be read like a state that the limit wrote itself.
	Owns(s State) bool
	// Refused returns the state after a cost was refused for lack of room: converted, if the limit is faster.
	Refused(s State, now int64) State
	// Settled reports whether words of s hold all of it, except for the last conversion. They do not while a promised
	// instant lies ahead that they do not hold.
	Settled(s State, now int64) bool
}

// Plain is what most limits embed: they combine with others, count what they admit at once, and read all states of their
// kind alike.
type Plain struct{}

func (Plain) Solitary() bool                            { return false }
func (Plain) CountsDenied() bool                        { return false }
func (Plain) GapLeft(State, int64) int64                { return 0 }
func (Plain) Endless() bool                             { return false }
func (Plain) Records(State, int64) bool                 { return true }
func (Plain) Planned() bool                             { return false }
func (Plain) SpendAt(_ State, from, _ int64) int64      { return from }
func (Plain) AddsUp(State, int64, int64) bool           { return false }
func (Plain) Backlog(State, int64, int64) int64         { return 0 }
func (Plain) Carry(_ Algorithm, s State, _ int64) State { return s }
func (Plain) Owns(State) bool                           { return true }
func (Plain) Refused(s State, _ int64) State            { return s }
func (Plain) Settled(State, int64) bool                 { return true }

// State is what a limit stores for one key. Each algorithm defines the meaning of A, B and C. A state is used once:
// after Take or Give only the returned state is valid, because Log is changed in place.
//
// Log is a pointer so that a state has seven words: calls pass it in registers, with a receiver and a time.
type State struct {
	A, B, C int64
	Log     *[]int64 // nil, or the entries of a log or the leases

	// Unit, Converted and Promised belong to a bucket: see TokenBucket.
	Unit, Converted, Promised int64
}

// delayer is an Algorithm that admits with a delay. Delay returns the part of the last Take's delay that is left at
// now.
type delayer interface {
	Delay(s State, now int64) int64
}

// Delays reports whether the limit admits with a delay, up to a queue of its own.
func Delays(a Algorithm) bool { return is[delayer](a) }

// UntilDue returns the time until cost n is due: the wait, or the delay of a limit that queues. n may exceed the
// capacity.
func UntilDue(a Algorithm, s State, now, n int64) int64 {
	if d, ok := a.(delayer); ok {
		return d.Delay(a.Take(s, now, n), now)
	}
	return a.Wait(s, now, n)
}

// leaser is an Algorithm whose units can be released by identity; 0 means none. Take and Give handle units without an
// identity.
type leaser interface {
	TakeLease(s State, now, n int64, identity uint64) State
	GiveLease(s State, now, n int64, identity uint64) State
}

// Leases reports whether units can be released by identity.
func Leases(a Algorithm) bool { return is[leaser](a) }

// TakeFor works like Take, in place, for units held by identity, if the limit has identities; 0 means none. Each copy of
// a state on its way would wait until the processor has written the one before.
func TakeFor(a Algorithm, s *State, now, n int64, identity uint64) {
	if identity != 0 {
		if l, ok := a.(leaser); ok {
			*s = l.TakeLease(*s, now, n, identity)
			return
		}
	}
	*s = a.Take(*s, now, n)
}

// converter is an Algorithm whose states have another meaning under another rate. It decides on states of all rates, and
// converts them when it writes them.
type converter interface{ converts() }

// Converts reports whether the limit converts states of other rates when it writes them.
func Converts(a Algorithm) bool { return is[converter](a) }

// keepConverted is how long the instant of a conversion is kept: as long as an earlier take may be undone.
const keepConverted = int64(60e9)

// JustConverted reports whether the instant of the last conversion still matters.
func JustConverted(a Algorithm, s State, now int64) bool {
	return s.Converted != math.MinInt64 && Converts(a) && subSat(now, s.Converted) < keepConverted
}

// Stateless reports whether all states of the limit are equal.
func Stateless(a Algorithm) bool { return is[Constant](a) }

// is reports whether a limit has the methods or the type of T.
func is[T any](a Algorithm) bool {
	_, ok := a.(T)
	return ok
}
