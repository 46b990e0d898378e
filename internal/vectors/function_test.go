package vectors_test

import (
	"errors"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/calendar"
	"github.com/weirflow/weir/internal/vectors"
)

func TestPureFunctionsPassVectors(t *testing.T) {
	everything := func(vectors.Scenario) string { return "" }
	vectors.Run(t, everything, newFunctions)
}

// functions are the four functions of a scenario's limits, with a state for each key and limit.
type functions struct {
	algorithms []algorithm.Algorithm
	states     map[string][]algorithm.State
}

func newFunctions(s vectors.Scenario) (vectors.Subject, error) {
	f := &functions{states: map[string][]algorithm.State{}}
	return f, f.ChangeTo(s.Params)
}

func (f *functions) ChangeTo(params vectors.Params) error {
	f.algorithms = nil
	for _, limit := range params.Weir() {
		if b, ok := limit.(weir.Ban); ok {
			f.algorithms = append(f.algorithms, algorithm.NewBan(b.After, int64(b.Within), int64(b.For), int64(b.UpTo)))
			continue
		}
		compiled, err := compile(limit)
		if err != nil {
			return err
		}
		f.algorithms = append(f.algorithms, compiled)
	}
	return nil
}

// compile returns the algorithm of a limit, which must be within the bounds of package weir.
func compile(limit weir.Limit) (algorithm.Algorithm, error) {
	if _, err := weir.New(limit); err != nil {
		return nil, err
	}
	switch l := limit.(type) {
	case weir.TokenBucket:
		return algorithm.NewTokenBucket(l.Rate.Count, int64(l.Rate.Period), l.Burst), nil
	case weir.LeakyBucket:
		return algorithm.NewLeakyBucket(l.Rate.Count, int64(l.Rate.Period), l.Queue, l.NoDelay), nil
	case weir.FixedWindow:
		return algorithm.NewFixedWindow(l.Rate.Count, int64(l.Rate.Period)), nil
	case weir.FirstWindow:
		return algorithm.NewFirstWindow(l.Rate.Count, int64(l.Rate.Period)), nil
	case weir.SlidingWindow:
		return algorithm.NewSlidingWindow(l.Rate.Count, int64(l.Rate.Period)), nil
	case weir.SlidingLog:
		return algorithm.NewSlidingLog(l.Rate.Count, int64(l.Rate.Period), int64(l.Gap), l.CountDenied), nil
	case weir.RateGate:
		return algorithm.NewRateGate(l.Rate.Count, int64(l.Rate.Period)), nil
	case weir.Cycle:
		return algorithm.NewCycle(l.Rate.Count, int64(l.Rate.Period), int64(l.Origin)), nil
	}
	if q, ok := limit.(weir.Quota); ok {
		zone, err := calendar.Zone(q.Zone)
		windows := calendar.Calendar{Unit: calendar.Unit(q.Unit), Zone: zone, Month: max(int(q.Month), 1), Day: max(q.Day, 1), At: int64(q.At / time.Second)}
		return algorithm.NewQuota(q.Count, int64(time.Second), windows), err
	}
	return nil, errors.New("no algorithm for " + limit.String())
}

func (f *functions) Answer(now int64, op vectors.Op) vectors.Answer {
	if op.Cost < 0 {
		return vectors.Answer{Error: vectors.InvalidCost}
	}
	run := func(verb func([]algorithm.Part, int64) algorithm.Answer) func() vectors.Answer {
		return func() vectors.Answer { return f.run(verb, now, op) }
	}
	switch {
	case op.Verb == vectors.Peek:
		return run(algorithm.Peek)()
	case op.Verb == vectors.Allow:
		return run(algorithm.Take)()
	case len(f.algorithms) > 1 || !algorithm.CanBook(f.algorithms[0]) || algorithm.Delays(f.algorithms[0]):
		return vectors.Answer{Error: vectors.UnsupportedVerb}
	}
	return vectors.ReserveWith(op, run(algorithm.Peek), run(book))
}

// book takes the cost of one limit at its planned instant, and describes the key.
func book(parts []algorithm.Part, now int64) algorithm.Answer {
	p := &parts[0]
	if p.Cost > 0 {
		p.State = algorithm.Book(p.Algorithm, p.State, now, p.Cost)
	}
	return algorithm.Peek([]algorithm.Part{{Algorithm: p.Algorithm, State: p.State}}, now)
}

// run performs one operation on the key's states and stores the result.
func (f *functions) run(verb func([]algorithm.Part, int64) algorithm.Answer, now int64, op vectors.Op) vectors.Answer {
	var parts []algorithm.Part
	for i, a := range f.algorithms {
		part := algorithm.Part{Algorithm: a, State: a.Fresh(), Cost: op.Cost}
		if states := f.states[op.Key]; states != nil {
			part.State = states[i]
		}
		parts = append(parts, part)
	}
	got := verb(parts, now)
	states := make([]algorithm.State, len(parts))
	for i := range parts {
		states[i] = parts[i].State
	}
	f.states[op.Key] = states
	return vectors.Answer{
		Allowed:    got.Allowed,
		Limit:      got.Limit,
		Remaining:  got.Remaining,
		RetryAfter: got.RetryAfter,
		ResetAfter: got.ResetAfter,
		Delay:      got.Delay,
	}
}
