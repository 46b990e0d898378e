package redislimit

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// turnTaker is the engine of a caller in line.
type turnTaker struct {
	*Engine
	ticket *ticket
}

func (e turnTaker) Take(ctx context.Context, requests ...weir.Request) (weir.Decision, error) {
	return e.ticket.take(ctx, requests)
}

// Reserve takes the requests if it is the caller's turn. Otherwise the caller stands in line.
func (t *ticket) Reserve(ctx context.Context, requests ...weir.Request) (*weir.Reservation, error) {
	r, err := weir.Reserve(ctx, turnTaker{t.stand.engine, t}, requests...)
	if err == nil && r.Decision.Allowed {
		t.gone()
	}
	return r, err
}

func (t *ticket) take(ctx context.Context, requests []weir.Request) (weir.Decision, error) {
	e := t.stand.engine
	merged, err := enginekit.Merge(enginekit.Take, requests)
	if err != nil {
		return weir.Decision{}, err
	}
	if err := ctx.Err(); err != nil {
		return weir.Decision{}, cannotDecide(opTake.String(), uncounted(Cancelled, err))
	}
	parts, at, err := e.parts(nil, merged)
	if err == nil {
		err = cmp.Or(checkLeases(opTake, parts, merged), tooMuch(opTake, parts))
	}
	if err != nil {
		return weir.Decision{}, err
	}
	if at.refused || !at.oneLane {
		return t.decide(ctx, requests)
	}
	q, err := e.alone(ctx, decision{op: opTake, parts: parts, line: t.turn()})
	if err == errCrossing {
		return t.decide(ctx, requests)
	} else if err != nil {
		return weir.Decision{}, t.failed(cannotDecide(opTake.String(), err))
	}
	d := answer(opTake, q.parts, merged)
	t.answered(q.line, d)
	return d, nil
}

// decide takes without a line, which the engine can no longer keep.
func (t *ticket) decide(ctx context.Context, requests []weir.Request) (weir.Decision, error) {
	d, err := t.stand.engine.decide(ctx, opTake, requests)
	t.answered(&inLine{hears: deaf, known: true}, d)
	return d, err
}

// turn returns what the ticket asks its lines.
func (t *ticket) turn() *inLine {
	s := t.stand
	all := &s.engine.standing
	all.mu.Lock()
	defer all.mu.Unlock()
	q := s.in(lineTurn, t)
	q.hears = s.hears()
	t.called, t.next = false, time.Now().Add(longestSleep)
	return q
}

func (s *stand) in(what int, t *ticket) *inLine {
	q := &inLine{what: what, keys: s.lines, process: s.engine.standing.process, asks: s.asks, ticket: t.number, oldest: t.number}
	if s.tickets.Len() > 0 {
		q.oldest = s.first().number
	}
	return q
}

// failed notes that the ticket may be in line, if Redis may have made the decision.
func (t *ticket) failed(err error) error {
	all := &t.stand.engine.standing
	all.mu.Lock()
	defer all.mu.Unlock()
	t.inside = t.inside || weir.MayHaveCounted(err)
	return err
}

// answered plans the next question of a refused caller. If Redis has lost the line, all callers of the stand enter it
// again.
func (t *ticket) answered(q *inLine, d weir.Decision) {
	all := &t.stand.engine.standing
	all.mu.Lock()
	defer all.mu.Unlock()
	if d.Allowed || t.element == nil {
		return
	}
	lost := t.inside && !q.known
	t.inside = !math.IsInf(q.ahead, 1)
	t.leads = q.ahead == 0
	t.refusals++
	t.next = time.Now().Add(q.hears.pause(t.refusals, d.RetryAfter))
	if !lost {
		return
	}
	for e := t.stand.tickets.Front(); e != nil; e = e.Next() {
		if other := e.Value.(*ticket); other != t && other.inside {
			other.inside = false
			other.call()
		}
	}
}
