package weir

import (
	"fmt"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/clock"
)

// Booking is a cost that was taken in this process for an instant told to the
// caller: Decision.Delay after the call. If Decision.Allowed is false nothing
// was taken. Settle and Cancel come to the same as for a Reservation, with one
// rule more: while an instant told to anyone lies ahead, only the newest booking
// can be undone, and exactly; from any other nothing comes back, because nobody
// may overtake an instant already told.
type Booking struct {
	Decision Decision

	owner    owner // nil if there is nothing to settle
	cost     int64
	taken    int64  // when it was taken
	identity uint64 // that slots are held by
	before   algorithm.State
	told     int64  // the newest told instant before
	was, is  uint64 // stamps before and after
	waiter   *waiter
	settled  bool
	timer    *time.Timer
}

// Reserve takes cost n for the earliest instant that is at most longest away;
// use Never for no bound. A Limiter of a window or a log can only be reserved
// with a longest of 0. While others wait in line, a booking comes after them,
// where the limit can tell when that is (a bucket, and a line of one class);
// else it is refused.
func (l *Limiter) Reserve(n int64, longest time.Duration) (*Booking, error) {
	return l.reserve(l.clock.Read(), n, longest)
}

// ReserveAt is Reserve at a given time.
func (l *Limiter) ReserveAt(t time.Time, n int64, longest time.Duration) (*Booking, error) {
	return l.reserve(clock.Given(t), n, longest)
}

func (l *Limiter) reserve(r clock.Reading, n int64, longest time.Duration) (*Booking, error) {
	b := &Booking{cost: n, settled: true}
	if l.unmade() {
		return b, l.refusal(opReserve)
	}
	b.owner = l
	s, now := l.enter(r)
	defer l.leave(now)
	return b, s.book(b, now, int64(max(longest, 0)))
}

// book decides b and takes it.
func (s *subject) book(b *Booking, now, longest int64) error {
	switch {
	case b.cost < 0:
		return &RequestError{Op: opReserve, Field: "cost", Reason: fmt.Sprintf("%d is negative", b.cost)}
	case longest > 0 && !algorithm.CanBook(s.algorithm):
		return &RequestError{Op: opReserve, Field: "limit", Reason: "cannot be booked ahead: a window, a log or slots cannot promise when units come free; use a longest of 0, or Wait"}
	case b.cost == 0 || b.cost > s.algorithm.Capacity():
		b.Decision = s.peek(now, b.cost)
		return nil
	case s.waiting(now):
		s.bookInLine(b, now, longest)
		return nil
	}
	hold := algorithm.Hold(s.algorithm, s.state, now, b.cost)
	wait := s.bookingWait(now, b.cost, hold, longest)
	if wait == 0 {
		s.bookNow(b, now, hold)
	}
	b.Decision = s.describe(now, wait, b.cost, hold)
	return nil
}

// bookingWait is how long until b could be booked: until its hold is short
// enough, until what is booked already leaves room for more, and until a limit
// with a queue has room.
func (s *subject) bookingWait(now, n, hold, longest int64) int64 {
	wait := max(hold-longest, algorithm.Backlog(s.algorithm, s.state, now, n), 0)
	if hold == int64(Never) {
		wait = max(wait, 1)
	}
	if algorithm.Delays(s.algorithm) {
		wait = max(wait, s.algorithm.Wait(s.state, now, n))
	}
	return wait
}

func (s *subject) bookNow(b *Booking, now, hold int64) {
	b.settled = false
	b.taken, b.before, b.told, b.was = now, s.state, s.told, s.stamp
	if algorithm.CanBook(s.algorithm) {
		s.state = algorithm.Book(s.algorithm, s.state, now, b.cost)
	} else {
		b.identity = newIdentity()
		s.state = algorithm.TakeFor(s.algorithm, s.state, now, b.cost, b.identity)
	}
	s.tell(now, hold)
	s.wrote()
	b.is = s.stamp
}

// tell remembers that someone was told to go at now + hold.
func (s *subject) tell(now, hold int64) {
	if hold > 0 {
		s.told = max(s.told, saturatingAdd(now, hold))
	}
}

// describe tells of a booking that was made if wait is 0.
func (s *subject) describe(now, wait, n, hold int64) Decision {
	d := s.peek(now, 0)
	d.Allowed, d.RetryAfter, d.Delay = wait == 0, time.Duration(wait), 0
	if d.Allowed {
		d.Delay = time.Duration(hold)
	}
	return d
}

