package enginekit

import (
	"context"

	"github.com/weirflow/weir"
)

// New returns an engine that decides with a function. The function loads the State of every part, calls
// [Call.Decide], and stores the states that changed. Meanwhile no other call may use these states. It returns the
// decision, or an error if it could not decide.
//
// The engine is a [weir.UpToTaker], and decides calls in which no limit has a state without the function. A function
// that does not use [Call.Decide] takes the requests as many times as they fit, Call.Most times at most, and sets
// Call.Times. It may also take them once.
//
// holds returns, for Check, the limits of a rule that the engine cannot hold. A nil holds accepts all rules.
func New(decide func(context.Context, *Call) (weir.Decision, error), holds func(*weir.Rule) error) weir.Engine {
	return &engine{decide, holds}
}

var _ weir.UpToTaker = (*engine)(nil)

type engine struct {
	decide func(context.Context, *Call) (weir.Decision, error)
	holds  func(*weir.Rule) error
}

func (e *engine) answer(ctx context.Context, op Op, requests []weir.Request) (weir.Decision, error) {
	call, err := NewCall(ctx, op, requests)
	if err != nil {
		return weir.Decision{}, err
	}
	return e.decideCall(ctx, call)
}

// decideCall asks the function, unless there is no state to load.
func (e *engine) decideCall(ctx context.Context, call *Call) (weir.Decision, error) {
	if call.stateless() {
		return call.Decide(0), nil
	}
	return e.decide(ctx, call)
}

func (e *engine) Take(ctx context.Context, requests ...weir.Request) (weir.Decision, error) {
	return e.answer(ctx, Take, requests)
}

// TakeUpTo takes the requests as many times as they fit, most times at most.
func (e *engine) TakeUpTo(ctx context.Context, most int64, requests ...weir.Request) (times int64, d weir.Decision, err error) {
	if err := CheckMost(most); err != nil {
		return 0, weir.Decision{}, err
	}
	call, err := NewCall(ctx, Take, requests)
	if err != nil {
		return 0, weir.Decision{}, err
	}
	call.Most = max(most, 1)
	for i := range call.Parts {
		call.Parts[i].Request.Cost *= min(most, 1)
	}
	d, err = e.decideCall(ctx, call)
	if err != nil || !d.Allowed {
		return 0, d, err
	}
	return min(max(call.Times, 1), most), d, nil // a function that ignores Most takes once
}

func (e *engine) Peek(ctx context.Context, requests ...weir.Request) (weir.Decision, error) {
	return e.answer(ctx, Peek, requests)
}

func (e *engine) Record(ctx context.Context, requests ...weir.Request) (weir.Decision, error) {
	return e.answer(ctx, Record, requests)
}

func (e *engine) Reset(ctx context.Context, requests ...weir.Request) error {
	_, err := e.answer(ctx, Reset, requests)
	return err
}

func (e *engine) TakeEach(ctx context.Context, requests []weir.Request, results []weir.Result) error {
	if err := CheckEach(requests, results); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return CannotDecide(Take, err)
	}
	for i := range requests {
		d, err := e.answer(ctx, Take, requests[i:i+1])
		results[i] = weir.Result{Decision: d, Err: err}
	}
	return nil
}

func (e *engine) Reserve(ctx context.Context, requests ...weir.Request) (*weir.Reservation, error) {
	return weir.Reserve(ctx, e, requests...)
}

func (e *engine) Check(rules ...*weir.Rule) error { return Check(rules, e.holds) }
