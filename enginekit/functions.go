package enginekit

import (
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/algorithm"
)

// State is what a limit stores for one key. It is used once: after Take or Give, only the returned state is valid.
type State struct{ state algorithm.State }

// Functions are one limit as pure functions over the state of a key. Instants and durations are int64 values in the
// ticks passed to FunctionsOf; those of a Part are in nanoseconds. [weir.Never] is the longest duration in all units.
// [weir.Describe] says what kind of limit it is: Bookable, Delays, Held, Alone, Stateless, CountsDenied.
// The zero value is not usable.
type Functions struct{ algorithm algorithm.Algorithm }

// FunctionsOf returns the functions of a limit in ticks, such as the microseconds of a database. The error is a
// *weir.LimitError: the limit is out of bounds, no rule holds it, or its durations are not whole ticks.
func FunctionsOf(l weir.Limit, tick time.Duration) (Functions, error) {
	a, err := weir.Kit.Algorithm(l, tick)
	return Functions{a}, err
}

// Capacity returns the largest cost that a fresh key admits.
func (f Functions) Capacity() int64 { return f.algorithm.Capacity() }

// Fresh returns the state of a new key.
func (f Functions) Fresh() State { return State{f.algorithm.Fresh()} }

// Wait returns the time until a cost is admitted: 0 means now, and weir.Never a cost above the capacity.
func (f Functions) Wait(s State, now, cost int64) int64 {
	switch {
	case cost <= 0:
		return 0
	case cost > f.algorithm.Capacity():
		return algorithm.Never
	}
	return f.algorithm.Wait(s.state, now, cost)
}

// Take returns the state after a cost of at least 1 was taken, even if it does not fit. The lease holds the units if
// the limit Leases.
func (f Functions) Take(s State, now, cost int64, lease uint64) State {
	algorithm.TakeFor(f.algorithm, &s.state, now, cost, lease)
	return s
}

// UntilDue returns how far ahead a cost of at least 1 can be reserved, if the limit is Bookable. The instant of a booking
// is the latest of all limits of its rule.
func (f Functions) UntilDue(s State, now, cost int64) int64 {
	part := algorithm.Part{Algorithm: f.algorithm, State: s.state, Cost: cost}
	return part.UntilDue(now)
}

// Book returns the state after a cost of at least 1 was booked for now + until, which is at least UntilDue. The limit is
// Bookable.
func (f Functions) Book(s State, now, cost, until int64) State {
	part := [1]algorithm.Part{{Algorithm: f.algorithm, State: s.state, Cost: cost}}
	algorithm.BookFor(part[:], now, until)
	return State{part[0].State}
}

// Give returns the state after at least 1 unit was given back, from those that the lease holds if the limit Leases.
// It is never better than fresh.
func (f Functions) Give(s State, now, units int64, lease uint64) State {
	part := [1]algorithm.Part{{Algorithm: f.algorithm, State: s.state, Cost: -units, Lease: lease}}
	algorithm.Record(part[:], now)
	return State{part[0].State}
}

// TakenAt returns when the units of a take that has just written s count as taken: now, unless time has run back.
func (f Functions) TakenAt(s State, now int64) int64 {
	return algorithm.TakenAt(f.algorithm, s.state, now)
}

// Undo works like Give for units that were taken at an instant, by TakenAt. A window, a cycle, a log or a gate gets back only
// what still counts of that take.
func (f Functions) Undo(s State, taken, now, units int64, lease uint64) State {
	part := [1]algorithm.Part{{Algorithm: f.algorithm, State: s.state, Cost: -units, Lease: lease, Taken: taken}}
	algorithm.Undo(part[:], now)
	return State{part[0].State}
}

// Refused returns the state after a cost was refused for lack of room. changed is true if the engine must store it:
// the limit is a bucket that is faster than the one that wrote the state, and the cost is at most its capacity. A call
// that is refused stores it for each part whose own Wait is above 0, if no cost of the call is above a capacity.
func (f Functions) Refused(s State, now, cost int64) (_ State, changed bool) {
	if cost <= 0 || cost > f.algorithm.Capacity() || f.algorithm.Owns(s.state) {
		return s, false
	}
	s.state = f.algorithm.Refused(s.state, now)
	return s, f.algorithm.Owns(s.state)
}

