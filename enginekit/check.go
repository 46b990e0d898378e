package enginekit

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/rule"
)

// EngineOf returns an engine that makes all its calls with do, and checks rules with check.
func EngineOf(do weir.Next, check func(rules ...*weir.Rule) error) weir.Engine {
	return root.EngineOf(do, check)
}

// Bound returns the context in which an engine decides a call: see weir.Call.Within. An engine calls cancel when it has
// decided.
func Bound(ctx context.Context, call *weir.Call) (_ context.Context, cancel context.CancelFunc) {
	if call.Within <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(context.WithoutCancel(ctx), call.Within)
}

// Check implements the Check of an engine. It refuses rules that NewRule did not make, and returns the errors of
// holds for the others. A nil holds accepts every rule.
func Check(rules []*weir.Rule, holds func(*weir.Rule) error) error {
	var problems []error
	for i, r := range rules {
		if problem := rule.Of(r).CheckMade(i, len(rules)); problem != nil {
			problems = append(problems, &weir.RequestError{Op: "check", Rule: problem.Rule, Field: problem.Field, Reason: problem.Reason})
		} else if holds != nil {
			problems = append(problems, holds(r))
		}
	}
	return errors.Join(problems...)
}

// CheckMost refuses an OpTakeUpTo of a negative number of times.
func CheckMost(most int64) error {
	if problem := rule.CheckMost(most); problem != nil {
		return requestError(weir.OpTake, problem)
	}
	return nil
}

// CheckTaken refuses a Taken that is not one instant for each request of an OpReturn.
func CheckTaken(c weir.Call) error { return root.CheckTaken(c) }

// CheckAhead returns a *weir.RequestError for an OpReserveAhead that no engine can make.
func CheckAhead(c weir.Call) error { return root.CheckAhead(c) }

// CheckEach refuses an OpEach whose calls and results differ in number. It writes an error to the results of calls that
// cannot be made in it, which are those that do not take, reserve ahead, peek, record or return. The engine decides the
// others.
func CheckEach(calls []weir.Call, results []weir.Result) error {
	return root.CheckEach(calls, results)
}

// Unsupported returns the *weir.RequestError of an operation that an engine cannot make. It wraps errors.ErrUnsupported.
func Unsupported(op weir.Op, reason string) error { return root.Unsupported(op, reason) }

// MaxIdentity bounds the bytes of a weir.Call.Identity.
const MaxIdentity = 128

// CheckIdentity refuses a [weir.Call.Identity] that is too long. An engine that does not recognise repeated decisions
// refuses every identity, as NewCall does.
func CheckIdentity(op weir.Op, identity string) error {
	if len(identity) > MaxIdentity {
		return requestError(op, &rule.Problem{Field: "identity", Reason: fmt.Sprintf("of %d bytes is longer than %d", len(identity), MaxIdentity)})
	}
	return nil
}
