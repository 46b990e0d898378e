// Package front is the common part of the fronts of all protocols: rules and plans, keys and costs, slots that a request
// holds, and costs that are settled when it ends. Packages httplimit and grpclimit stand on it.
//
// A front decodes a request, asks, and encodes the answer. R is the type of its requests. A is the type of its answers,
// from which Rule.After computes a cost:
//
//	f, err := front.New(front.Options[*Request, Answer]{Name: "myfront", Key: clientOf, Rules: rules})
//	…
//	ask := f.Ask(ctx, request, front.Whole)
//	defer ask.Done()
//	if !ask.Outcome.Passes() {
//		return refusal(ask)
//	}
//	defer ask.Grant.End(ctx) // also when the handler panics
//	return handle(request)
//
// The way of one request:
//
//   - [Rules] find the weir.Rule, the key and the cost of each [Rule], which become the requests to the engine.
//   - [Front] makes one decision on all of them. With Options.Wait a refused request queues; a delayed one is held.
//   - [Grant] keeps the taken units until the request ends: it has slots renewed, and settles costs.
//
// A client, which waits for its own limits, needs only Rules.
package front

import (
	"context"
	"errors"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
	"github.com/weirflow/weir/pace"
)

// Front decides on requests. It is safe for concurrent use.
type Front[R, A any] struct {
	*Rules[R, A]
	queue    *pace.Queue // nil without Options.Wait
	failures failures
}

// New returns a Front. Its errors are joined *weir.OptionError, *weir.LimitError and *weir.SyntaxError values.
func New[R, A any](o Options[R, A]) (*Front[R, A], error) {
	rules, err := NewRules(o)
	if len(o.Rules) == 0 {
		err = errors.Join(OptionError(o.Name, "rules", "are 0, not 1 to %d", maxRules), err)
	}
	if err != nil {
		return nil, err
	}
	f := &Front[R, A]{Rules: rules}
	f.failures = failures{name: o.Name, logger: f.Logger}
	if f.Wait > 0 && f.DryRun == nil {
		f.queue, err = pace.NewQueue(f.Engine, pace.QueueOptions{})
	}
	return f, err
}

// errLeft is the error of a request whose client has left before it was decided.
var errLeft = errors.New("front: the client has left")

// Ask decides on a request, and waits if it is to wait. If the request passes, the caller ends its Grant, also when a
// handler panics. The end of ctx does not end a decision: a client that leaves cannot make its request undecided.
func (f *Front[R, A]) Ask(ctx context.Context, r R, part Part) *Ask[R, A] {
	a := f.newAsk()
	a.Outcome = f.decide(ctx, r, part, a)
	return a
}

func (f *Front[R, A]) decide(ctx context.Context, r R, part Part, a *Ask[R, A]) Outcome {
	var began time.Time
	if f.Observe != nil {
		began = time.Now()
	}
	err := f.fill(a, r, part, f.DryRun != nil)
	if err != nil {
		if ctx.Err() != nil {
			err = errLeft // the plan may have asked a store under the context of the request
		}
		return f.undecided(ctx, a, err, began)
	}
	if a.Missing != nil {
		return KeyMissing
	}
	if len(a.Requests) == 0 {
		return Free
	}
	waited, err := f.take(ctx, a)
	if err != nil {
		return f.undecided(ctx, a, err, began)
	}
	f.observe(ctx, a, nil, began)
	switch {
	case !a.Decision.Allowed:
		return Limited
	case (waited || a.Decision.Delay > 0) && !Sleep(ctx, a.Decision.Delay):
		a.Grant.Abandon(ctx)
		a.Grant = nil
		return ClientLeft
	case a.Decision.Limit == weir.MaxCount: // no limit, or none at the moment
		return Free
	}
	return Admitted
}

// observe reports the outcome of a request. If Observe panics, the slots come back.
func (f *Front[R, A]) observe(ctx context.Context, a *Ask[R, A], err error, began time.Time) {
	if f.Observe == nil {
		return
	}
	observed := false
	defer func() {
		if !observed {
			a.Grant.Abandon(ctx)
		}
	}()
	call, answer := weir.Call{Op: weir.OpTake, Requests: a.Requests}, weir.Answer{Decision: a.Decision}
	f.Observe(ctx, layer.Observed(call, answer, err, began))
	observed = true
}

// undecided returns the outcome of a request that was not decided: the policy of the Guard is layer.Deny, no engine
// could decide it, or its client has left. Another policy admits none of these, because the client may have made it so.
func (f *Front[R, A]) undecided(ctx context.Context, a *Ask[R, A], err error, began time.Time) Outcome {
	a.Err = err
	if err == errLeft {
		return ClientLeft
	}
	f.failures.log(err)
	f.observe(ctx, a, err, began)
	if f.DryRun != nil {
		return Free
	}
	return NotDecided
}

// take makes the decision, and keeps what it took as the Grant. With Options.Wait it waits for an admission.
func (f *Front[R, A]) take(ctx context.Context, a *Ask[R, A]) (waited bool, err error) {
	if f.queue == nil {
		return false, f.takeNow(ctx, a)
	}
	if a.Lease == 0 && f.queue.Waiting() == 0 { // otherwise this request would overtake the waiting ones
		if err := f.takeNow(ctx, a); err != nil || a.Decision.Allowed || a.Decision.RetryAfter > f.Wait {
			return false, err
		}
	}
	waiting, cancel := context.WithTimeout(ctx, f.Wait)
	defer cancel()
	switch err := f.takeInTurn(waiting, a); {
	case err != nil && ctx.Err() != nil:
		return true, errLeft
	case err != nil && isTooLong(err):
		return true, f.refuse(ctx, a, err)
	default:
		return true, err
	}
}

