package enginekit

import (
	"cmp"
	"context"

	"github.com/weirflow/weir"
)

// New returns an engine that decides with a function. The function loads the State of every part, calls
// [Merged.Decide], and stores the states that changed. Meanwhile no other call may use these states. It returns the
// decision, or an error if it could not decide.
//
// The engine makes calls of all operations except OpReserveAhead. It does not call the function if no limit of a call
// has a state. A function that does not use [Merged.Decide] takes the requests as many times as they fit, Merged.Most
// times at most, and sets Merged.Times. It may also take them once. It sets Part.Taken of the parts that it took, and
// undoes an OpReturn with [Functions.Undo].
//
// holds returns, for Check, the limits of a rule that the engine cannot hold. A nil holds accepts all rules.
func New(decide func(context.Context, *Merged) (weir.Decision, error), holds func(*weir.Rule) error) weir.Engine {
	e := &engine{decide: decide}
	e.Engine = weir.Kit.EngineOf(e.do, func(rules ...*weir.Rule) error { return Check(rules, holds) })
	return e
}

type engine struct {
	weir.Engine
	decide func(context.Context, *Merged) (weir.Decision, error)
}

// do makes one call.
func (e *engine) do(ctx context.Context, c weir.Call) (weir.Answer, error) {
	ctx, cancel := Bound(ctx, &c)
	defer cancel()
	switch c.Op {
	case weir.OpTake, weir.OpTakeUpTo, weir.OpPeek, weir.OpRecord, weir.OpReturn, weir.OpReset:
		return e.answer(ctx, &c)
	case weir.OpReserve:
		return weir.Kit.Reserve(ctx, e, c)
	case weir.OpEach:
		return weir.Answer{}, e.each(ctx, c.Each)
	}
	return weir.Answer{}, weir.Kit.Unsupported(c.Op, "cannot be made by this engine")
}

func (e *engine) answer(ctx context.Context, c *weir.Call) (a weir.Answer, err error) {
	call, err := mergedOf(ctx, *c)
	if err != nil {
		return a, err
	}
	if call.stateless() {
		a.Decision = call.Decide(0)
	} else if a.Decision, err = e.decide(ctx, call); err != nil {
		return a, err
	}
	if a.Decision.Allowed {
		a.Taken = call.taken(c.Requests)
	}
	if c.Op == weir.OpTakeUpTo && a.Decision.Allowed {
		a.Times = min(max(call.Times, 1), c.Most) // a function that ignores Most takes once
	}
	return a, nil
}

func (e *engine) each(ctx context.Context, batch *weir.Batch) error {
	if err := ctx.Err(); err != nil && batch != nil {
		return cmp.Or(weir.Kit.CheckEach(batch.Calls, batch.Results), CannotDecide(weir.OpEach, err))
	}
	return DecideEach(batch, func(c weir.Call) (weir.Answer, error) { return e.do(ctx, c) })
}
