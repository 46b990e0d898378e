package override

import (
	"context"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// Engine is an engine whose keys may have other limits. weir.Find finds it below functions around it.
type Engine struct {
	weir.Engine
	*Table
	below weir.Engine
}

// Unwrap returns the engine below, for weir.Find.
func (e *Engine) Unwrap() weir.Engine { return e.below }

// Around returns the engine by the limits of the table.
func (t *Table) Around(below weir.Engine) *Engine {
	return &Engine{weir.Wrap(below, t.around), t, below}
}

func (t *Table) around(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
	x := t.current.Load()
	if x == nil {
		return next(ctx, call)
	}
	now := time.Now().UnixNano()
	if call.Op == weir.OpEach && call.Each != nil {
		asked := call.Each.Calls
		each := weir.Batch{Calls: slices.Clone(asked), Results: call.Each.Results}
		for i := range each.Calls {
			x.change(&each.Calls[i], now)
		}
		call.Each = &each
		a, err := next(ctx, call)
		for i := range min(len(asked), len(each.Results)) {
			t.date(&each.Results[i].Decision, x, asked[i].Requests, each.Calls[i].Requests, now)
		}
		return a, err
	}
	asked := call.Requests
	x.change(&call, now)
	a, err := next(ctx, call)
	t.date(&a.Decision, x, asked, call.Requests, now)
	if a.Reservation != nil {
		t.date(&a.Reservation.Decision, x, asked, call.Requests, now)
	}
	return a, err
}

// change lets a call that asks for units ask by the limits in force.
func (x *index) change(call *weir.Call, now int64) {
	switch call.Op {
	case weir.OpTake, weir.OpTakeUpTo, weir.OpReserve, weir.OpReserveAhead, weir.OpPeek:
		call.Requests = x.requests(call.Requests, now)
	}
}

// date says when a call is free that only blocks refuse: at the end of the last of them. A call that would not fit without
// them keeps its answer that it never does.
func (t *Table) date(d *weir.Decision, x *index, asked, decided []weir.Request, now int64) {
	if d.Allowed || d.RetryAfter != weir.Never || d.Rule == "" {
		return
	}
	until, others := int64(0), make([]weir.Request, 0, len(asked))
	for i, q := range asked {
		e, by := x.find(q, now), decided[i]
		if e == nil || e.Limit != Block || textOf(by.Rule) != Block {
			others = append(others, by)
			continue
		}
		until = max(until, e.until)
		if by.Rule != q.Rule { // otherwise the caller has got the request from Requests
			others = append(others, q)
		}
	}
	if until == 0 || len(others) > 0 && !t.fit(others) {
		return
	}
	d.RetryAfter = max(1, time.Duration(until-time.Now().UnixNano())) // 1 if the block has just ended
	d.ResetAfter, d.LimitReset = d.RetryAfter, d.RetryAfter
}

// fit reports whether requests are admitted if none of their keys has been used.
func (t *Table) fit(requests []weir.Request) bool {
	d, err := t.unused.Peek(context.Background(), requests...)
	return err == nil && d.Allowed
}
