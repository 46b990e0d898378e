package redislimit

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// Most calls take one request under one limit. While many callers wait, their memory leaves the processor's caches, so
// such a take has a submission of its own kind, of which it writes and reads little.

// newSingle returns a submission for such a take. Every take writes the limit, the key, the lane and the cost of its
// part. The rest is as here, or as the answer to another such take left it.
func newSingle() any {
	s := &submission{done: make(chan struct{}, 1), composed: composed{verb: opTake, asked: true}}
	s.one[0] = decision{op: opTake, parts: s.few[:1]}
	s.decisions = s.one[:]
	return s
}

// single prepares such a take. It returns nil for other calls, and for those that are refused.
func (e *Engine) single(ctx context.Context, requests []weir.Request) *submission {
	if len(requests) != 1 || ctx.Err() != nil {
		return nil
	}
	if _, err := enginekit.Merge(weir.OpTake, requests); err != nil {
		return nil
	}
	q := &requests[0]
	l := enginekit.Keep(q.Rule, compile).single
	if l == nil || q.Cost > l.capacity {
		return nil
	}
	s, lane := e.singles.Get().(*submission), e.keys.laneOf(q)
	s.name = e.keys.append(s.name[:0], lane, l.state, q.Key)
	p := &s.few[0]
	p.limit, p.key, p.lane, p.cost = l, rueidis.BinaryString(s.name), lane, q.Cost
	return s
}

// takeSingle makes the prepared take.
func (e *Engine) takeSingle(ctx context.Context, s *submission, requests []weir.Request, d *weir.Decision) error {
	if err := e.ask(ctx, s); err != nil {
		return cannotDecide(opTake.String(), opTake.uncounted(err))
	}
	if err := s.one[0].err; err != nil { // the next such take needs another submission
		if err == errCrossing {
			*d, err = e.apart(ctx, s, requests)
			return err
		}
		return cannotDecide(opTake.String(), err)
	}
	*d = s.composed.answer
	d.Rule, d.Key = requests[0].Rule.Name(), requests[0].Key
	s.ctx, s.decided = nil, 0
	s.state.Store(open)
	e.singles.Put(s)
	return nil
}

// apart decides the take of s in the way of several lanes.
func (e *Engine) apart(ctx context.Context, s *submission, requests []weir.Request) (weir.Decision, error) {
	_, d, err := e.across(ctx, opTake, s.one[0], "", requests)
	return d, err
}
