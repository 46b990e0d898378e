package line

import (
	"context"
	"errors"
	"time"
)

// End is how a wait ended.
type End int

const (
	Granted  End = iota
	Late         // the turn would come, or has not come, within the longest wait or by the deadline
	Left         // the context was cancelled
	Full         // the line, or the limit's own queue, has no room
	TooLarge     // the cost is above the capacity
	Closed       // the owner was closed
	ends
)

// Stats describe the waiting callers of an owner, and how the waits of others ended. A turn without a wait is not counted and
// costs nothing.
type Stats struct {
	Waiting int
	Oldest  time.Duration
	Ended   [ends]uint64
}

// Count counts the end of a wait, or a refusal at once, and returns its error.
func (q *Lines) Count(err error) error {
	end := Left
	switch r, ok := err.(*Refusal); {
	case err == nil:
		end = Granted
	case ok:
		end = r.End
	case errors.Is(err, context.DeadlineExceeded):
		end = Late
	}
	q.Ends(end)
	return err
}

// Ends counts a wait that ended.
func (q *Lines) Ends(end End) { q.counts[end].Add(1) }

// AddTo adds the counts of the lines to s.
func (q *Lines) AddTo(s *Stats) {
	for end := range q.counts {
		s.Ended[end] += q.counts[end].Load()
	}
}

// AddTo adds the waiting callers of the subject to s, without bookings.
func (s *Subject) AddTo(to *Stats, now int64) {
	if !s.advance(now) {
		return
	}
	to.Waiting += s.line.queue.Len()
	for w := range s.line.queue.Firsts {
		to.Oldest = max(to.Oldest, time.Duration(now-w.arrived))
	}
}
