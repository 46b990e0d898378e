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

// reserveAhead takes a request for the earliest instant at which it is admitted, in one call of the script.
func (e *Engine) reserveAhead(ctx context.Context, c weir.Call) (weir.Answer, error) {
	if err := weir.CheckAhead(c); err != nil {
		return weir.Answer{}, err
	}
	d, due, withdraw, err := e.takeAhead(ctx, max(c.Longest, 0), c.Requests)
	if err != nil {
		return weir.Answer{}, err
	}
	c.Taken = []int64{due * int64(time.Microsecond)}
	return weir.Answer{Decision: d, Reservation: weir.Granted(e, time.Time{}, d, withdraw, c)}, nil
}

// takeAhead also returns the booked instant, in us, and a function that gives units of the booking back.
func (e *Engine) takeAhead(ctx context.Context, longest time.Duration, requests []weir.Request) (d weir.Decision, due int64, withdraw func(context.Context, int64) error, err error) {
	requests, err = enginekit.Merge(weir.OpReserveAhead, requests)
	if err != nil {
		return d, 0, nil, err
	}
	if err := ctx.Err(); err != nil {
		return d, 0, nil, cannotDecide(wire.OpBook.String(), fault.Uncounted(fault.Cancelled, err))
	}
	parts, at, err := e.parts(nil, requests, 0)
	if err != nil {
		return d, 0, nil, err
	}
	if len(parts) == 0 || at.refused || requests[0].Cost == 0 {
		d, err := e.plain(ctx, wire.OpTake, requests)
		return d, 0, nothing, err
	}
	q, err := e.alone(ctx, wire.Decision{Op: wire.OpBook, Parts: parts, Longest: int64(longest / time.Microsecond)})
	if err != nil {
		return d, 0, nil, cannotDecide(wire.OpBook.String(), err)
	}
	d = answer(wire.OpTake, q.Parts, requests)
	d.ResetAfter = 0 // a refused booking also waits for a cost that is the capacity
	for i := range q.Parts {
		d.ResetAfter = max(d.ResetAfter, q.Parts[i].Measure.ResetAfter)
	}
	if !d.Allowed {
		return d, 0, nothing, nil
	}
	d.Delay = stored.Duration(q.Due - q.Now)
	return d, q.Due, func(ctx context.Context, n int64) error { return e.withdraw(ctx, q, n) }, nil
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
