// Package algorithm holds the limits as pure state machines, one file each,
// and the verbs that are made of them once (decide.go). Nothing here reads a
// clock, locks, logs or does I/O; nothing outside knows an algorithm.
//
// Time is int64 nanoseconds since the Unix epoch, negative times included, and
// costs are units. All arithmetic is on integers, where needed of 128 bits
// (int128.go); only waits are rounded, upwards, and never into a state.
package algorithm

import "math"

const (
	// Never is the wait of a cost that can never fit, and of one too long to
	// tell.
	Never = math.MaxInt64

	// maxUnits is where counts and debts saturate.
	maxUnits = 1 << 53
)

// Algorithm is one limit as four functions over a small state. The functions
// are called with costs of at least 1; Wait also needs n <= Capacity. Where
// time ran back behind the state, each evaluates at the instant that its
// definition clamps to, and durations still count from now.
type Algorithm interface {
	// Fresh is the state of a key never seen.
	Fresh() State
	// Wait is how long until cost n would be admitted; 0 is now.
	Wait(s State, now, n int64) int64
	// Take is the state after cost n was admitted. It may go into debt.
	Take(s State, now, n int64) State
	// Give is the state after n units came back unused, never better than
	// fresh.
	Give(s State, now, n int64) State
	// Room is how many units could be taken right now.
	Room(s State, now int64) int64

	// Capacity is the largest cost that a fresh key admits.
	Capacity() int64
	// Solitary says that the limit cannot be held together with others: it
	// delays what it admits, or writes what it refuses.
	Solitary() bool
}

// State is what a limit remembers of one key. Each algorithm says what the
// numbers mean to it; most need no more than three. A state is used once: after
// Take or Give only the state they return is valid, since Log is changed in
// place.
type State struct {
	A, B, C int64
	Log     []int64
}

// delayer is an Algorithm that admits with a delay: Delay is what is left, at
// now, of the wait that the last Take into s means.
type delayer interface {
	Delay(s State, now int64) int64
}

// leaser is an Algorithm whose units have an identity to come back by; 0 is
// none. Take and Give are those of units without.
type leaser interface {
	TakeLease(s State, now, n int64, identity uint64) State
	GiveLease(s State, now, n int64, identity uint64) State
}

// deniedCounter is an Algorithm that takes what it refuses.
type deniedCounter interface {
	CountsDenied() bool
}

// Idle says that s answers like a fresh state from now on, so that it may be
// forgotten.
func Idle(a Algorithm, s State, now int64) bool {
	return a.Wait(s, now, a.Capacity()) == 0
}
