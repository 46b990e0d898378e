package limittest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// RunVectors plays all vectors, with one subtest for each file. binds returns the reason a scenario does not apply to
// the subject under test, or "". fresh returns the subject; it may refuse limits outside the bounds of package weir
// with a *weir.LimitError. RunVectors logs each scenario that it does not play, with the reason.
func RunVectors(t *testing.T, binds func(Scenario) string, fresh func(Scenario) (Subject, error)) {
	for _, file := range Files(t) {
		t.Run(file.Name, func(t *testing.T) {
			runFile(t, file, binds, fresh)
		})
	}
}

func runFile(t *testing.T, file File, binds func(Scenario) string, fresh func(Scenario) (Subject, error)) {
	played := 0
	unplayed := map[string][]string{} // scenarios by reason
	for _, d := range file.Dialects {
		reason := fmt.Sprintf("a dialect, which binds only %s", dialects[d.Algorithm])
		unplayed[reason] = append(unplayed[reason], d.ID)
	}
	for _, s := range file.Scenarios {
		reason := bindsNoTokenBucket(s)
		if reason == "" {
			reason = binds(s)
		}
		if reason == "" {
			reason = play(t, s, fresh)
		}
		if reason == "" {
			played++
			continue
		}
		unplayed[reason] = append(unplayed[reason], s.ID)
	}
	t.Logf("%s: %d of %d scenarios played", file.Name, played, len(file.Scenarios)+len(file.Dialects))
	for _, reason := range slices.Sorted(maps.Keys(unplayed)) {
		ids := unplayed[reason]
		t.Logf("%s: %d not played, %s: %s", file.Name, len(ids), reason, strings.Join(ids, " "))
	}
}

// bindsNoTokenBucket excludes scenarios of token_bucket in which time runs backwards. There weir.TokenBucket behaves
// like the vectors' gcra.
func bindsNoTokenBucket(s Scenario) string {
	if slices.Contains(s.Params.algorithms(), "token_bucket") && s.Tagged("backwards") {
		return "token_bucket with time running backwards does not bind TokenBucket"
	}
	return ""
}

// play plays a scenario. It returns the reason if the subject refused the scenario's limits, and otherwise "".
func play(t *testing.T, s Scenario, fresh func(Scenario) (Subject, error)) (refused string) {
	t.Helper()
	subject, err := fresh(s)
	if err == nil {
		if err := Play(s, subject); err != nil {
			t.Error(err)
		}
		return ""
	}
	reason, legal := s.refusal(err)
	if !legal {
		t.Errorf("%s: limits refused: got %v; want a *weir.LimitError, and only for limits out of bounds", s.ID, err)
	}
	return "refused: " + reason
}

// runEngineVectors plays the scenarios that apply to engines.
func runEngineVectors(t *testing.T, newEngine func(clock func() int64) weir.Engine) {
	RunVectors(t, func(s Scenario) string { return unbooked(s, newEngine) }, func(s Scenario) (Subject, error) {
		e := &engineSubject{f: newFixture(t, newEngine)}
		return e, e.ChangeTo(s.Params)
	})
}

// unbooked excludes scenarios that only an engine that books can play.
func unbooked(s Scenario, newEngine func(clock func() int64) weir.Engine) string {
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
func (e *engineSubject) ChangeTo(params Params) error {
	rule, err := weir.NewRule("vector", params.Weir()...)
	if err != nil {
		return err
	}
	e.rule = rule
	return e.f.engine.Check(rule)
}

func (e *engineSubject) Answer(now int64, op Op) Answer {
	e.f.clock.set(now)
	decision, err := e.decide(e.rule.For(op.Key, op.Cost), op)
	var bad *weir.RequestError
	switch {
	case errors.As(err, &bad) && bad.Field == "cost":
		return Answer{Error: InvalidCost}
	case err != nil:
		return Answer{Error: err.Error()}
	case decision.Rule != e.rule.Name() || decision.Key != op.Key:
		return Answer{Error: fmt.Sprintf("names rule %q and key %q", decision.Rule, decision.Key)}
	}
	return DecisionAnswer(decision)
}

func (e *engineSubject) decide(request weir.Request, op Op) (weir.Decision, error) {
	ctx := context.Background()
	switch {
	case op.Verb == Allow:
		return e.f.engine.Take(ctx, request)
	case op.Verb == Peek:
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

var errUnsupported = errors.New(UnsupportedVerb)

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