// bookInLine gives b a place behind those who wait, if it can be told when that
// is: not where waiters of another class may still come in between.
func (s *subject) bookInLine(b *Booking, now, longest int64) {
	hold, room := s.ahead(now, Turn{Cost: b.cost})
	b.Decision = s.line.refusal(now, b.cost)
	if !algorithm.Planned(s.algorithm) || len(s.line.order.classes) > 1 ||
		!room || s.line.length >= s.line.queue.options.queue() {
		return
	}
	if hold > longest || hold == int64(Never) {
		b.Decision.RetryAfter = time.Duration(max(hold-longest, 1))
		return
	}
	b.settled, b.told = false, s.told
	b.waiter = &waiter{subject: s, n: b.cost, arrived: now, told: now + hold}
	s.tell(now, hold)
	s.wrote() // an older booking is no longer the newest
	s.line.join(b.waiter)
	b.Decision = s.line.refusal(now, 0)
	b.Decision.Allowed, b.Decision.Delay = true, time.Duration(hold)
}

// Cancel gives everything back that can come back: Settle(0). It does nothing
// on a booking that was refused or settled, and may be called on nil.
func (b *Booking) Cancel() { _ = b.Settle(0) }

// Settle says what the work really cost: the difference comes back or is
// recorded on top. The first call wins, later ones do nothing. After an error,
// as of a key whose limit has become invalid, it can be tried again.
func (b *Booking) Settle(actual int64) error {
	switch {
	case b == nil || b.owner == nil:
		return nil
	case actual < 0:
		return &RequestError{Op: opSettle, Field: "cost", Reason: fmt.Sprintf("%d is negative", actual)}
	}
	return b.owner.visit(func(s *subject, now int64) {
		if b.settled {
			return
		}
		b.settled = true
		if b.timer != nil {
			b.timer.Stop()
		}
		s.settle(b, now, actual)
	})
}

// CancelAfter gives the booking a lifetime: if it is not settled within d, it is
// cancelled. It does nothing on a booking that was refused or settled, and may be
// called on nil.
func (b *Booking) CancelAfter(d time.Duration) {
	if b == nil || b.owner == nil {
		return
	}
	_ = b.owner.visit(func(*subject, int64) {
		if b.settled {
			return
		}
		if b.timer != nil {
			b.timer.Stop()
		}
		b.timer = time.AfterFunc(d, func() { b.expire(clock.Retry) })
	})
}

// expire cancels a booking whose lifetime has ended. If the limit of its key is
// invalid, or the function that tells it panics, expire tries again for some
// hours.
func (b *Booking) expire(again time.Duration) {
	cancelled := false
	defer func() {
		_ = recover()
		if !cancelled && again < time.Hour {
			time.AfterFunc(again, func() { b.expire(2 * again) })
		}
	}()
	cancelled = b.Settle(0) == nil
}

func (s *subject) settle(b *Booking, now, actual int64) {
	s.waiting(now)
	switch back := b.cost - actual; {
	case back < 0:
		s.recordFor(now, -back, b.identity)
	case back == 0:
	case b.waiter != nil && b.waiter.queued:
		s.unbookInLine(b, now, actual)
	case s.told <= now:
		s.recordFor(now, -back, b.identity)
	case b.is == s.stamp && b.waiter == nil:
		s.undo(b, actual)
		if s.line != nil {
			s.line.replan(now)
		}
	}
}

// undo takes the newest booking back, all of it or all but actual. What stays
// goes at the instant that was told.
func (s *subject) undo(b *Booking, actual int64) {
	if actual > 0 {
		s.state = algorithm.Rebook(s.algorithm, b.before, s.state, b.taken, b.cost, actual)
		s.wrote()
		return
	}
	s.state = algorithm.Unbook(s.algorithm, b.before, s.state, b.cost)
	s.stamp, s.told = b.was, b.told
}

// unbookInLine takes b out of the line, or makes it cheaper, unless an instant
// was told to someone behind it.
func (s *subject) unbookInLine(b *Booking, now, actual int64) {
	after := false
	for w := range s.line.order.all {
		if after && w.done == nil {
			return
		}
		after = after || w == b.waiter
	}
	if actual > 0 {
		s.line.recost(b.waiter, actual)
		s.line.replan(now)
		return
	}
	s.told = b.told
	s.line.leave(b.waiter, now)
}
