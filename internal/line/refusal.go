package line

import "fmt"

// Refusal is the error of a turn or a booking that is refused. Any other error of this package is the unchanged one of the
// caller's context.
type Refusal struct {
	End

	Need     int64 // Late: the length of the wait; algorithm.Never if unknown
	Bound    int64 // Late: the longest wait of the caller
	Deadline bool  // the bound is the deadline of a context

	Cost, Capacity int64 // TooLarge

	Field, Reason string // of an invalid turn or booking, which has not waited
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
