package line

import (
	"math"

	"github.com/weirflow/weir/internal/algorithm"
)

// Subject is one limited thing: its state under one limit, and the line of its waiting callers. Every method needs
// the owner's lock.
//
// A method first releases the callers whose turn has come. If callers still wait, it refuses, so that no caller
// overtakes. Otherwise it decides on the state.
type Subject struct {
	// State is the state of the subject. The owner may store it elsewhere while the subject is AtRest.
	State algorithm.State

	algorithm algorithm.Algorithm
	// promised is the latest instant promised to a booking or set by the delay of a Take. Until then, only the newest
	// booking can be undone.
	promised int64
	// stamp is the identity of the booking that wrote the state, and 0 after any other write.
	stamp  uint64
	newest *Booking // the last one that was not made in line

	line *line // nil without waiting callers
}

// NewSubject returns an unused subject.
func NewSubject(a algorithm.Algorithm, now int64) Subject {
	return Subject{algorithm: a, State: algorithm.Start(a, now), promised: math.MinInt64}
}

// wrote notes a write that is no booking.
func (s *Subject) wrote() { s.stamp = 0 }

// Restored notes that the State comes from elsewhere, where it has changed: no earlier booking is the newest write any more.
// An instant that the state promises is that of a delayed Take.
func (s *Subject) Restored() {
	if algorithm.Delays(s.algorithm) {
		s.promised = max(s.promised, s.State.Promised)
	}
	s.wrote()
}

// AtRest reports whether the subject holds only its state: no caller waits, and no promised instant lies ahead.
func (s *Subject) AtRest(now int64) bool { return s.line == nil && s.promised <= now }

// Idle reports whether the subject answers like a fresh one from now on.
func (s *Subject) Idle(now int64) bool {
	return s.AtRest(now) && algorithm.Idle(s.algorithm, s.State, now)
}

// Spare reports whether the subject may be evicted where keys have no room: see algorithm.Spare.
func (s *Subject) Spare(now int64) bool {
	return s.AtRest(now) && algorithm.Spare(s.algorithm, s.State, now)
}

// advance releases the callers whose turn has come, and reports whether others still wait.
func (s *Subject) advance(now int64) (waiting bool) {
	if s.line == nil {
		return false
	}
	s.line.advance(now)
	return s.line != nil && s.line.length() > 0
}

func (s *Subject) part(n int64) algorithm.Part {
	return algorithm.Part{Algorithm: s.algorithm, State: s.State, Cost: n}
}

// Allow decides like Take and returns a bool. It admits only a cost that needs no delay.
func (s *Subject) Allow(now, n int64) bool {
	if n < 0 || s.advance(now) && n > 0 {
		return false
	}
	allowed, changed := algorithm.Allow(s.algorithm, &s.State, now, n)
	if changed {
		s.wrote()
	}
	return allowed
}

// Take takes cost n if it is admitted now. It refuses a negative n.
func (s *Subject) Take(now, n int64) (answer algorithm.Answer) {
	if n < 0 {
		return Never
	}
	if s.advance(now) {
		return s.line.refusal(now, n)
	}
	algorithm.TakeOne(s.algorithm, &s.State, now, n, 0, &answer)
	if answer.Changed {
		s.promise(now, answer.Delay)
		s.wrote()
	}
	return answer
}

// TakeUpTo takes up to n units, as many as are admitted now, and returns their number. If that is 0, the answer is
// the refusal of one unit.
func (s *Subject) TakeUpTo(now, n int64) (taken int64, answer algorithm.Answer) {
	if n < 0 {
		return 0, Never
	}
	if s.advance(now) {
		return 0, s.line.refusal(now, min(n, 1))
	}
	parts := [1]algorithm.Part{s.part(1)}
	taken, answer = algorithm.TakeUpTo(parts[:], now, n)
	if answer.Changed {
		s.State = parts[0].State
		s.promise(now, answer.Delay)
		s.wrote()
	}
	return taken, answer
}

