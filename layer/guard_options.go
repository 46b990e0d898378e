package layer

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// GuardOptions configure a Guard. The zero value denies while the engine is away.
type GuardOptions struct {
	// OnFailure is the policy of rules that Rules does not name. Default: Deny.
	OnFailure Policy
	// Rules are the policies of rules, by name.
	Rules map[string]Policy
	// Peers is the number of processes that share the limits, this one included: under Local each admits its part of a
	// count or burst, and at least 1. Local needs it: give 1 if no other process shares the engine.
	Peers int
	// PeersNow returns the current number of processes, in place of Peers. It must be fast. While it returns less
	// than 1 or panics, the last number holds.
	PeersNow func() int

	// Deadline bounds each decision of the engine. The deadline of the caller, if it is later, is left to the policy. A
	// call of OpEach gets it for every 128 calls. Default: 15 ms.
	Deadline time.Duration
	// MaxKeys bounds the keys that are decided here, and whose units are recorded at the engine when it is back. Default:
	// 100,000.
	MaxKeys int

	// OnChange is called when the engine has gone or come back, in order, on a goroutine of its own.
	OnChange func(GuardChange)
	// Logger receives a line for each change, and one if Deadline is too short for the way to the engine. Default:
	// slog.Default(). A logger with slog.DiscardHandler is silent.
	Logger *slog.Logger
}

// The defaults of GuardOptions.
const (
	defaultDeadline  = 15 * time.Millisecond
	defaultLocalKeys = 100_000
)

// policies names the policy of a log line. Rules may have others.
func (o *GuardOptions) policies() string {
	for _, p := range o.Rules {
		if p != o.OnFailure {
			return o.OnFailure.String() + ", unless the rule has its own"
		}
	}
	return o.OnFailure.String()
}

// GuardChange says that the engine has gone or come back.
type GuardChange struct {
	Away  bool
	At    time.Time
	Cause error // the failure that ended it; nil when it came back
}

// OutageError is the error of a call that the policy Deny answers, or that no policy can answer. Nothing was admitted.
//
// It is unavailable for [weir.Unavailable]. Units that the engine takes for it after the deadline are given back, so that a caller
// may ask again. Units stay spent only if the answer was lost.
type OutageError struct {
	Op      weir.Op
	Counted weir.Counted // CountedNo if the engine was not asked
	Cause   error        // the last failure of the engine
}

func (e *OutageError) Error() string {
	text := "layer: " + e.Op.String() + ": the engine is away"
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	return text
}

func (e *OutageError) Unwrap() error { return e.Cause }

// Unavailable returns true, for weir.Unavailable.
func (e *OutageError) Unavailable() bool { return true }

// WasCounted returns Counted, for weir.WasCounted.
func (e *OutageError) WasCounted() weir.Counted { return e.Counted }

func (o *GuardOptions) check() error {
	var problems []error
	bad := func(field, format string, values ...any) {
		problems = append(problems, optionError(guards, field, format, values...))
	}
	if o.OnFailure > Allow {
		bad("onFailure", "%d is no policy", o.OnFailure)
	}
	for name, p := range o.Rules {
		if p > Allow {
			bad("rules", "have the policy %d for %q, which is none", p, name)
		}
	}
	if o.Peers < 0 || o.Peers > 0 && o.PeersNow != nil {
		bad("peers", "%d is negative, or given beside a function", o.Peers)
	}
	if o.Peers == 0 && o.PeersNow == nil && o.usesLocal() {
		bad("peers", "are missing: under Local each process admits its part of a limit, so say how many share the engine, 1 if this is the only one")
	}
	if o.Deadline < 0 {
		bad("deadline", "%v is negative", o.Deadline)
	}
	if o.MaxKeys < 0 {
		bad("maxKeys", "%d is negative", o.MaxKeys)
	}
	return errors.Join(problems...)
}

// usesLocal reports whether a policy is Local.
func (o *GuardOptions) usesLocal() bool {
	return o.OnFailure == Local || slices.Contains(slices.Collect(maps.Values(o.Rules)), Local)
}