// Room returns the largest cost that is admitted now.
func (f Functions) Room(s State, now int64) int64 { return f.algorithm.Room(s.state, now) }

// GapLeft returns the rest of the gap that the limit keeps between requests, or 0.
func (f Functions) GapLeft(s State, now int64) int64 { return f.algorithm.GapLeft(s.state, now) }

// ResetAfter returns the time until the state answers like a fresh one.
func (f Functions) ResetAfter(s State, now int64) int64 {
	if b, bans := f.algorithm.(*algorithm.Ban); bans {
		return b.Keep(s.state, now)
	}
	return f.algorithm.Wait(s.state, now, f.algorithm.Capacity())
}

// Strike returns the state of a weir.Ban after a take whose request another limit of the rule refuses, and whether a ban
// begins with it. The key is not banned, every cost of the call is within the capacity of its limits, the caller does not wait,
// and a take notes it once for each rule. The engine stores the state.
func (f Functions) Strike(s State, now int64) (_ State, begun bool) {
	b, ok := f.algorithm.(*algorithm.Ban)
	if !ok {
		return s, false
	}
	s.state, begun = b.Strike(s.state, now)
	return s, begun
}

// Window returns the window of a Quota that holds an instant, which ends just before end. ok is false for other limits.
func (f Functions) Window(now int64) (start, end int64, ok bool) {
	q, ok := f.algorithm.(*algorithm.Quota)
	if !ok {
		return 0, 0, false
	}
	start, end = q.Window(now)
	return start, end, true
}

// Keep returns the time until the state answers like a fresh one under every limit that reads it, which is at least
// ResetAfter. An engine may then evict it, unless its clock can run backwards. A Quota keeps a state for other zones.
func (f Functions) Keep(s State, now int64) int64 { return algorithm.Keep(f.algorithm, s.state, now) }

// Delay returns how long the last cost taken must be held back. It is 0 unless the limit Delays.
func (f Functions) Delay(s State, now int64) int64 {
	if d, ok := f.algorithm.(interface {
		Delay(s algorithm.State, now int64) int64
	}); ok {
		return d.Delay(s.state, now)
	}
	return 0
}

// AppendNumbers appends the state as numbers, so that an engine can store it
// anywhere. They are valid for limits of the same kind and window, of any rate and burst:
//
//   - TokenBucket, LeakyBucket: the instant at which the bucket is full again, in
//     1/d ticks, as the high and the low half of 128 bits; d; the 1/d ticks that a
//     unit takes under the limit that wrote the state; the instant of the last
//     change of that limit; and the newest instant that a caller was promised
//   - FixedWindow: the number of the window since the Unix epoch, and its units
//   - FirstWindow: the start of the window, and its units
//   - SlidingWindow: as FixedWindow, and the units of the window before
//   - Cycle: the number of the cycle, and the units of it and of later ones
//   - Quota: the Unix second of the last admission, and the units of its window
//   - Ban: the instant of the last refusal or the last begin of a ban; the end of the ban; how often the length of the next
//     one doubles; the instant from which the state is like a fresh one; and the refusals that count; a fresh key has no
//     numbers
//   - all others: as many numbers as their entries need
func (f Functions) AppendNumbers(to []int64, s State) []int64 {
	return f.algorithm.(algorithm.Saver).AppendState(to, s.state)
}

// FromNumbers returns the state of the numbers. ok is false if AppendNumbers cannot have written them.
func (f Functions) FromNumbers(numbers []int64) (s State, ok bool) {
	if b, bucket := f.algorithm.(*algorithm.TokenBucket); bucket { // most limits are one, and this call is inlined
		s.state, ok = b.RestoreState(numbers)
		return s, ok
	}
	s.state, ok = f.algorithm.(algorithm.Saver).RestoreState(numbers)
	return s, ok
}
