package weir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weirflow/weir/internal/compiled"
	"github.com/weirflow/weir/internal/duration"
	"github.com/weirflow/weir/internal/line"
)

// The errors to test for with errors.Is.
var (
	// ErrLimit is wrapped by every LimitError: a limit or rule out of bounds, or one that an engine cannot hold.
	ErrLimit = errors.New("limit refused")

	// ErrNever is wrapped by every CostError: a wait for a cost that can never fit.
	ErrNever = errors.New("cost can never fit")

	// ErrWait is wrapped by every WaitError: a wait that would be too long.
	ErrWait = errors.New("wait too long")

	// ErrQueueFull is returned when no more callers may wait, by Options.Queue or by the queue of a LeakyBucket.
	ErrQueueFull = errors.New("weir: wait: the queue is full")

	// ErrClosed is returned to callers that are waiting when Close is called, and to later ones.
	ErrClosed = errors.New("weir: wait: the limiter is closed")

	// ErrNoRoom is returned by a Memory or a Keyed for a new key of a Concurrency
	// without a Lease when MaxKeys keys hold slots. Nothing was counted.
	ErrNoRoom = errors.New("no room for another key")

	// ErrRequest is wrapped by every RequestError: a request that no engine can decide.
	ErrRequest = errors.New("bad request")
)

// LimitError reports a field of a limit or rule that is out of bounds.
type LimitError struct {
	Limit  string // the refused limit or rule as text: `token bucket 0/s`, `rule "login"`, `rule "login": token bucket 0/s`
	Field  string // such as rate, period, burst, queue, gap, slots, name, limits
	Code   Code   // the kind of fault, for programs
	Reason string // the value and its bound, for people
}

// Code is the kind of fault of a limit. It is never 0 in a LimitError of this package or its engines.
type Code uint8

const (
	CodeBounds     Code = iota + 1 // a value is outside the bounds of all limits
	CodeMissing                    // the limit, or the function that returns it, is missing
	CodeName                       // the name of the rule is invalid
	CodeLimitCount                 // the rule has no limit, or too many
	CodeAlone                      // the limit cannot be combined with others
	CodeOneSubject                 // an idle key differs from a new one, so engines could never evict it
	CodeDialect                    // the dialect has other terms; the Reason names them
	CodeEngine                     // the engine cannot hold the limit exactly
	CodeHeld                       // the limit holds slots during the work, and Rule.ChargeAfter is for costs that are known after it
	CodeBan                        // a Ban has no other limit beside it, or another Ban, or its rule charges after the work
)

var codeNames = map[Code]string{
	CodeBounds: "out of bounds", CodeMissing: "missing", CodeName: "name", CodeLimitCount: "number of limits", CodeAlone: "stands alone",
	CodeOneSubject: "one subject", CodeDialect: "dialect", CodeEngine: "engine", CodeHeld: "held", CodeBan: "ban",
}

// String returns the name of the code, or "" for an unknown code.
func (c Code) String() string { return codeNames[c] }

func (e *LimitError) Error() string {
	return fmt.Sprintf("weir: %s: %s %s", e.Limit, e.Field, e.Reason)
}
func (e *LimitError) Unwrap() error { return ErrLimit }

// OptionError reports an option with an invalid value.
type OptionError struct {
	Op     string // the operation: new, redislimit
	Field  string // such as queue, weights, jitter
	Reason string // the value and its bound
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("weir: %s: options: %s %s", e.Op, e.Field, e.Reason)
}

// SyntaxError reports the word of a text that could not be read.
type SyntaxError struct {
	Text   string // the whole text
	Offset int    // where the word starts, in bytes
	Word   string // the offending word; empty at the end of the text
	Want   string // the possible words
	Meant  string // the readable text that was probably meant; empty without a guess
}

func (e *SyntaxError) Error() string {
	want, meant := e.Want, ""
	if e.Meant != "" {
		want, _, _ = strings.Cut(want, " (") // the guess says more than the names of all limits
		meant = fmt.Sprintf("; did you mean %q?", e.Meant)
	}
	if e.Word == "" {
		return fmt.Sprintf("weir: %q ends where %s should follow%s", e.Text, want, meant)
	}
	return fmt.Sprintf("weir: %q: unexpected %q at byte %d, want %s%s", e.Text, e.Word, e.Offset+1, want, meant)
}

// CostError reports a cost above the capacity: no wait is long enough for it.
type CostError struct{ Cost, Capacity int64 }

func (e *CostError) Error() string {
	return fmt.Sprintf("weir: wait: a cost of %d can never fit a capacity of %d", e.Cost, e.Capacity)
}

