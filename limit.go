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

	// algorithm makes the four functions. The limit is valid.
	algorithm() algorithm.Algorithm

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
	return l.algorithm(), nil
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
