package vectors

import (
	"errors"
	"fmt"
	"math"

	"github.com/weirflow/weir"
)

// Subject answers the operations of one scenario, starting with every key fresh. Pure functions, a Limiter for each
// key, and an engine each have a Subject, and Play compares the answers of all of them.
type Subject interface {
	Answer(now int64, op Op) Answer
}

// Changer is a Subject that can play scenarios that change their limit. ChangeTo gives later requests other limits.
type Changer interface {
	Subject
	ChangeTo(params Params) error
}

// Answer is the answer of a subject. Durations are in nanoseconds, and never is math.MaxInt64. If Error is not empty,
// the other fields mean nothing.
type Answer struct {
	Error      string // invalid_cost, unsupported_verb, or another failure
	Allowed    bool
	Limit      int64
	Remaining  int64
	RetryAfter int64
	ResetAfter int64
	Delay      int64
}

// The errors that vectors name.
const (
	InvalidCost     = "invalid_cost"
	UnsupportedVerb = "unsupported_verb"
)

// Play runs the scenario on a subject. Its error joins every field of every answer that differs from the expected
// one.
func Play(s Scenario, subject Subject) error {
	var wrong []error
	for i, op := range s.Ops {
		if op.Verb == ChangeLimit {
			if err := changeTo(subject, *op.Params); err != nil {
				return errors.Join(append(wrong, fmt.Errorf("%s op %d: limit: %w", s.ID, i, err))...)
			}
			continue
		}
		got := subject.Answer(s.T0+op.T, op)
		for _, field := range mismatches(s, op, got) {
			wrong = append(wrong, fmt.Errorf("%s op %d: %s(%d) of %q at t0%+d: %s", s.ID, i, op.verb(), op.Cost, op.Key, op.T, field))
		}
	}
	return errors.Join(wrong...)
}

func changeTo(subject Subject, params Params) error {
	changer, ok := subject.(Changer)
	if !ok {
		return fmt.Errorf("%T is no vectors.Changer", subject)
	}
	return changer.ChangeTo(params)
}

func (op Op) verb() string {
	if op.Verb == Reserve {
		return fmt.Sprintf("reserve[max_wait %d]", op.MaxWait)
	}
	return op.Verb
}

// mismatches describes each field of an answer that differs from the expected one.
func mismatches(s Scenario, op Op, got Answer) (fields []string) {
	want := op.Want
	if got.Error != want.Error {
		return []string{fmt.Sprintf("error: got %q, want %q", got.Error, want.Error)}
	}
	if want.Error != "" {
		return nil
	}
	if got.Allowed != *want.Allowed {
		fields = append(fields, fmt.Sprintf("allowed: got %t, want %t", got.Allowed, *want.Allowed))
	}
	number := func(name string, got int64, want *int64) {
		if want != nil && got != *want {
			fields = append(fields, fmt.Sprintf("%s: got %d, want %d", name, got, *want))
		}
	}
	limit := want.Limit
	if limit == nil {
		limit = s.Limit
	}
	delay := want.Delay
	if delay == nil {
		delay = new(int64)
	}
	number("limit", got.Limit, limit)
	number("remaining", got.Remaining, want.Remaining)
	number("retry_after", got.RetryAfter, never(want.RetryAfter))
	number("reset_after", got.ResetAfter, never(want.ResetAfter))
	number("delay", got.Delay, delay)
	return fields
}

// never returns the longest duration for -1.
func never(d *int64) *int64 {
	if d != nil && *d == -1 {
		longest := int64(math.MaxInt64)
		return &longest
	}
	return d
}

// ReserveWith builds the reserve operation of a limit from two others: it peeks for the wait, and records the cost
// now if the wait is at most op.MaxWait. The caller then holds for the delay.
func ReserveWith(op Op, peek, record func() Answer) Answer {
	asked := peek()
	if asked.Error != "" {
		return asked
	}
	bound := op.MaxWait
	if bound == -1 {
		bound = math.MaxInt64
	}
	switch {
	case asked.RetryAfter == math.MaxInt64: // never, or too long for the type
		return asked
	case asked.RetryAfter > bound:
		asked.RetryAfter -= bound
		return asked
	}
	taken := record()
	taken.Allowed, taken.RetryAfter, taken.Delay = true, 0, asked.RetryAfter
	return taken
}

// DecisionAnswer converts a decision to an Answer.
func DecisionAnswer(d weir.Decision) Answer {
	return Answer{
		Allowed:    d.Allowed,
		Limit:      d.Limit,
		Remaining:  d.Remaining,
		RetryAfter: int64(d.RetryAfter),
		ResetAfter: int64(d.ResetAfter),
		Delay:      int64(d.Delay),
	}
}
