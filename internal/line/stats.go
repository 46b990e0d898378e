package line

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// Stats describe the waiting callers of an owner, and what became of the others.
type Stats struct {
	Waiting                                  int
	Oldest                                   time.Duration
	Granted, Late, Left, Full, Never, Closed uint64
}

// counts count the callers whose wait has ended, by its end. A turn without a wait is not counted and costs nothing.
type counts struct{ granted, late, left, full, never, closed atomic.Uint64 }

// count counts the end of a wait, or a refusal at once, and returns its error.
func (q *Lines) count(err error) error {
	switch err.(type) {
	case nil:
		q.counts.granted.Add(1)
		return nil
	case *TooLongError:
		q.counts.late.Add(1)
		return err
	case *TooLargeError:
		q.counts.never.Add(1)
		return err
	}
	switch {
	case err == context.Canceled || errors.Is(err, context.Canceled): // the first is quicker
		q.counts.left.Add(1)
	case err == ErrFull:
		q.counts.full.Add(1)
	case err == ErrClosed:
		q.counts.closed.Add(1)
	case errors.Is(err, context.DeadlineExceeded):
		q.counts.late.Add(1)
	}
	return err
}

// Late counts a turn that was refused without the line, because it would come too late.
func (q *Lines) Late() { q.counts.late.Add(1) }

// Refuse counts a turn that was refused because the owner is closed, and returns the error.
func (q *Lines) Refuse() error { return q.count(ErrClosed) }

// AddTo adds the counts of the lines to s.
func (q *Lines) AddTo(s *Stats) {
	s.Granted += q.counts.granted.Load()
	s.Late += q.counts.late.Load()
	s.Left += q.counts.left.Load()
	s.Full += q.counts.full.Load()
	s.Never += q.counts.never.Load()
	s.Closed += q.counts.closed.Load()
}

// AddTo adds the waiting callers of the subject to s, without bookings.
func (s *Subject) AddTo(to *Stats, now int64) {
	if !s.advance(now) {
		return
	}
	to.Waiting += s.line.length - s.line.bookings
	for w := range s.line.queue.Firsts {
		for w != nil && w.isBooking() {
			w = w.Next()
		}
		if w != nil {
			to.Oldest = max(to.Oldest, time.Duration(now-w.arrived))
		}
	}
}
