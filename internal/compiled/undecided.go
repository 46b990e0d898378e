package compiled

import (
	"errors"
	"fmt"
)

// Undecided is the error of a call that counted nothing.
type Undecided struct{ Err error }

func (e Undecided) Error() string { return e.Err.Error() }

func (e Undecided) Unwrap() error { return errors.Unwrap(e.Err) }

// CannotDecide wraps the reason an engine could not decide. The call counted nothing.
func CannotDecide(op string, err error) error {
	return Undecided{fmt.Errorf("weir: %s: could not decide: %w", op, err)}
}
