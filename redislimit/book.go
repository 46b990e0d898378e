package redislimit

import (
	"context"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/redislimit/internal/calls"
	"github.com/weirflow/weir/redislimit/internal/fault"
	"github.com/weirflow/weir/redislimit/internal/stored"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// reserveAhead takes a request for the earliest instant that admits it, in one call of the script.
func (e *Engine) reserveAhead(ctx context.Context, c weir.Call) (weir.Answer, error) {
	q, requests, err := e.bookingOf(nil, &c)
	if err != nil {
		return weir.Answer{}, err
	}
	if err := ctx.Err(); err != nil {
		return weir.Answer{}, cannotDecide(wire.OpBook.String(), fault.Uncounted(fault.Cancelled, err))
	}
	if len(q.Parts) == 0 || q.Op != wire.OpBook {
		d, err := e.plain(ctx, wire.OpTake, requests)
		if err != nil {
			return weir.Answer{}, err
		}
		return weir.Answer{Decision: d, Reservation: weir.Kit.Granted(e, time.Time{}, d, nothing, c)}, nil
	}
	if q, err = e.alone(ctx, q); err != nil {
		return weir.Answer{}, cannotDecide(wire.OpBook.String(), err)
	}
	d, r := e.booked(q, requests, &c)
	return weir.Answer{Decision: d, Reservation: r}, nil
}

// bookingOf returns the decision of an OpReserveAhead, and its merged requests. A cost that needs no booking, because it is 0
// or can never fit, is a take.
func (e *Engine) bookingOf(space []wire.Part, c *weir.Call) (q wire.Decision, merged []weir.Request, err error) {
	if err := weir.Kit.CheckAhead(*c); err != nil {
		return q, nil, err
	}
	if merged, err = enginekit.Merge(weir.OpReserveAhead, c.Requests); err != nil {
		return q, nil, err
	}
	parts, at, err := e.parts(space, merged, 0)
	if err != nil {
		return q, nil, err
	}
	if at.refused || merged[0].Cost == 0 {
		return asking(wire.OpTake, 1, parts, at), merged, nil
	}
	return wire.Decision{Op: wire.OpBook, Parts: parts, Longest: int64(max(c.Longest, 0) / time.Microsecond)}, merged, nil
}

// booked returns the answer to an OpReserveAhead that the script has decided.
func (e *Engine) booked(q wire.Decision, requests []weir.Request, c *weir.Call) (weir.Decision, *weir.Reservation) {
	d := answer(wire.OpTake, q.Parts, requests)
	if q.Op != wire.OpBook {
		return d, weir.Kit.Granted(e, time.Time{}, d, nothing, *c)
	}
	d.ResetAfter = 0 // a refused booking also waits for a cost that is the capacity
	for i := range q.Parts {
		d.ResetAfter = max(d.ResetAfter, q.Parts[i].Measure.ResetAfter)
	}
	d.LimitReset = allParts(q.Parts, requests)[d.LimitIndex].Measure.ResetAfter
	if !d.Allowed {
		return d, weir.Kit.Granted(e, time.Time{}, d, nothing, *c)
	}
	d.Delay = stored.Duration(q.Due - q.Now)
	booking := *c
	booking.Taken = []int64{q.Due * int64(time.Microsecond)}
	return d, weir.Kit.Granted(e, time.Time{}, d, func(ctx context.Context, n int64) error { return e.withdraw(ctx, q, n) }, booking)
}

func nothing(context.Context, int64) error { return nil }

// alone asks the script for one decision that no other verb makes.
func (e *Engine) alone(ctx context.Context, q wire.Decision) (wire.Decision, error) {
	s := calls.NewSubmission()
	s.One[0] = q
	s.Decisions = s.One[:]
	if err := e.calls.Ask(ctx, s); err != nil {
		return wire.Decision{}, err
	}
	return s.One[0], s.One[0].Err
}

// withdraw gives n units of a booking back.
func (e *Engine) withdraw(ctx context.Context, booked wire.Decision, n int64) error {
	if _, err := e.alone(ctx, booked.Withdrawal(n)); err != nil {
		return cannotDecide(wire.OpWithdraw.String(), err)
	}
	return nil
}
