// Package enginekit helps to write a weir.Engine in any package.
//
// An engine stores the states of keys. [New] makes an engine from one function. The function gets a [Merged] whose
// requests are checked and merged, loads the State of each [Part], calls [Merged.Decide], and stores the states that
// changed. The example is a complete engine over a map and a mutex; docs/howto/engines.md explains it.
//
// [NewStore] makes an engine over a database that compares and swaps: a [Store]. It shares calls between callers, repeats
// swaps that fail, and says of each failure whether it was counted.
//
// An engine that decides elsewhere, for example in a database script, uses other functions. [Merge] checks and merges
// requests. [Keep] caches what the engine computes from a rule. [FunctionsOf] evaluates a stored state in the
// engine's unit of time. [Compose] makes a Decision from measurements of each part. [Check] and [CheckMost] implement checks
// of other calls, [Calls] makes calls for Each, and [DecideEach] answers them one by one. A layer over an engine looks at the
// decisions of a call with [Decisions], [DecisionAt] and [RequestsAt].
//
// [weir.Kit] has what engines and fronts need of package weir itself: it makes an engine of one function, reserves, and
// hands reservations over to other processes.
//
// Package limittest tests that an engine decides as package weir documents.
package enginekit

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/compiled"
)

// CannotDecide wraps the reason an engine could not decide. Use it for calls that certainly counted nothing: see
// [weir.WasCounted].
func CannotDecide(op weir.Op, err error) error { return compiled.CannotDecide(op.String(), err) }

// Merge checks the requests of a call and sums the costs of requests with the same rule and key into the first of
// them. It returns requests itself if there is nothing to sum. The error is a *weir.RequestError. Every engine calls
// Merge or New before it writes anything.
func Merge(op weir.Op, requests []weir.Request) ([]weir.Request, error) {
	if problem := compiled.CheckCount(len(requests)); problem != nil {
		return nil, requestError(op, problem)
	}
	if q := &requests[0]; len(requests) == 1 && q.Otherwise == nil && weir.Kit.Compiled(q.Rule).TakesOne(q.Key, q.Colocation, q.Cost) {
		return requests, nil
	}
	var space [4]compiled.Request
	asked := space[:0]
	for i := range requests {
		q := &requests[i]
		asked = append(asked, compiled.Request{Rule: weir.Kit.Compiled(q.Rule), Key: q.Key, Colocation: q.Colocation, Cost: q.Cost, Otherwise: q.Otherwise != nil})
	}
	merged, problem := compiled.Merge(op.String(), asked)
	switch {
	case problem != nil:
		return nil, requestError(op, problem)
	case len(merged) == len(requests):
		return requests, nil
	}
	return firstOf(merged, requests), nil
}

// firstOf returns the first request of each merged one, with the merged cost.
func firstOf(merged []compiled.Request, requests []weir.Request) []weir.Request {
	first := make([]weir.Request, 0, len(merged))
	for _, q := range requests {
		if len(first) == len(merged) {
			break
		}
		if next := &merged[len(first)]; next.Key == q.Key && next.Rule == weir.Kit.Compiled(q.Rule) {
			q.Cost = next.Cost
			first = append(first, q)
		}
	}
	return first
}

func requestError(op weir.Op, p *compiled.Problem) error {
	return &weir.RequestError{Op: op.String(), Rule: p.Rule, Field: p.Field, Reason: p.Reason}
}

// Keep returns the value that an engine stored with a rule, and calls build if there is none. A rule stores one value of
// each type T.
func Keep[T any](r *weir.Rule, build func(*weir.Rule) *T) *T {
	return compiled.Keep(weir.Kit.Compiled(r), func() *T { return build(r) })
}

// StateNames returns the names of a key's states under a rule, one for each of Limits. A name joins the rule's name,
// the limit's kind with its period, and the ordinal among equal limits with NUL bytes, which none of the three
// contains. Rules with the same name share the states with equal names.
func StateNames(r *weir.Rule) []string {
	parts := weir.Kit.Compiled(r).Parts
	names := make([]string, len(parts))
	for i := range parts {
		names[i] = parts[i].State
	}
	return names
}

// Calls returns one call for each request, for [weir.Engine.Each].
func Calls(op weir.Op, requests ...weir.Request) []weir.Call {
	calls := make([]weir.Call, len(requests))
	for i := range calls {
		calls[i] = weir.Call{Op: op, Requests: requests[i : i+1 : i+1]}
	}
	return calls
}

// Decisions returns how many decisions a call asks for: 1, or those of an OpEach. So a layer passes any call on once,
// and then looks at one decision after the other with [DecisionAt].
func Decisions(call *weir.Call) int {
	switch {
	case call.Op != weir.OpEach:
		return 1
	case call.Each == nil:
		return 0
	}
	return min(len(call.Each.Calls), len(call.Each.Results))
}

