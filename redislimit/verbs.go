package redislimit

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/redislimit/internal/calls"
	"github.com/weirflow/weir/redislimit/internal/fault"
	"github.com/weirflow/weir/redislimit/internal/stored"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// KeepsDeadlines returns true: a call ends with its context or its Within, even if the server hangs.
func (e *Engine) KeepsDeadlines() bool { return true }

// Clock returns the Clock of the options, which layers around the engine use, too; nil for the server's clock.
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
		return weir.Kit.Reserve(ctx, e, c)
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

// Take admits the cost of all requests now, or of none.
func (e *Engine) Take(ctx context.Context, requests ...weir.Request) (d weir.Decision, err error) {
	if s := e.single(ctx, requests); s != nil {
		err = e.takeSingle(ctx, s, requests, &d)
		return d, err
	}
	return e.plain(ctx, wire.OpTake, requests)
}

// Most calls take one request under one limit. While many callers wait, their memory leaves the processor's caches, so
// such a take has its own kind of submission, and touches little of it.

// newSingle returns a submission for such a take. Every take writes the limit, the key, the lane and the cost of its
// part. The rest is as here, or as the answer to another such take left it.
func newSingle() any {
	s := calls.NewSubmission()
	s.Composed = calls.Composed{Verb: wire.OpTake, Asked: true}
	s.One[0] = wire.Decision{Op: wire.OpTake, Parts: s.Few[:1]}
	s.Decisions = s.One[:]
	return s
}

// single prepares such a take. It returns nil for other calls, and for those that are refused.
func (e *Engine) single(ctx context.Context, requests []weir.Request) *calls.Submission {
	if len(requests) != 1 || ctx.Err() != nil {
		return nil
	}
	if _, err := enginekit.Merge(weir.OpTake, requests); err != nil {
		return nil
	}
	q := &requests[0]
	l := enginekit.Keep(q.Rule, stored.Compile).Single
	if l == nil || q.Cost > l.Capacity {
		return nil
	}
	s, lane := e.singles.Get().(*calls.Submission), e.keys.LaneOf(q)
	s.Name = e.keys.Append(s.Name[:0], lane, l.State, q.Key)
	p := &s.Few[0]
	p.Limit, p.Key, p.Lane, p.Cost = l, rueidis.BinaryString(s.Name), lane, q.Cost
	return s
}

// takeSingle makes the prepared take.
func (e *Engine) takeSingle(ctx context.Context, s *calls.Submission, requests []weir.Request, d *weir.Decision) error {
	if err := e.calls.Ask(ctx, s); err != nil {
		return cannotDecide(wire.OpTake.String(), peekUncounted(wire.OpTake, err))
	}
	if err := s.One[0].Err; err != nil { // the next such take needs another submission
		if err == fault.ErrCrossing {
			*d, err = e.apart(ctx, s, requests)
			return err
		}
		return cannotDecide(wire.OpTake.String(), err)
	}
	*d = s.Composed.Answer
	d.Rule, d.Key = requests[0].Rule.Name(), requests[0].Key
	s.Clear()
	e.singles.Put(s)
	return nil
}

// apart decides the take of s in the way of several lanes.
func (e *Engine) apart(ctx context.Context, s *calls.Submission, requests []weir.Request) (weir.Decision, error) {
	_, d, err := e.across(ctx, wire.OpTake, s.One[0], "", requests, nil)
	return d, err
}

// observe passes a call to Options.Observe.
func (e *Engine) observe(ctx context.Context, began time.Time, submissions []*calls.Submission, b *wire.Batch, received int, err error) {
	call := ScriptCall{Began: began, Took: time.Since(began), Keys: len(b.Keys), Sent: len(b.Args) + len(b.Spent), Received: received}
	for _, key := range b.Keys {
		call.Sent += len(key)
	}
	for _, s := range submissions {
		call.Decisions += len(s.Decisions) - s.Decided
		if s.Ctx != nil {
			call.Callers = append(call.Callers, s.Ctx)
		}
	}
	if err != nil {
		call.Outcome, call.Err = Reason(fault.Of(err).Reason), err
	}
	e.options.Observe(ctx, call)
}
