package line

import (
	"errors"
	"fmt"
)

// Why a turn or a booking is refused. Any other error of this package is that of
// the caller's context, as it is.
var (
	// ErrFull: no more callers may wait, or the limit's own queue has no room.
	ErrFull = errors.New("line: full")
	// ErrClosed: the owner was closed while the caller waited.
	ErrClosed = errors.New("line: closed")
)

// TooLargeError says that a cost can never fit the capacity.
type TooLargeError struct{ Cost, Capacity int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("line: cost %d above capacity %d", e.Cost, e.Capacity)
}

// TooLongError says that the turn would come later than the caller can wait.
type TooLongError struct {
	Need     int64 // how long it would have been; algorithm.Never if nobody knows
	Bound    int64 // how long the caller can wait
	Deadline bool  // the deadline of a context sets the bound
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("line: wait of %d ns above the bound of %d ns", e.Need, e.Bound)
}

// InvalidError says which field of a turn or a booking is wrong.
type InvalidError struct{ Field, Reason string }

func (e *InvalidError) Error() string { return fmt.Sprintf("line: %s %s", e.Field, e.Reason) }

// negative refuses a cost below 0.
func negative(n int64) error {
	return &InvalidError{Field: "cost", Reason: fmt.Sprintf("%d is negative", n)}
}
