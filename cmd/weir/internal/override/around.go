package override

import (
	"context"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
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
	a, err := next(ctx, enginekit.Changed(call, func(c *weir.Call) { x.change(c, now) }))
	for c, r := range enginekit.Decisions(&call, &a, err) {
		t.date(&r.Decision, x, c, now)
		if r.Reservation != nil {
			t.date(&r.Reservation.Decision, x, c, now)
		}
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
func (t *Table) date(d *weir.Decision, x *index, call *weir.Call, now int64) {
	if d.Allowed || d.RetryAfter != weir.Never || d.Rule == "" {
		return
	}
	changed := *call
	x.change(&changed, now)
	asked, decided := call.Requests, changed.Requests
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
