// Package enginekit helps to write a weir.Engine in any package.
//
// An engine stores the states of keys. [New] makes an engine from one function. The function gets a [Call] whose
// requests are checked and merged, loads the State of each [Part], calls [Call.Decide], and stores the states that
// changed. The example is a complete engine over a map and a mutex; docs/howto/engines.md explains it.
//
// [NewStore] makes an engine over a database that compares and swaps: a [Store]. It shares calls between callers, repeats
// swaps that fail, and says of each failure whether it was counted.
//
// An engine that decides elsewhere, for example in a database script, uses other functions. [Merge] checks and merges
// requests. [Keep] caches what the engine computes from a rule. [FunctionsOf] evaluates a stored state in the
// engine's unit of time. [Compose] makes a Decision from measurements of each part. [Check], [CheckMost], [CheckTaken],
// [CheckEach] and [CheckAhead] implement checks of other calls, and [Reserve] implements a reservation. [EngineOf] makes an
// engine of one function.
//
// Fronts, which ask engines for others, hold slots and costs that are settled later: [Held], [Spent], [NewLease], [TakeOf],
// [HandOver] and [Granted] are for them. [CalendarWindow] tells them when a Quota begins anew, and [Calls] makes calls for Each.
//
// Package limittest tests that an engine decides as package weir documents.
package enginekit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/rule"
)

// root has functions of package weir. The type is that of its file kit.go.
var root = rule.Kit.(struct {
	EngineOf    func(do weir.Next, check func(...*weir.Rule) error) weir.Engine
	Reserve     func(context.Context, weir.Engine, weir.Call) (weir.Answer, error)
	Granted     func(e weir.Engine, since time.Time, d weir.Decision, withdraw func(context.Context, int64) error, c weir.Call) *weir.Reservation
	CheckAhead  func(weir.Call) error
	CheckTaken  func(weir.Call) error
	CheckEach   func([]weir.Call, []weir.Result) error
	Unsupported func(weir.Op, string) error
	NewLease    func() uint64
	Held, Spent func(*weir.Rule) *weir.Rule
	TakeOf      func(*weir.Reservation) weir.Call
	HandOver    func(*weir.Reservation) weir.Call
	Drop        func(weir.Engine, weir.Call)
	Window      func(weir.Limit, time.Time) (start, end time.Time, ok bool)
})

// CannotDecide wraps the reason an engine could not decide. Use it for calls that certainly counted nothing: see
// [weir.WasCounted].
func CannotDecide(op weir.Op, err error) error { return rule.CannotDecide(op.String(), err) }

// Merge checks the requests of a call and sums the costs of requests with the same rule and key into the first of
// them. It returns requests itself if there is nothing to sum. The error is a *weir.RequestError. Every engine calls
// Merge or NewCall before it writes anything.
func Merge(op weir.Op, requests []weir.Request) ([]weir.Request, error) {
	if problem := rule.CheckCount(len(requests)); problem != nil {
		return nil, requestError(op, problem)
	}
	if q := &requests[0]; len(requests) == 1 && rule.Of(q.Rule).TakesOne(q.Key, q.Colocation, q.Cost) {
		return requests, nil
	}
	var space [4]rule.Request
	compiled := space[:0]
	for i := range requests {
		q := &requests[i]
		compiled = append(compiled, rule.Request{Rule: rule.Of(q.Rule), Key: q.Key, Colocation: q.Colocation, Cost: q.Cost})
	}
	merged, problem := rule.Merge(op.String(), compiled)
	switch {
	case problem != nil:
		return nil, requestError(op, problem)
	case len(merged) == len(requests):
		return requests, nil
	}
	return firstOf(merged, requests), nil
}

// firstOf returns the first request of each merged one, with the merged cost.
func firstOf(merged []rule.Request, requests []weir.Request) []weir.Request {
	first := make([]weir.Request, 0, len(merged))
	for _, q := range requests {
		if len(first) == len(merged) {
			break
		}
		if next := &merged[len(first)]; next.Key == q.Key && next.Rule == rule.Of(q.Rule) {
			q.Cost = next.Cost
			first = append(first, q)
		}
	}
	return first
}

func requestError(op weir.Op, p *rule.Problem) error {
	return &weir.RequestError{Op: op.String(), Rule: p.Rule, Field: p.Field, Reason: p.Reason}
}

