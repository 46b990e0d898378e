package line

import (
	"errors"
	"fmt"
)

// The reasons to refuse a turn or a booking. Any other error of this package is the unchanged error of the caller's
// context; the owner wraps it in an EndedError.
var (
	// ErrFull means that the line, or the limit's own queue, has no room.
	ErrFull = errors.New("line: full")
	// ErrClosed means that the owner was closed during the wait.
	ErrClosed = errors.New("line: closed")
)

// TooLargeError reports a cost above the capacity.
type TooLargeError struct{ Cost, Capacity int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("line: cost %d above capacity %d", e.Cost, e.Capacity)
}

// TooLongError reports a turn that would come later than the caller can wait.
type TooLongError struct {
	Need     int64 // the length of the wait; algorithm.Never if unknown
	Bound    int64 // the longest wait of the caller
	Deadline bool  // the bound is the deadline of a context
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("line: wait of %d ns above the bound of %d ns", e.Need, e.Bound)
}

// InvalidError reports an invalid field of a turn or a booking.
type InvalidError struct{ Field, Reason string }

func (e *InvalidError) Error() string { return fmt.Sprintf("line: %s %s", e.Field, e.Reason) }

// negative refuses a cost below 0.
func negative(n int64) error {
	return &InvalidError{Field: "cost", Reason: fmt.Sprintf("%d is negative", n)}
}

// EndedError is the error of a context that ended an operation. It takes less to make than a fmt.Errorf.
type EndedError struct {
	Op  string
	Err error
}

func (e *EndedError) Error() string { return "weir: " + e.Op + ": " + e.Err.Error() }

func (e *EndedError) Unwrap() error { return e.Err }