// decideWithin has a decision go on when its client leaves. The Guard bounds the decisions of an engine that may hang.
const decideWithin = time.Minute

func (f *Front[R, A]) takeNow(ctx context.Context, a *Ask[R, A]) error {
	call := weir.Call{Op: weir.OpTake, Requests: a.Requests, Lease: a.Lease, Within: decideWithin}
	if a.Lease != 0 {
		answer, err := weir.Kit.Reserve(ctx, f.Engine, call)
		if err != nil {
			return err
		}
		a.Decision = answer.Decision
		f.grant(a, answer.Reservation, weir.Call{Lease: a.Lease, Taken: weir.Kit.TakeOf(answer.Reservation).Taken})
		return nil
	}
	if a.settles { // by its lease, a Guard knows whether the engine or a policy has admitted what is settled
		call.Lease = weir.Kit.NewLease()
	}
	answer, err := f.Engine.Do(ctx, call)
	if a.Decision = answer.Decision; err == nil && a.settles {
		f.grant(a, nil, weir.Call{Lease: call.Lease, Taken: answer.Taken})
	}
	return err
}

// takeInTurn waits in the queue. A reservation of slots lets the next request have them when it is done.
func (f *Front[R, A]) takeInTurn(ctx context.Context, a *Ask[R, A]) error {
	if a.Lease != 0 || a.settles && !a.delays() {
		acquired, err := f.queue.Acquire(ctx, a.Requests...)
		if err != nil {
			return err
		}
		a.Decision = acquired.Decision
		var slots reservation
		if a.Lease != 0 {
			slots = acquired
		}
		f.grant(a, slots, weir.Call{Taken: weir.Kit.TakeOf(acquired.Reservation).Taken})
		return nil
	}
	d, err := f.queue.Wait(ctx, a.Requests...)
	d.Delay = 0 // the queue has waited for it
	if a.Decision = d; err == nil && a.settles {
		f.grant(a, nil, weir.Call{})
	}
	return err
}

// isTooLong reports whether a wait ended because it would take too long, or did.
func isTooLong(err error) bool {
	return errors.Is(err, weir.ErrWait) || errors.Is(err, weir.ErrNever) || errors.Is(err, weir.ErrQueueFull) || errors.Is(err, context.DeadlineExceeded)
}

// refuse sets the refusal of a request that has waited, or cannot wait, long enough. The engine does not know the
// requests ahead of it, which the reason may name.
func (f *Front[R, A]) refuse(ctx context.Context, a *Ask[R, A], why error) error {
	answer, err := f.Engine.Do(ctx, weir.Call{Op: weir.OpPeek, Requests: a.Requests, Within: decideWithin})
	d := answer.Decision
	if d.Allowed { // requests that have waited longer come first
		d.Allowed, d.RetryAfter, d.Cause = false, time.Second, weir.ByCount
	}
	if ahead, ok := errors.AsType[*weir.WaitError](why); ok && ahead.Need != weir.Never {
		d.RetryAfter = max(d.RetryAfter, ahead.Need)
	}
	a.Decision = d
	return err
}

// Again returns how long until a request like an admitted one fits. It asks the engine, and is 0 if the request fits now or
// nobody knows.
func (f *Front[R, A]) Again(ctx context.Context, a *Ask[R, A]) time.Duration {
	answer, err := f.Engine.Do(ctx, weir.Call{Op: weir.OpPeek, Requests: a.Requests, Within: decideWithin})
	if err != nil || answer.Decision.RetryAfter == weir.Never {
		return 0
	}
	return answer.Decision.RetryAfter
}

// grant keeps what was taken until the request ends: with the Lease of the take and the Taken of its answer. The reservation
// has its slots, or is nil.
func (f *Front[R, A]) grant(a *Ask[R, A], slots reservation, take weir.Call) {
	if !a.Decision.Allowed {
		return
	}
	g := &Grant[R, A]{rules: f.Rules, failures: &f.failures, slots: slots}
	units := weir.Call{Lease: take.Lease}
	counted := a.Decision.Limit != weir.MaxCount || f.DryRun != nil // otherwise a policy of the Guard has admitted it
	for i, q := range a.Requests {
		rule, rates := &f.list[a.At[i]], a.Sets[i].rates
		if (rule.After != nil || rule.Settled) && rates != nil && counted {
			g.charges = append(g.charges, charge{at: a.At[i], name: rates.Name(), key: q.Key, taken: q.Cost, actual: q.Cost})
			units.Requests = append(units.Requests, rates.For(q.Key, q.Cost))
			if i < len(take.Taken) {
				units.Taken = append(units.Taken, take.Taken[i])
			}
		}
	}
	g.units = weir.Kit.Granted(f.Engine, time.Now(), a.Decision, nil, units)
	a.Grant = g
}

// Sleep waits for the delay of a decision. It reports whether the client is still connected.
func Sleep(ctx context.Context, delay time.Duration) bool {
	if delay <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
