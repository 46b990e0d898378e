package weir

import (
	"encoding"
	"errors"
	"fmt"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
)

// Limit is one of this package's limits: TokenBucket, LeakyBucket,
// FixedWindow, SlidingWindow, SlidingLog, RateGate, Cycle, Concurrency, and for
// one subject in process Bursty and WarmUp. It is a plain value; String and
// MarshalText print it as ParseLimit reads it.
//
// The set is closed: an engine in another package switches on the type.
type Limit interface {
	fmt.Stringer
	encoding.TextMarshaler

	// Validate reports every field that is out of bounds, as *LimitError
	// values joined.
	Validate() error

	// algorithm makes the four functions, with all times in ticks. The limit
	// is valid.
	algorithm(t *ticks) algorithm.Algorithm

	// kind is the entry of the limit in the registry.
	kind() *kind

	// window tells limits of one kind apart whose states mean different things:
	// the period of a window. It is empty where all states mean the same.
	window() string
}

func compile(l Limit) (algorithm.Algorithm, error) {
	if l == nil {
		return nil, &LimitError{Limit: "limit", Field: "value", Code: CodeMissing, Reason: "is nil"}
	}
	if err := l.Validate(); err != nil {
		return nil, err
	}
	return l.algorithm(nanoseconds), nil
}

// ticks turn the durations of a limit into an engine's units of time.
type ticks struct {
	tick  time.Duration
	limit Limit
	err   error // of durations that are not whole ticks
}

// nanoseconds are the ticks of all that decide in this process. They never fail.
var nanoseconds = &ticks{tick: 1}

func (t *ticks) of(field string, d time.Duration) int64 {
	if d%t.tick != 0 {
		t.err = errors.Join(t.err, &LimitError{Limit: t.limit.String(), Field: field, Code: CodeEngine,
			Reason: fmt.Sprintf("%s is not a whole number of the engine's ticks of %s", spokenDuration(d), spokenDuration(t.tick))})
	}
	return int64(d / t.tick)
}

// algorithmIn makes the four functions of a limit that rules hold, with all times
// in ticks.
func algorithmIn(l Limit, tick time.Duration) (algorithm.Algorithm, error) {
	if _, err := compile(l); err != nil {
		return nil, err
	}
	if refusal := l.kind().refusal(l); refusal != nil {
		return nil, refusal
	}
	t := ticks{tick: max(tick, 1), limit: l}
	made := l.algorithm(&t)
	return made, t.err
}

// bounded is a check of one int64 field.
func bounded(limit, field string, value, least, most int64) error {
	if value >= least && value <= most {
		return nil
	}
	return &LimitError{Limit: limit, Field: field, Code: CodeBounds, Reason: fmt.Sprintf("%d is not within %d and %d", value, least, most)}
}

// within is a check of one duration.
func within(limit, field string, value, least, most time.Duration) error {
	if value >= least && value <= most {
		return nil
	}
	return &LimitError{Limit: limit, Field: field, Code: CodeBounds, Reason: fmt.Sprintf("%s is not within %s and %s", spokenDuration(value), spokenDuration(least), spokenDuration(most))}
}

func joined(problems []error, more ...error) error { return errors.Join(append(problems, more...)...) }

// kind is the entry of a limit. A test names the field that an entry leaves out.
type kind struct {
	name string                          // one or two words: its text begins with them, and the identity of its state
	read func(s *scanner) (Limit, error) // reads the text after the name
	// revive makes a limit of the window and capacity that a snapshot names. It
	// stands for all limits with that window: what it finds idle, they do. It is
	// nil if no snapshot can hold the limit.
	revive func(window string, capacity int64) Limit

	plans      trait // a waiting caller's units are spent at the instant planned for it, however late it wakes
	delays     trait // it admits with a delay
	leases     trait // its units are held under an identity until they are given back
	alone      trait // it cannot be decided together with other limits
	oneSubject trait // idleness changes its state, so that no key can be evicted

	// instead is the limit to use in a rule; nil unless rules refuse a limit
	// whose keys could be evicted.
	instead func(Limit) Limit
}

// trait is a property of a kind. The zero value says that the entry forgot it.
type trait uint8

const (
	unsaid trait = iota
	no
	yes
	depends // on the fields of the limit
)

// inRules says that rules can hold limits of the kind.
func (k *kind) inRules() bool { return k.oneSubject == no && k.instead == nil }

const whyOneSubject = "cannot hold it: its state changes while a key is idle, so keys could never be evicted"

// refusal says why rules do not hold the limit; nil if they do.
func (k *kind) refusal(l Limit) *LimitError {
	switch {
	case k.oneSubject == yes:
		return &LimitError{Limit: l.String(), Field: "rule", Code: CodeOneSubject, Reason: whyOneSubject}
	case k.instead != nil:
		reason := fmt.Sprintf("cannot hold this dialect; the nearest limit is %s", k.instead(l))
		return &LimitError{Limit: l.String(), Field: "rule", Code: CodeDialect, Reason: reason}
	}
	return nil
}

// identity names the state of the limit among those of its rule: the kind and
// the window. Rate and burst are not part of it, so that they can change and the
// state stays.
func identity(l Limit) string {
	if window := l.window(); window != "" {
		return l.kind().name + "/" + window
	}
	return l.kind().name
}