// Keep returns the value that an engine stored with a rule, and calls build if there is none. A rule stores one value of
// each type T.
func Keep[T any](r *weir.Rule, build func(*weir.Rule) *T) *T {
	return rule.Keep(rule.Of(r), func() *T { return build(r) })
}

// StateNames returns the names of a key's states under a rule, one for each of Limits. A name joins the rule's name,
// the limit's kind with its period, and the ordinal among equal limits with NUL bytes, which none of the three
// contains. Rules with the same name share the states with equal names.
func StateNames(r *weir.Rule) []string {
	parts := rule.Of(r).Parts
	names := make([]string, len(parts))
	for i := range parts {
		names[i] = parts[i].State
	}
	return names
}

// EngineOf returns an engine that makes all its calls with do, and checks rules with check.
func EngineOf(do weir.Next, check func(rules ...*weir.Rule) error) weir.Engine {
	return root.EngineOf(do, check)
}

// Calls returns one call for each request, for [weir.Engine.Each].
func Calls(op weir.Op, requests ...weir.Request) []weir.Call {
	calls := make([]weir.Call, len(requests))
	for i := range calls {
		calls[i] = weir.Call{Op: op, Requests: requests[i : i+1 : i+1]}
	}
	return calls
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

// Reserve makes an OpReserve on e by a take: an engine implements it so. A LeakyBucket cannot be reserved. The units of a
// Concurrency get a lease, so that the reservation releases exactly these.
//
// If Reserve fails and slots may have been taken, it returns a reservation beside the error, and Cancel releases the
// slots.
func Reserve(ctx context.Context, e weir.Engine, call weir.Call) (weir.Answer, error) {
	return root.Reserve(ctx, e, call)
}

// Granted returns the reservation of a call that was decided on e at an instant after since, with the call's lease and the
// Taken of its answer. Without Taken, windows, cycles, logs and gates get nothing back in its settlement. withdraw gives units
// of a booking back; otherwise it is nil.
func Granted(e weir.Engine, since time.Time, d weir.Decision, withdraw func(ctx context.Context, n int64) error, call weir.Call) *weir.Reservation {
	return root.Granted(e, since, d, withdraw, call)
}

// TakeOf returns the take of a reservation on an engine: its requests, its Lease and the Taken of its answer, which is the
// instant of a reservation for later. [Granted] returns the reservation again.
func TakeOf(r *weir.Reservation) weir.Call { return root.TakeOf(r) }

// HandOver leaves a reservation to whoever knows its take, which it returns, perhaps in another process: slots are no longer
// renewed here, and end with their lease unless a [Renewer] renews them.
func HandOver(r *weir.Reservation) weir.Call { return root.HandOver(r) }

// Drop releases the slots of a take that failed and may have been counted, by its Lease. The engine may carry out the take
// after the release, and may be away, so Drop repeats the release for some seconds, and until it succeeds or the lease has passed.
// It waits for the first one, at most a second.
func Drop(e weir.Engine, take weir.Call) { root.Drop(e, take) }

// NewLease returns a random weir.Call.Lease, which is never 0.
func NewLease() uint64 { return root.NewLease() }

// Held returns a rule of those limits of r whose units are held until they are released, or nil if there are none. It
// has the name of r and so shares its states.
func Held(r *weir.Rule) *weir.Rule { return root.Held(r) }

// Spent works like Held for the limits whose units are spent.
func Spent(r *weir.Rule) *weir.Rule { return root.Spent(r) }

// Renewer is an optional ability of an engine. Renew has the leases of slots begin now, which were taken with their Lease,
// if all of them are still held; it reads nothing else of the call. A caller that knows the requests and the Lease can renew
// them, also in another process: see [HandOver]. A weir.Memory has it.
type Renewer interface {
	Renew(ctx context.Context, slots weir.Call) (held bool, err error)
}

// Listener is an optional ability of an engine on which other processes release slots. Listen calls hear, which must not block,
// when slots of a request may have come free, until stop is called; close of the engine calls it, too. hears reports whether such
// signals reach this process now. A signal may be lost, or come without reason.
type Listener interface {
	Listen(slots weir.Request, hear func()) (hears func() bool, stop func())
}
