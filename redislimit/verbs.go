package redislimit

import (
	"context"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/redislimit/internal/stored"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// KeepsDeadlines returns true: a call ends with its context or its Within, whatever the server does.
func (e *Engine) KeepsDeadlines() bool { return true }

// Clock returns the Clock of the options, by which layers around the engine go as well; nil if that is the server's.
func (e *Engine) Clock() func() int64 { return e.options.Clock }

// Do makes one call.
func (e *Engine) Do(ctx context.Context, c weir.Call) (a weir.Answer, err error) {
	if err := weir.Kit.CheckTaken(c); err != nil {
		return a, err
	}
	ctx, cancel := enginekit.Bound(ctx, &c)
	defer cancel()
	switch c.Op {
	case weir.OpTake:
		if c.Lease == 0 && c.Identity == "" {
			if s := e.single(ctx, c.Requests); s != nil {
				err = e.takeSingle(ctx, s, c.Requests, &a.Decision)
				return a, err
			}
		}
		return e.decide(ctx, wire.OpTake, c)
	case weir.OpTakeUpTo:
		return e.takeUpTo(ctx, c)
	case weir.OpReserve:
		return weir.Kit.Reserve(ctx, e, leased(c))
	case weir.OpReserveAhead:
		return e.reserveAhead(ctx, c)
	case weir.OpPeek:
		return e.decide(ctx, wire.OpPeek, c)
	case weir.OpReturn:
		if c.Taken != nil {
			a.Decision, err = e.undo(ctx, c)
			return a, asMade(c.Op, err)
		}
		return e.decide(ctx, wire.OpRecord, c)
	case weir.OpRecord:
		return e.decide(ctx, wire.OpRecord, c)
	case weir.OpReset:
		return e.decide(ctx, wire.OpReset, c)
	case weir.OpEach:
		if c.Each != nil {
			err = e.Each(ctx, c.Each.Calls, c.Each.Results)
		}
		return a, err
	}
	return a, weir.Kit.Unsupported(c.Op, "is unknown")
}

// Peek returns the answer that Take would give, without writing anything.
func (e *Engine) Peek(ctx context.Context, requests ...weir.Request) (weir.Decision, error) {
	return e.plain(ctx, wire.OpPeek, requests)
}

// Record counts the cost even if it does not fit.
func (e *Engine) Record(ctx context.Context, requests ...weir.Request) (weir.Decision, error) {
	return e.plain(ctx, wire.OpRecord, requests)
}

// Return gives units back.
func (e *Engine) Return(ctx context.Context, requests ...weir.Request) (weir.Decision, error) {
	a, err := e.decide(ctx, wire.OpRecord, weir.Call{Op: weir.OpReturn, Requests: requests})
	return a.Decision, err
}

// Reset clears the keys of the requests under their rules.
func (e *Engine) Reset(ctx context.Context, requests ...weir.Request) error {
	_, err := e.plain(ctx, wire.OpReset, requests)
	return err
}

// Reserve takes the requests and returns a reservation.
func (e *Engine) Reserve(ctx context.Context, requests ...weir.Request) (*weir.Reservation, error) {
	a, err := weir.Kit.Reserve(ctx, e, weir.Call{Op: weir.OpReserve, Requests: requests})
	return a.Reservation, err
}

// Check returns the limits of the rules that Redis cannot hold exactly.
func (e *Engine) Check(rules ...*weir.Rule) error {
	return enginekit.Check(rules, func(r *weir.Rule) error { return enginekit.Keep(r, stored.Compile).Err })
}
