package weir

import (
	"math"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
)

// subject is one thing that is limited: the state under one limit, and the line
// of those who wait. Its owner's lock is held in every method. Limiter owns
// one, Keyed one for each key.
//
// The flow of a verb: let whoever's turn has come go first, refuse if someone
// still waits (nobody overtakes), else decide on the state.
type subject struct {
	algorithm algorithm.Algorithm
	state     algorithm.State

	// told is the newest instant that a booking was told, or that a Take was
	// delayed to. While it lies ahead, only the newest booking can come back.
	told int64
	// stamp is the number of the last write, and stamps the last one given:
	// how a booking knows whether anything was written since.
	stamp, stamps uint64

	line *line // nil while nobody waits
}

func newSubject(a algorithm.Algorithm, now int64) subject {
	return subject{algorithm: a, state: algorithm.Start(a, now), told: math.MinInt64}
}

// wrote stamps a write.
func (s *subject) wrote() {
	s.stamps++
	s.stamp = s.stamps
}

// waiting lets go whose turn has come, and says whether someone still waits.
func (s *subject) waiting(now int64) bool {
	if s.line == nil {
		return false
	}
	s.line.advance(now)
	return s.line != nil && s.line.length > 0
}

func (s *subject) part(n int64) algorithm.Part {
	return algorithm.Part{Algorithm: s.algorithm, State: s.state, Cost: n}
}

func (s *subject) allow(now, n int64) bool {
	if n < 0 || s.waiting(now) && n > 0 {
		return false
	}
	part := s.part(n)
	allowed := algorithm.Allow(&part, now)
	s.state = part.State
	if allowed && n > 0 {
		s.wrote()
	}
	return allowed
}

func (s *subject) take(now, n int64) Decision {
	if n < 0 {
		return invalidCost
	}
	if s.waiting(now) {
		return s.line.refusal(now, n)
	}
	parts := [1]algorithm.Part{s.part(n)}
	answer := algorithm.Take(parts[:], now)
	if answer.Changed {
		s.state = parts[0].State
		s.tell(now, answer.Delay)
		s.wrote()
	}
	return decision(answer)
}

func (s *subject) peek(now, n int64) Decision {
	if n < 0 {
		return invalidCost
	}
	if s.waiting(now) {
		return s.line.refusal(now, n)
	}
	parts := [1]algorithm.Part{s.part(n)}
	return decision(algorithm.Peek(parts[:], now))
}

// record counts n, and those who wait are planned anew.
func (s *subject) record(now, n int64) Decision { return s.recordFor(now, n, 0) }

// recordFor is record of units that identity holds.
func (s *subject) recordFor(now, n int64, identity uint64) Decision {
	waiting := s.waiting(now)
	parts := [1]algorithm.Part{s.part(n)}
	parts[0].Lease = identity
	answer := algorithm.Record(parts[:], now)
	s.state = parts[0].State
	s.wrote()
	d := decision(answer)
	if waiting {
		s.line.replan(now)
		d.Remaining = 0
	}
	return d
}

// spend takes the n units of a turn as of an instant.
func (s *subject) spend(from, n int64, h *Slots) {
	s.state = algorithm.TakeFor(s.algorithm, s.state, from, n, h.who())
	s.wrote()
	if h != nil {
		h.taken = algorithm.Leases(s.algorithm)
	}
}

func (s *subject) reset(now int64) {
	s.waiting(now)
	s.state = algorithm.Start(s.algorithm, now)
	s.told = math.MinInt64
	s.wrote()
	if s.line != nil {
		s.line.replan(now)
	}
}

// setAlgorithm goes on under another limit; sameKind says that the state can be
// carried over.
func (s *subject) setAlgorithm(now int64, a algorithm.Algorithm, sameKind bool) {
	s.waiting(now)
	if sameKind {
		s.state = algorithm.Carry(s.algorithm, a, s.state, now)
	} else {
		s.state = algorithm.Start(a, now)
	}
	s.algorithm = a
	s.wrote()
	if s.line != nil {
		s.line.replan(now)
	}
}

// idle says that the subject answers like a fresh one from now on.
func (s *subject) idle(now int64) bool {
	return s.line == nil && s.told <= now && algorithm.Idle(s.algorithm, s.state, now)
}

// invalidCost is the answer to a negative cost. No real decision has a Limit of
// 0.
var invalidCost = Decision{RetryAfter: Never}

func decision(a algorithm.Answer) (d Decision) {
	d.describe(&a)
	return d
}

// describe writes what a says into d.
func (d *Decision) describe(a *algorithm.Answer) {
	d.Allowed, d.Limit, d.Remaining = a.Allowed, a.Limit, a.Remaining
	d.RetryAfter, d.ResetAfter = time.Duration(a.RetryAfter), time.Duration(a.ResetAfter)
	d.Delay = time.Duration(a.Delay)
}
