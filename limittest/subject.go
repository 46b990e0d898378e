package limittest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/vectors"
)

// unbooked excludes scenarios that only an engine that books can play.
func unbooked(s vectors.Scenario, newEngine func(clock func() int64) weir.Engine) string {
	if s.Reserves() && !reservesAhead(newEngine(func() int64 { return 0 })) {
		return "the engine does not book"
	}
	return ""
}

// engineSubject answers with one rule that holds the limits of a scenario.
type engineSubject struct {
	f    *fixture
	rule *weir.Rule
}

// ChangeTo makes another rule of the same name.
func (e *engineSubject) ChangeTo(params vectors.Params) error {
	rule, err := weir.NewRule("vector", params.Weir()...)
	if err != nil {
		return err
	}
	e.rule = rule
	return e.f.engine.Check(rule)
}

func (e *engineSubject) Answer(now int64, op vectors.Op) vectors.Answer {
	e.f.clock.set(now)
	decision, err := e.decide(e.rule.For(op.Key, op.Cost), op)
	var bad *weir.RequestError
	switch {
	case errors.As(err, &bad) && bad.Field == "cost":
		return vectors.Answer{Error: vectors.InvalidCost}
	case err != nil:
		return vectors.Answer{Error: err.Error()}
	case decision.Rule != e.rule.Name() || decision.Key != op.Key:
		return vectors.Answer{Error: fmt.Sprintf("names rule %q and key %q", decision.Rule, decision.Key)}
	}
	return vectors.DecisionAnswer(decision)
}

func (e *engineSubject) decide(request weir.Request, op vectors.Op) (weir.Decision, error) {
	ctx := context.Background()
	switch {
	case op.Verb == vectors.Allow:
		return e.f.engine.Take(ctx, request)
	case op.Verb == vectors.Peek:
		return e.f.engine.Peek(ctx, request)
	}
	reservation, err := e.reserve(ctx, request, op.MaxWait)
	if err != nil {
		return weir.Decision{}, err
	}
	return reservation.Decision, nil
}

// reserve books a request that may wait.
func (e *engineSubject) reserve(ctx context.Context, request weir.Request, longest int64) (*weir.Reservation, error) {
	switch {
	case longest == 0:
		return e.f.engine.Reserve(ctx, request)
	case longest < 0:
		longest = math.MaxInt64
	}
	r, err := weir.ReserveAhead(ctx, e.f.engine, time.Duration(longest), request)
	var bad *weir.RequestError
	if errors.As(err, &bad) && bad.Field == "rule" {
		err = errUnsupported
	}
	return r, err
}

var errUnsupported = errors.New(vectors.UnsupportedVerb)

// runEngineVectors plays the scenarios that apply to engines.
func runEngineVectors(t *testing.T, newEngine func(clock func() int64) weir.Engine) {
	vectors.Run(t, func(s vectors.Scenario) string { return unbooked(s, newEngine) }, func(s vectors.Scenario) (vectors.Subject, error) {
		e := &engineSubject{f: newFixture(t, newEngine)}
		return e, e.ChangeTo(s.Params)
	})
}
