package weir

import (
	"encoding"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/duration"
)

// Limit is one of this package's limits: TokenBucket, LeakyBucket, FixedWindow, FirstWindow, SlidingWindow, SlidingLog,
// RateGate, Cycle, Quota, Concurrency, Unlimited or DenyAll, beside others a Ban, and in process Bursty, WarmUp or NginxLimitReq. It is a
// plain value. String and MarshalText print it in the form that ParseLimit reads.
//
// The set is closed. Code that acts on any limit asks [Describe], not the type.
type Limit interface {
	fmt.Stringer
	encoding.TextMarshaler

	// validate returns every field that is out of bounds, as joined *LimitError values.
	validate() error

	// algorithm compiles a valid limit, with all times in ticks.
	algorithm(t *ticks) algorithm.Algorithm

	// kind returns the entry of the limit in the registry.
	kind() *kind

	// describe returns what the algorithm of the limit does not say: see Describe.
	describe() Description

	// share returns the part of the limit that one of several processes holds: see Share.
	share(s shares) Limit

	// window returns a text that distinguishes limits of one kind whose states have different meanings: the period of
	// a window. It is empty if all states of the kind mean the same.
	window() string
}

func compile(l Limit) (algorithm.Algorithm, error) {
	if l == nil {
		return nil, &LimitError{Limit: "limit", Field: "value", Code: CodeMissing, Reason: "is nil"}
	}
	if err := l.validate(); err != nil {
		return nil, err
	}
	return l.algorithm(nanoseconds), nil
}

// compileAlone compiles the only limit of a subject.
func compileAlone(l Limit) (algorithm.Algorithm, error) {
	compiled, err := compile(l)
	if err == nil {
		err = refuseAlone(l)
	}
	if err != nil {
		return nil, err
	}
	return compiled, nil
}

// ticks converts the durations of a limit to an engine's units of time.
type ticks struct {
	tick  time.Duration
	limit Limit
	err   error // the durations that are not whole ticks
}

// nanoseconds is used for all decisions in this process. It never fails.
var nanoseconds = &ticks{tick: 1}

func (t *ticks) count(field string, d time.Duration) int64 {
	if d%t.tick != 0 {
		t.err = errors.Join(t.err, &LimitError{Limit: t.limit.String(), Field: field, Code: CodeEngine,
			Reason: fmt.Sprintf("%s is not a whole number of the engine's ticks of %s", duration.Spoken(d), duration.Spoken(t.tick))})
	}
	return int64(d / t.tick)
}

// checkCount returns the error of an int64 field that is out of bounds, or nil.
func checkCount(limit, field string, value, least, most int64) error {
	if value >= least && value <= most {
		return nil
	}
	return &LimitError{Limit: limit, Field: field, Code: CodeBounds, Reason: fmt.Sprintf("%d is not within %d and %d", value, least, most)}
}

// checkDuration returns the error of a duration that is out of bounds, or nil.
func checkDuration(limit, field string, value, least, most time.Duration) error {
	if value >= least && value <= most {
		return nil
	}
	return &LimitError{Limit: limit, Field: field, Code: CodeBounds, Reason: fmt.Sprintf("%s is not within %s and %s", duration.Spoken(value), duration.Spoken(least), duration.Spoken(most))}
}

func joinErrors(problems []error, more ...error) error {
	return errors.Join(append(problems, more...)...)
}

// kind is the registry entry of a limit. A test names a field that an entry omits.
type kind struct {
	name string                          // one or two words: the beginning of its text and of the identity of its state
	read func(s *scanner) (Limit, error) // reads the text after the name
	// revive returns a limit with the window and capacity from a snapshot. It stands for all limits with that window:
	// their idle states are its idle states. It is nil if rules, and so snapshots, cannot hold the limit.
	revive func(window string, capacity int64) Limit

	// instead returns the limit to use in a rule. It is nil unless the limit is a dialect, which rules refuse.
	instead func(Limit) Limit
}

// inRules reports whether rules can hold limits of the kind.
func (k *kind) inRules() bool { return k.revive != nil }

const whyOneSubject = "cannot hold it: an idle key differs from a new one, so keys could never be evicted"

// refusalOf returns why rules do not hold a compiled limit, or nil.
func refusalOf(l Limit, compiled algorithm.Algorithm) *LimitError {
	if instead := l.kind().instead; instead != nil {
		reason := fmt.Sprintf("cannot hold this dialect; the nearest limit is %s", instead(l))
		return &LimitError{Limit: l.String(), Field: "rule", Code: CodeDialect, Reason: reason}
	}
	if algorithm.Restless(compiled) {
		return &LimitError{Limit: l.String(), Field: "rule", Code: CodeOneSubject, Reason: whyOneSubject}
	}
	return nil
}

// identity returns the name of the limit's state among the limits of its rule: the kind and the window. Rate and
// burst are not part of it, so that they can change without losing the state.
func identity(l Limit) string {
	if window := l.window(); window != "" {
		return l.kind().name + "/" + window
	}
	return l.kind().name
}

// countText returns an optional part of a limit's text: nothing for a count of 0.
func countText(word string, n int64) string {
	if n == 0 {
		return ""
	}
	return word + strconv.FormatInt(n, 10)
}

// durationText is countText for a duration.
func durationText(word string, d time.Duration) string {
	if d == 0 {
		return ""
	}
	return word + duration.Text(d)
}
