// Package cli holds what the commands of the program share: errors, flags, streams, signals,
// progress, plots and logs. It knows no command.
package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/plain"
)

// Errors with hints, and their messages.
var (
	Fail, Misuse, Misusef = plain.Fail, plain.Misuse, plain.Misusef
	Plain                 = plain.Message
)

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
	message, hints, code := plain.Told(err)
	if len(hints) == 0 {
		hints = []string{"run 'weir --help', or 'weir COMMAND --help' for the flags and examples of one command"}
	}
	fmt.Fprintf(w, "weir: %s\nhint: %s\n", message, strings.Join(hints, "\nhint: "))
	return code
}
