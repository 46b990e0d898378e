package line

import (
	"math"

	"github.com/weirflow/weir/internal/algorithm"
)

// Subject is one thing that is limited: the state under one limit, and the line
// of the callers that wait for it. Every method needs the owner's lock.
//
// The flow of a verb: first the waiting callers whose turn has come are let go.
// If callers still wait, the verb refuses: nobody overtakes. Otherwise it decides
// on the state.
type Subject struct {
	// State is the state of the subject. The owner may keep it elsewhere while
	// the subject is AtRest.
	State algorithm.State

	algorithm algorithm.Algorithm
	// promised is the latest instant that was promised to a booking, or that a
	// Take was delayed to. While it lies ahead, only the newest booking can be
	// undone.
	promised int64
	// stamp is the number of the last write, and lastStamp the last number
	// used. By its stamp a booking knows whether anything was written since.
	stamp, lastStamp uint64

	line *line // nil while nobody waits
}

// NewSubject makes a subject never seen, whose writes are numbered from stamp on.
func NewSubject(a algorithm.Algorithm, now int64, stamp uint64) Subject {
	return Subject{algorithm: a, State: algorithm.Start(a, now), promised: math.MinInt64, lastStamp: stamp}
}

// wrote stamps a write.
func (s *Subject) wrote() {
	s.lastStamp++
	s.stamp = s.lastStamp
}

// AtRest reports whether the state is the whole subject: nobody waits, and no promised
// instant lies ahead.
func (s *Subject) AtRest(now int64) bool { return s.line == nil && s.promised <= now }

// Idle reports whether the subject answers like a fresh one from now on.
func (s *Subject) Idle(now int64) bool {
	return s.AtRest(now) && algorithm.Idle(s.algorithm, s.State, now)
}

// advance lets go the waiting callers whose turn has come, and says whether
// others still wait.
func (s *Subject) advance(now int64) (waiting bool) {
	if s.line == nil {
		return false
	}
	s.line.advance(now)
	return s.line != nil && s.line.length > 0
}

func (s *Subject) part(n int64) algorithm.Part {
	return algorithm.Part{Algorithm: s.algorithm, State: s.State, Cost: n}
}

// Allow is Take for a bool: it admits only what need not be delayed.
func (s *Subject) Allow(now, n int64) bool {
	if n < 0 || s.advance(now) && n > 0 {
		return false
	}
	part := s.part(n)
	allowed := algorithm.Allow(&part, now)
	s.State = part.State
	if allowed && n > 0 {
		s.wrote()
	}
	return allowed
}

// Take takes cost n if it is admitted now. A negative n never is.
func (s *Subject) Take(now, n int64) (answer algorithm.Answer) {
	if n < 0 {
		return Never
	}
	if s.advance(now) {
		return s.line.refusal(now, n)
	}
	parts := [1]algorithm.Part{s.part(n)}
	answer = algorithm.Take(parts[:], now)
	if answer.Changed {
		s.State = parts[0].State
		s.promise(now, answer.Delay)
		s.wrote()
	}
	return answer
}

// TakeUpTo takes as many units as are admitted now, n at most, and says how many.
// None is a refusal, which is that of one unit.
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

// Record counts n whether it fits or not, and plans the waiting callers anew.
func (s *Subject) Record(now, n int64) algorithm.Answer { return s.RecordFor(now, n, 0) }

// RecordFor is Record of units that identity holds.
func (s *Subject) RecordFor(now, n int64, identity uint64) algorithm.Answer {
	waiting := s.advance(now)
	parts := [1]algorithm.Part{s.part(n)}
	parts[0].Lease = identity
	answer := algorithm.Record(parts[:], now)
	s.State = parts[0].State
	s.wrote()
	if waiting {
		s.line.replan(now)
		answer.Remaining = 0
	}
	return answer
}

// spend takes the n units of a turn as of an instant.
func (s *Subject) spend(from, n int64, lease *Lease) {
	s.State = algorithm.TakeFor(s.algorithm, s.State, from, n, lease.identity())
	s.wrote()
	if lease != nil {
		lease.Acquired = algorithm.Leases(s.algorithm)
	}
}

// promise notes that a caller may go at now + hold.
func (s *Subject) promise(now, hold int64) {
	if hold > 0 {
		s.promised = max(s.promised, algorithm.AddSaturating(now, hold))
	}
}

// Reset makes the subject as if never seen.
func (s *Subject) Reset(now int64) {
	s.advance(now)
	s.State = algorithm.Start(s.algorithm, now)
	s.promised = math.MinInt64
	s.wrote()
	s.replan(now)
}

// SetAlgorithm goes on under another limit; carry says that it can carry the
// state over.
func (s *Subject) SetAlgorithm(now int64, a algorithm.Algorithm, carry bool) {
	s.advance(now)
	if carry {
		s.State = algorithm.Carry(s.algorithm, a, s.State, now)
	} else {
		s.State = algorithm.Start(a, now)
	}
	s.algorithm = a
	s.wrote()
	s.replan(now)
}

// replan plans the waiting callers anew.
func (s *Subject) replan(now int64) {
	if s.line != nil {
		s.line.replan(now)
	}
}

// HasLine reports whether callers wait for the subject, or did until just now.
func (s *Subject) HasLine() bool { return s.line != nil }

// Waiting returns the number of waiting callers. Bookings are not among them.
func (s *Subject) Waiting(now int64) int {
	if !s.advance(now) {
		return 0
	}
	return s.line.length - s.line.bookings
}

// Close sends the waiting callers away with ErrClosed.
func (s *Subject) Close(now int64) {
	if s.line != nil {
		s.line.close(now)
	}
}

// Never is the answer to what no limit admits, such as a negative cost. No real
// answer has a Limit of 0.
var Never = algorithm.Answer{RetryAfter: algorithm.Never}
