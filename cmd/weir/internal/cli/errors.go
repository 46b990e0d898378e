// Package cli holds what the commands of the program share: errors with hints, texts of limits, flags, streams, signals,
// progress, plots and logs. It knows no command.
package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// hintedError is an error with its hints.
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

// Unwritable explains why a command could not write its output, or returns nil for a nil error.
func Unwritable(command string, err error) error {
	if err == nil {
		return nil
	}
	return Fail(fmt.Errorf("%s: standard output: %w", command, err), "is the disk full, or the reader of the pipe gone?")
}

// Exit ends the program with a code and without a message.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// Report writes the error as "weir: …" and each hint as "hint: …", and returns the exit code. An error without a hint
// gets the general one. An Exit is only a code.
func Report(w io.Writer, err error) (code int) {
	if quiet, ok := errors.AsType[Exit](err); ok {
		return int(quiet)
	}
	hinted, ok := errors.AsType[*hintedError](err)
	if !ok {
		hinted = &hintedError{code: 1}
	}
	if len(hinted.hints) == 0 {
		hinted.hints = []string{"run 'weir --help', or 'weir COMMAND --help' for the flags and examples of one command"}
	}
	fmt.Fprintf(w, "weir: %s\nhint: %s\n", Plain(err), strings.Join(hinted.hints, "\nhint: "))
	return hinted.code
}

// Plain returns the message with the library's prefix removed from every line.
func Plain(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		lines[i] = withNearestZone(strings.TrimPrefix(line, "weir: "))
	}
	return strings.Join(lines, "\n")
}
