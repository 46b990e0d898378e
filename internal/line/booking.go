package line

import (
	"github.com/weirflow/weir/internal/algorithm"
)

// Booking is a cost taken for an instant promised to the caller. Until that instant, only the newest booking can be
// undone, and exactly, also after a change of the limit. Any other booking gives nothing back, because no caller may overtake
// a promised instant. After the instant, the units come back by algorithm.Undo.
type Booking struct {
	Cost     int64
	Identity uint64 // a random number, not 0; it also holds the slots
	Open     bool   // taken, and not settled
	inLine   bool   // it waits in line for its instant

	bookedAt       int64
	taken          int64 // when its units count
	under          algorithm.Algorithm
	before         algorithm.State
	carried        bool // before has been converted to another limit
	promisedBefore int64
	stampBefore    uint64

	arrival  uint64 // in line, or 0
	promised int64  // the instant
	between  int64  // the costs of the waiters that arrived before it and after the booking before
}

// Book decides on b for the earliest instant within longest, and takes it.
func (s *Subject) Book(b *Booking, now, longest int64) (algorithm.Answer, error) {
	switch {
	case b.Cost < 0:
		return algorithm.Answer{}, invalid("cost", "%d is negative", b.Cost)
	case longest > 0 && !algorithm.CanBook(s.algorithm):
		return algorithm.Answer{}, invalid("limit", "cannot be reserved ahead: a window, a log or slots cannot promise when units come free; use a longest of 0, or Wait")
	case b.Cost == 0 || b.Cost > s.algorithm.Capacity():
		return s.Peek(now, b.Cost), nil
	case s.advance(now):
		return s.bookInLine(b, now, longest), nil
	}
	until := algorithm.UntilDue(s.algorithm, s.State, now, b.Cost)
	wait := s.bookingWait(now, b.Cost, until, longest)
	if wait == 0 {
		s.bookNow(b, now, until)
	} else {
		s.refused(now, b.Cost)
	}
	return s.bookingAnswer(now, wait, until), nil
}

// bookingWait returns the time until b can be booked: until its own wait is short enough, the bookings leave room for it,
// and a limit with a queue has room.
func (s *Subject) bookingWait(now, n, until, longest int64) int64 {
	wait := max(until-longest, s.algorithm.Backlog(s.State, now, n), 0)
	if until == algorithm.Never {
		wait = max(wait, 1)
	}
	if algorithm.Delays(s.algorithm) {
		wait = max(wait, s.algorithm.Wait(s.State, now, n))
	}
	return wait
}

func (s *Subject) bookNow(b *Booking, now, until int64) {
	b.Open, b.under = true, s.algorithm
	b.bookedAt, b.before, b.promisedBefore, b.stampBefore = now, s.State, s.promised, s.stamp
	if algorithm.CanBook(s.algorithm) {
		s.State = algorithm.Book(s.algorithm, s.State, now, b.Cost)
	} else {
		algorithm.TakeFor(s.algorithm, &s.State, now, b.Cost, b.Identity)
	}
	b.taken = max(algorithm.TakenAt(s.algorithm, s.State, now), algorithm.AddSaturating(now, until))
	s.promise(now, until)
	s.stamp, s.newest = b.Identity, b
}

// bookingAnswer describes a booking. A wait of 0 means that it was made.
func (s *Subject) bookingAnswer(now, wait, until int64) algorithm.Answer {
	a := s.Peek(now, 0)
	a.Allowed, a.RetryAfter, a.Delay = wait == 0, wait, 0
	if a.Allowed {
		a.Delay = until
	}
	return a
}

