package redislimit

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/redislimit/internal/calls"
	"github.com/weirflow/weir/redislimit/internal/fault"
	"github.com/weirflow/weir/redislimit/internal/stored"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// Take admits the cost of all requests now, or of none.
func (e *Engine) Take(ctx context.Context, requests ...weir.Request) (d weir.Decision, err error) {
	if s := e.single(ctx, requests); s != nil {
		err = e.takeSingle(ctx, s, requests, &d)
		return d, err
	}
	return e.plain(ctx, wire.OpTake, requests)
}

// Most calls take one request under one limit. While many callers wait, their memory leaves the processor's caches, so
// such a take has a submission of its own kind, of which it writes and reads little.

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
