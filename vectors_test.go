package weir_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/limittest"
)

func TestLimiterPassesVectors(t *testing.T) {
	oneLimit := func(s limittest.Scenario) string {
		switch {
		case len(s.Limits()) > 1:
			return "a Limiter holds one limit"
		case s.Changes():
			return "a Limiter is given another limit by SetLimit, which converts at once"
		}
		return ""
	}
	limittest.RunVectors(t, oneLimit, func(s limittest.Scenario) (limittest.Subject, error) {
		_, err := weir.New(s.Limits()[0])
		return limiters{t: t, limit: s.Limits()[0], byKey: map[string]twins{}}, err
	})
}

func TestKeyedPassesVectors(t *testing.T) {
	oneLimit := func(s limittest.Scenario) string {
		if len(s.Limits()) > 1 {
			return "a Keyed holds one limit for each key"
		}
		return ""
	}
	limittest.RunVectors(t, oneLimit, func(s limittest.Scenario) (limittest.Subject, error) {
		k := &keyedSubjects{limit: s.Limits()[0]}
		var err error
		k.keyed, err = weir.NewKeyedFunc(func(string) weir.Limit { return k.limit }, weir.Options{Clock: func() int64 { return k.now }})
		return k, errors.Join(err, k.limit.Validate())
	})
}

// keyedSubjects are the keys of a Keyed whose function returns the limit.
type keyedSubjects struct {
	keyed *weir.Keyed[string]
	limit weir.Limit
	now   int64
}

func (k *keyedSubjects) ChangeTo(params limittest.Params) error {
	k.limit = params.Weir()[0]
	return k.limit.Validate()
}

func (k *keyedSubjects) Answer(now int64, op limittest.Op) limittest.Answer {
	k.now = now
	switch op.Verb {
	case limittest.Peek:
		return limiterAnswer(k.keyed.Peek(op.Key, op.Cost))
	case limittest.Allow:
		return limiterAnswer(k.keyed.Take(op.Key, op.Cost))
	}
	booking, err := k.keyed.Reserve(op.Key, op.Cost, longest(op))
	return bookingAnswer(booking, err)
}

// limiters holds a Limiter for each key, and a twin with the same past. The twin answers AllowAt and the other
// TakeAt.
type limiters struct {
	t     *testing.T
	limit weir.Limit
	byKey map[string]twins
}

type twins struct{ takes, allows *weir.Limiter }

func (l limiters) Answer(now int64, op limittest.Op) limittest.Answer {
	subject, t := l.subject(op.Key), time.Unix(0, now)
	switch op.Verb {
	case limittest.Peek:
		return limiterAnswer(subject.takes.PeekAt(t, op.Cost))
	case limittest.Allow:
		return subject.allow(t, op.Cost)
	}
	return subject.reserve(t, op)
}

// reserve returns the answer of ReserveAt.
func (w twins) reserve(t time.Time, op limittest.Op) limittest.Answer {
	booking, err := w.takes.ReserveAt(t, op.Cost, longest(op))
	if err == nil && booking.Decision.Allowed {
		w.allows.ReserveAt(t, op.Cost, longest(op))
	}
	return bookingAnswer(booking, err)
}

func longest(op limittest.Op) time.Duration {
	if op.MaxWait == -1 {
		return weir.Never
	}
	return time.Duration(op.MaxWait)
}

func bookingAnswer(booking *weir.Reservation, err error) limittest.Answer {
	var bad *weir.RequestError
	switch {
	case errors.As(err, &bad) && bad.Field == "cost":
		return limittest.Answer{Error: limittest.InvalidCost}
	case errors.As(err, &bad) && bad.Field == "limit":
		return limittest.Answer{Error: limittest.UnsupportedVerb}
	case err != nil:
		return limittest.Answer{Error: err.Error()}
	}
	return limiterAnswer(booking.Decision)
}

// allow returns the answer of TakeAt. AllowAt returns the same as a bool, except that it refuses a cost with a delay.
func (w twins) allow(t time.Time, cost int64) limittest.Answer {
	took := w.takes.TakeAt(t, cost)
	allowed := w.allows.AllowAt(t, cost)
	if want := took.Allowed && took.Delay == 0; allowed != want {
		return limittest.Answer{Error: fmt.Sprintf("AllowAt is %t where TakeAt is %+v", allowed, took)}
	}
	if took.Allowed && !allowed {
		w.allows.RecordAt(t, cost)
	}
	return limiterAnswer(took)
}

func (l limiters) subject(key string) twins {
	if _, ok := l.byKey[key]; !ok {
		l.byKey[key] = twins{mustLimit(l.t, l.limit), mustLimit(l.t, l.limit)}
	}
	return l.byKey[key]
}

// mustLimit returns a Limiter of a valid limit.
func mustLimit(t testing.TB, limit weir.Limit) *weir.Limiter {
	t.Helper()
	limiter, err := weir.New(limit)
	if err != nil {
		t.Fatalf("New(%s): %v", limit, err)
	}
	return limiter
}

func limiterAnswer(d weir.Decision) limittest.Answer {
	if d.Limit == 0 {
		return limittest.Answer{Error: limittest.InvalidCost}
	}
	return limittest.DecisionAnswer(d)
}