func (e *CostError) Unwrap() error { return ErrNever }

// WaitError reports that the caller's turn would come later than it can wait. Nothing was taken. Usually the wait is
// refused at once. If the turn came later than planned, or if the release of slots was unknown, the caller waited for
// its bound. The error is also a context.DeadlineExceeded if a context set the bound.
type WaitError struct {
	Need     time.Duration // the length of the wait; Never if unknown
	Bound    time.Duration // the longest wait of the caller
	Deadline bool          // the bound was the deadline of a context
}

func (e *WaitError) Error() string {
	bound := duration.Spoken(duration.Rounded(e.Bound))
	if e.Need == Never {
		return "weir: wait: no turn within the bound of " + bound
	}
	return fmt.Sprintf("weir: wait: it would take %s, above the bound of %s", duration.Spoken(duration.Rounded(e.Need)), bound)
}

// Is matches ErrWait, and context.DeadlineExceeded if a context's deadline was the bound.
func (e *WaitError) Is(target error) bool {
	return target == ErrWait || e.Deadline && target == context.DeadlineExceeded
}

// RequestError reports a request that no engine can decide.
type RequestError struct {
	Op     string // take, each, reserve, reserve ahead, peek, record, reset, settle, wait, check
	Rule   string // empty if the request has no rule
	Field  string // such as rule, key, cost, class, requests, operation
	Reason string // the value and its bound
}

func (e *RequestError) Error() string {
	if e.Rule == "" {
		return fmt.Sprintf("weir: %s: %s %s", e.Op, e.Field, e.Reason)
	}
	return fmt.Sprintf("weir: %s: rule %q: %s %s", e.Op, e.Rule, e.Field, e.Reason)
}

func (e *RequestError) Unwrap() error { return ErrRequest }

// Is reports whether target is errors.ErrUnsupported, and the engine cannot make such calls.
func (e *RequestError) Is(target error) bool {
	return target == errors.ErrUnsupported && e.Field == fieldOperation
}

// refusal converts the error of a line to the error of op.
func refusal(op string, err error) error {
	r, ok := err.(*line.Refusal)
	switch {
	case !ok: // from the context
		return &endedError{op, err}
	case r.Field != "":
		return &RequestError{Op: op, Field: r.Field, Reason: r.Reason}
	case r.End == line.Late:
		return &WaitError{Need: time.Duration(r.Need), Bound: time.Duration(r.Bound), Deadline: r.Deadline}
	case r.End == line.TooLarge:
		return &CostError{Cost: r.Cost, Capacity: r.Capacity}
	case r.End == line.Full:
		return ErrQueueFull
	}
	return ErrClosed
}

// endedError is the error of a context that ended an operation. It takes less to make than a fmt.Errorf.
type endedError struct {
	op  string
	err error
}

func (e *endedError) Error() string { return "weir: " + e.op + ": " + e.err.Error() }

func (e *endedError) Unwrap() error { return e.err }

func cannotDecide(op string, err error) error { return compiled.CannotDecide(op, err) }

// Counted says whether a call that failed was counted. The zero value is CountedUnknown.
type Counted uint8

const (
	CountedUnknown Counted = iota // perhaps, or only in part
	CountedNo                     // certainly not: nothing was written
	CountedYes                    // certainly, in every part
)

var countedNames = map[Counted]string{CountedNo: "no", CountedYes: "yes"}

// String returns unknown, no or yes.
func (c Counted) String() string { return cmp.Or(countedNames[c], "unknown") }

// WasCounted reports whether a call of an engine that failed with err was counted. For example, a call whose reply
// was lost is CountedUnknown. Only a call that is CountedNo can be repeated without counting twice.
//
// A *RequestError or a *LimitError is CountedNo, and so is nil. Any other error answers with its method
// WasCounted() Counted. An error without that method is CountedUnknown.
func WasCounted(err error) Counted {
	if err == nil || errors.Is(err, ErrRequest) || errors.Is(err, ErrLimit) {
		return CountedNo
	}
	var said interface{ WasCounted() Counted }
	if errors.As(err, &said) {
		return said.WasCounted()
	}
	if undecided := (compiled.Undecided{}); errors.As(err, &undecided) {
		return CountedNo
	}
	return CountedUnknown
}

// Unavailable reports whether a call failed because the engine could not be reached, or could not decide for now, so that
// the same call may succeed later. An error says so with its method Unavailable() bool.
func Unavailable(err error) bool {
	var said interface{ Unavailable() bool }
	return errors.As(err, &said) && said.Unavailable()
}