// bookInLine gives b a place behind the waiting callers if its turn can be promised. It cannot if callers of another
// flow may still come first.
func (s *Subject) bookInLine(b *Booking, now, longest int64) algorithm.Answer {
	l := s.line
	until, room := s.turnIn(now, Turn{Cost: b.Cost})
	refusal := l.refusal(now, b.Cost)
	if !s.algorithm.Planned() || !l.single() || !room || l.full() {
		return refusal
	}
	if until > longest || algorithm.AddSaturating(now, until) == algorithm.Never {
		refusal.RetryAfter = max(until-longest, 1)
		return refusal
	}
	b.Open, b.promisedBefore, b.inLine, b.under = true, s.promised, true, s.algorithm
	b.arrival, b.promised = l.arrive(b.Cost, now), now+until
	b.taken = b.promised
	s.promise(now, until)
	s.wrote() // an older booking is no longer the newest
	b.between = l.queue.Units() - l.between
	l.between += b.between
	l.bookings = append(l.bookings, b)
	l.changed(len(l.bookings) - 1)
	if l.plan.extends(l) {
		l.plan.book(l, b)
	}
	a := l.refusal(now, 0)
	a.Allowed, a.Delay = true, until
	return a
}

// Settle reports the true cost of the booking. It gives back the part of the difference that still counts, or records
// the difference in addition. It releases all slots, whatever their true cost. Settle does nothing on a booking that is
// not open. It returns false if a log has no space for the record: then the booking stays open, and nothing is counted.
func (s *Subject) Settle(b *Booking, now, actual int64) (recorded bool) {
	if !b.Open {
		return true
	}
	b.Open = false
	s.advance(now)
	if algorithm.Leases(s.algorithm) {
		actual = 0
	}
	switch back := b.Cost - actual; {
	case back < 0:
		b.Open = s.RecordFor(now, -back, b.Identity).Unrecorded
	case back == 0:
	case b.inLine:
		s.unbookInLine(b, now, actual)
	case !algorithm.SameState(s.algorithm, b.under): // the state of the booking is gone
	case s.promised <= now || algorithm.Leases(s.algorithm): // slots are never promised, and released by identity
		s.give(b, now, back)
	case b.Identity == s.stamp:
		s.undo(b, actual)
		s.replan(now)
	}
	return !b.Open
}

// give gives back those of n units of a booking that still count.
func (s *Subject) give(b *Booking, now, n int64) {
	parts := [1]algorithm.Part{s.part(-n)}
	parts[0].Lease, parts[0].Taken = b.Identity, b.taken
	algorithm.Undo(parts[:], now)
	s.State = parts[0].State
	s.wrote()
	s.replan(now)
}

// carry converts the state before the newest booking like that of the subject, so that the booking can still be undone
// exactly. Earlier bookings can not. It reports whether there is such a booking.
func (s *Subject) carry(now int64, a algorithm.Algorithm) bool {
	b := s.newest
	if b == nil || !b.Open || b.Identity != s.stamp || b.taken <= now {
		return false
	}
	b.before, b.bookedAt, b.carried, b.stampBefore = a.Carry(s.algorithm, b.before, now), now, true, 0
	return true
}

// undo undoes the newest booking except for actual units, which keep their promised instant.
func (s *Subject) undo(b *Booking, actual int64) {
	if actual > 0 {
		s.State = algorithm.Rebook(s.algorithm, b.before, s.State, b.bookedAt, b.Cost, actual)
		if b.carried { // the limit alone would give fewer units an earlier instant
			s.State.Promised = max(s.State.Promised, s.promised)
		}
		s.wrote()
		return
	}
	s.State = algorithm.Unbook(s.algorithm, b.before, s.State, b.Cost)
	s.stamp, s.promised = b.stampBefore, b.promisedBefore
}

// unbookInLine takes b out of the line, or reduces its cost, unless a later booking has a promised instant.
func (s *Subject) unbookInLine(b *Booking, now, actual int64) {
	l := s.line
	last := len(l.bookings) - 1
	if l.bookings[last] != b {
		return
	}
	if b.Cost = actual; actual == 0 {
		s.promised, b.inLine, l.bookings = b.promisedBefore, false, l.bookings[:last]
		l.between -= b.between
	}
	l.changed(last)
	l.replan(now)
}

// unbookFirst takes the first booking out of the line. Waiters that arrived before it stay.
func (l *line) unbookFirst() *Booking {
	b := l.bookings[0]
	b.inLine, l.bookings[0], l.bookings = false, nil, l.bookings[1:]
	l.gone++
	if l.changed(-1); len(l.bookings) > 0 {
		l.bookings[0].between += b.between
		l.changed(0)
	} else {
		l.between = 0
	}
	return b
}