// DecisionAt returns the i-th decision of a call, after its answer or error: the call that asked, which is the call
// itself or one of an OpEach; the decision in its answer, where a layer can change it; its reservation or nil; and its
// error, or that of the OpEach as a whole.
func DecisionAt(call *weir.Call, a *weir.Answer, err error, i int) (asked *weir.Call, made *weir.Decision, r *weir.Reservation, failed error) {
	if call.Op != weir.OpEach {
		return call, &a.Decision, a.Reservation, err
	}
	result := &call.Each.Results[i]
	if err == nil {
		err = result.Err
	}
	return &call.Each.Calls[i], &result.Decision, result.Reservation, err
}

// RequestsAt returns the requests that the i-th decision of a call is about: those that paid, if these differ from those
// of the call.
func RequestsAt(call *weir.Call, a *weir.Answer, i int) []weir.Request {
	asked, paid := call, a.Paid
	if call.Op == weir.OpEach {
		asked, paid = &call.Each.Calls[i], call.Each.Results[i].Paid
	}
	if paid != nil {
		return paid
	}
	return asked.Requests
}

// Copied returns a call whose decisions a layer may ask for in another way: with the calls of an OpEach as a copy, and their
// results where the caller has them.
func Copied(call weir.Call) weir.Call {
	if call.Op == weir.OpEach && call.Each != nil {
		call.Each = &weir.Batch{Calls: slices.Clone(call.Each.Calls), Results: call.Each.Results}
	}
	return call
}

// DecideEach makes each call of an OpEach with decide, for engines and layers that answer by themselves. An error concerns all
// calls, and then none was made.
func DecideEach(b *weir.Batch, decide func(weir.Call) (weir.Answer, error)) error {
	if b == nil {
		return nil
	}
	if err := weir.Kit.CheckEach(b.Calls, b.Results); err != nil {
		return err
	}
	for i := range b.Calls {
		if r := &b.Results[i]; r.Err == nil {
			a, err := decide(b.Calls[i])
			*r = weir.Result{Decision: a.Decision, Reservation: a.Reservation, Taken: a.Taken, Paid: a.Paid, Err: err}
		}
	}
	return nil
}

// Binding returns the index of the request that a decision names, or 0.
func Binding(d *weir.Decision, requests []weir.Request) int {
	for i := range requests {
		if q := &requests[i]; q.Key == d.Key && q.Rule != nil && q.Rule.Name() == d.Rule {
			return i
		}
	}
	return 0
}

// Bound returns the context for the decision of a call: see weir.Call.Within. An engine calls cancel when it has
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
		if problem := weir.Kit.Compiled(r).CheckMade(i, len(rules)); problem != nil {
			problems = append(problems, &weir.RequestError{Op: "check", Rule: problem.Rule, Field: problem.Field, Reason: problem.Reason})
		} else if holds != nil {
			problems = append(problems, holds(r))
		}
	}
	return errors.Join(problems...)
}

// CheckMost refuses an OpTakeUpTo of a negative number of times.
func CheckMost(most int64) error {
	if problem := compiled.CheckMost(most); problem != nil {
		return requestError(weir.OpTake, problem)
	}
	return nil
}

// MaxIdentity bounds the bytes of a weir.Call.Identity.
const MaxIdentity = 128

// CheckIdentity refuses a [weir.Call.Identity] that is too long. An engine that does not recognise repeated decisions,
// such as one of New, refuses every identity.
func CheckIdentity(op weir.Op, identity string) error {
	if len(identity) > MaxIdentity {
		return requestError(op, &compiled.Problem{Field: "identity", Reason: fmt.Sprintf("of %d bytes is longer than %d", len(identity), MaxIdentity)})
	}
	return nil
}

// Renewer is an optional ability of an engine. Renew restarts the leases of the slots that were taken with the call's
// Lease, if all of them are still held. It reads only the Requests and the Lease of the call. A caller that knows the
// requests and the Lease can renew them, also in another process: see [weir.EngineKit.HandOver]. A weir.Memory has it.
type Renewer interface {
	Renew(ctx context.Context, slots weir.Call) (held bool, err error)
}

// Listener is an optional ability of an engine whose slots other processes release, too. Listen calls hear, which must
// not block, when slots of a request may have come free, until stop is called. Closing the engine calls hear, too. hears
// reports whether such signals reach this process now. A signal may be lost, or come without reason.
type Listener interface {
	Listen(slots weir.Request, hear func()) (hears func() bool, stop func())
}
