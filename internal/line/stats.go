package line

import (
	"context"
	"errors"
	"fmt"
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

// Refusal is the error of a turn or a booking that is refused. Any other error of this package is the unchanged one of the
// caller's context.
type Refusal struct {
	End

	Need     int64 // Late: the length of the wait; algorithm.Never if unknown
	Bound    int64 // Late: the longest wait of the caller
	Deadline bool  // the bound is the deadline of a context

	Cost, Capacity int64 // TooLarge

	Field, Reason string // set for an invalid turn or booking, which has not waited
}

func (r *Refusal) Error() string { return fmt.Sprintf("line: refused: %+v", *r) }

// The refusals that say no more.
var (
	ErrFull   error = &Refusal{End: Full}
	ErrClosed error = &Refusal{End: Closed}
)

func invalid(field, format string, a ...any) error {
	return &Refusal{Field: field, Reason: fmt.Sprintf(format, a...)}
}
