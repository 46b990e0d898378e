package weir

import (
	"errors"
	"fmt"
)

// MayHaveCounted says that a call of an engine that failed with err may have
// been counted all the same, as when its reply was lost. Only a call that was
// certainly not counted can be made again without counting twice.
//
// A *RequestError or a *LimitError was certainly not counted. Any other error
// says so itself, by a method MayHaveCounted() bool; without one nobody knows.
func MayHaveCounted(err error) bool {
	if err == nil || errors.Is(err, ErrRequest) || errors.Is(err, ErrLimit) {
		return false
	}
	var said interface{ MayHaveCounted() bool }
	return !errors.As(err, &said) || said.MayHaveCounted()
}

// undecided is the error of a call that counted nothing.
type undecided struct{ error }

func (e undecided) Unwrap() error { return errors.Unwrap(e.error) }

func (undecided) MayHaveCounted() bool { return false }

// cannotDecide wraps the reason why an engine could not decide. The call counted
// nothing.
func cannotDecide(op string, err error) error {
	return undecided{fmt.Errorf("weir: %s: could not decide: %w", op, err)}
}