// Peek returns the answer that Take would give.
func (s *Subject) Peek(now, n int64) algorithm.Answer {
	if n < 0 {
		return Never
	}
	if s.advance(now) {
		return s.line.refusal(now, n)
	}
	parts := [1]algorithm.Part{s.part(n)}
	return algorithm.Peek(parts[:], now)
}

// Record counts n even if it does not fit, and reschedules the waiting callers.
func (s *Subject) Record(now, n int64) algorithm.Answer { return s.RecordFor(now, n, 0) }

// RecordFor works like Record for units that identity holds.
func (s *Subject) RecordFor(now, n int64, identity uint64) algorithm.Answer {
	waiting := s.advance(now)
	parts := [1]algorithm.Part{s.part(n)}
	parts[0].Lease = identity
	answer := algorithm.Record(parts[:], now)
	s.State = parts[0].State
	s.wrote()
	if waiting {
		s.replan(now)
		answer.Remaining = 0
	}
	return answer
}

// refused writes what the refusal of cost n writes.
func (s *Subject) refused(now, n int64) {
	if n <= s.algorithm.Capacity() && !s.algorithm.Owns(s.State) {
		s.State = s.algorithm.Refused(s.State, now)
		s.wrote()
	}
}

// spend takes the n units of a turn as of an instant.
func (s *Subject) spend(from, n int64, lease *Lease) {
	algorithm.TakeFor(s.algorithm, &s.State, from, n, lease.identity())
	s.wrote()
	if lease != nil {
		lease.Acquired = algorithm.Leases(s.algorithm)
	}
}

// promise records that a caller goes ahead at now + delay.
func (s *Subject) promise(now, delay int64) {
	if delay > 0 {
		s.promised = max(s.promised, algorithm.AddSaturating(now, delay))
	}
}

// Reset clears the subject.
func (s *Subject) Reset(now int64) {
	s.advance(now)
	s.State = algorithm.Start(s.algorithm, now)
	s.promised = math.MinInt64
	s.wrote()
	s.replan(now)
}

// SetAlgorithm changes the limit and converts the state at once. carry is true if the new limit can take it over.
func (s *Subject) SetAlgorithm(now int64, a algorithm.Algorithm, carry bool) {
	s.advance(now)
	if carry {
		carry = s.carry(now, a)
		s.State = a.Carry(s.algorithm, s.State, now)
	} else {
		s.State = algorithm.Start(a, now)
	}
	if s.algorithm = a; !carry {
		s.wrote()
	}
	s.anew(now)
}

// UseAlgorithm changes the limit to another of the same kind. The next write converts the state. With waiting callers it
// is converted as for a refused caller.
func (s *Subject) UseAlgorithm(now int64, a algorithm.Algorithm) {
	if s.line == nil && algorithm.Converts(a) {
		s.algorithm = a
		return
	}
	s.advance(now)
	if algorithm.Converts(a) {
		s.State = a.Refused(s.State, now)
	} else {
		s.State = a.Carry(s.algorithm, s.State, now)
	}
	s.algorithm = a
	s.wrote()
	s.anew(now)
}

// anew reschedules the waiting callers after a change of the limit.
func (s *Subject) anew(now int64) {
	if s.line != nil {
		s.line.spans = nil
	}
	s.replan(now)
}

// replan reschedules the waiting callers.
func (s *Subject) replan(now int64) {
	if s.line != nil {
		s.line.replan(now)
	}
}

// HasLine reports whether the subject has a line, which it keeps for a moment after the last waiting caller.
func (s *Subject) HasLine() bool { return s.line != nil }

// Close ends the waits of all callers with ErrClosed.
func (s *Subject) Close(now int64) {
	if s.line != nil {
		s.line.close(now)
	}
}

// Never is the answer to a cost that no limit admits, such as a negative one.
var Never = algorithm.Answer{RetryAfter: algorithm.Never}

// identity returns the identity of a lease; 0 means none.
func (l *Lease) identity() uint64 {
	if l == nil {
		return 0
	}
	return l.Identity
}
