package plain

import (
	"errors"
	"fmt"
	"strings"
)

// hintedError is an error with its hints, and the exit code of the program.
type hintedError struct {
	err   error
	hints []string
	code  int
}

func (e *hintedError) Error() string { return e.err.Error() }

func (e *hintedError) Unwrap() error { return e.err }

// Fail adds hints to err: at least one line that says what to do next. The program exits with code 1.
func Fail(err error, hints ...string) error { return &hintedError{err, hints, 1} }

// Misuse adds hints to an error of the command line: exit code 2.
func Misuse(err error, hints ...string) error { return &hintedError{err, hints, 2} }

// Misusef is Misuse with one hint and the text of the error.
func Misusef(hint, format string, values ...any) error {
	return Misuse(fmt.Errorf(format, values...), hint)
}

// Told returns what to tell people of an error: its message, its hints, and the exit code of the program.
func Told(err error) (message string, hints []string, code int) {
	hinted, ok := errors.AsType[*hintedError](err)
	if !ok {
		hinted = &hintedError{code: 1}
	}
	return Message(err), hinted.hints, hinted.code
}

// Message returns the message with the library's prefix removed from every line.
func Message(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		lines[i] = withNearestZone(strings.TrimPrefix(line, "weir: "))
	}
	return strings.Join(lines, "\n")
}
