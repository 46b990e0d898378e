package redislimit

import (
	"context"
	"math"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// reserveAhead takes a request for the earliest instant at which it is admitted, in one call of the script.
func (e *Engine) reserveAhead(ctx context.Context, c weir.Call) (weir.Answer, error) {
	if err := weir.CheckAhead(c); err != nil {
		return weir.Answer{}, err
	}
	d, withdraw, err := e.takeAhead(ctx, max(c.Longest, 0), c.Requests)
	if err != nil {
		return weir.Answer{}, err
	}
	return weir.Answer{Decision: d, Reservation: weir.Granted(e, time.Time{}, d, withdraw, c)}, nil
}

// takeAhead also returns a function that gives units of the booking back.
func (e *Engine) takeAhead(ctx context.Context, longest time.Duration, requests []weir.Request) (weir.Decision, func(context.Context, int64) error, error) {
	requests, err := enginekit.Merge(weir.OpReserveAhead, requests)
	if err != nil {
		return weir.Decision{}, nil, err
	}
	if err := ctx.Err(); err != nil {
		return weir.Decision{}, nil, cannotDecide(opBook.String(), uncounted(Cancelled, err))
	}
	parts, at, err := e.parts(nil, requests, 0)
	if err != nil {
		return weir.Decision{}, nil, err
	}
	if len(parts) == 0 || at.refused || requests[0].Cost == 0 {
		d, err := e.plain(ctx, opTake, requests)
		return d, nothing, err
	}
	q, err := e.alone(ctx, decision{op: opBook, parts: parts, longest: int64(longest / time.Microsecond)})
	if err != nil {
		return weir.Decision{}, nil, cannotDecide(opBook.String(), err)
	}
	d := answer(opTake, q.parts, requests)
	d.ResetAfter = 0 // a refused booking also waits for a cost that is the capacity
	for i := range q.parts {
		d.ResetAfter = max(d.ResetAfter, q.parts[i].measure.ResetAfter)
	}
	if !d.Allowed {
		return d, nothing, nil
	}
	d.Delay = duration(q.due - q.now)
	return d, func(ctx context.Context, n int64) error { return e.withdraw(ctx, q, n) }, nil
}

func nothing(context.Context, int64) error { return nil }

// alone asks the script for one decision that no other verb makes.
func (e *Engine) alone(ctx context.Context, q decision) (decision, error) {
	s := &submission{done: make(chan struct{}, 1)}
	s.one[0] = q
	s.decisions = s.one[:]
	if err := e.ask(ctx, s); err != nil {
		return decision{}, err
	}
	return s.one[0], s.one[0].err
}

// withdraw gives n units of a booking back.
func (e *Engine) withdraw(ctx context.Context, booked decision, n int64) error {
	if _, err := e.alone(ctx, booked.withdrawal(n)); err != nil {
		return cannotDecide(opWithdraw.String(), err)
	}
	return nil
}

// withdrawal returns the decision that gives n units of a booking back.
func (d *decision) withdrawal(n int64) decision {
	parts := append([]part(nil), d.parts...)
	for i := range parts {
		p := &parts[i]
		p.booked(d.now, d.due, n)
		p.cost = -n
	}
	return decision{op: opWithdraw, parts: parts, due: d.due, now: d.now}
}

// booked fills in the numbers of the state after the booking, and of the state in which n of its units came back.
func (p *part) booked(now, due, n int64) {
	l := p.limit
	q := &past{bookedTo: [3]float64{math.Inf(1), 0, 0}} // the numbers of no state
	p.past = q
	s, ok := p.state()
	if !ok || l.kind.measured() {
		return
	}
	s = l.functions.Book(s, now, p.cost, due-now)
	switch whole := n == p.cost; {
	case l.kind == kindCycle:
		cycle := l.functions.AppendNumbers(nil, s)
		q.bookedTo = [3]float64{float64(cycle[0]*l.period + l.origin), float64(cycle[1])}
		q.restored = [5]float64{p.stored[0], p.stored[1]}
		if !whole {
			q.restored = [5]float64{q.bookedTo[0], q.bookedTo[1] - float64(n)}
		}
	case whole:
		tat := p.tatOf(s)
		q.bookedTo = [3]float64{tat.whole, tat.rest, float64(due) + 0.5}
		q.restored = [5]float64{p.stored[0], p.stored[1], p.stored[4], p.stored[2], p.stored[3]} // another rate may have written it
		if l.kind == kindLeaky {
			q.bookedTo[2], q.restored[2] = max(p.stored[5], float64(due)), p.stored[5]
		}
	}
}

// measureBooking computes what the script did not return: the state after a booking, or the wait until a refused one is
// admitted.
func (d *decision) measureBooking(now int64, withheld bool) {
	latest := int64(0)
	for i := range d.parts {
		p := &d.parts[i]
		own, ok := p.own(now)
		if !ok {
			d.err = d.misread(false)
			return
		}
		latest = max(latest, own)
		p.measure.Cost, p.measure.Capacity = p.cost, p.limit.capacity
		p.measureBooked(d, now, own)
	}
	fits := latest <= d.longest && d.space <= float64(now)
	exact := latest <= mostAhead // the script's numbers are not exact further ahead
	if !withheld && (fits != d.admitted || exact && now+latest != d.due) {
		d.err = d.misread(false)
	}
}

// own returns the time until the part's own instant.
func (p *part) own(now int64) (hold int64, ok bool) {
	if p.limit.kind.measured() {
		return int64(p.measure.Before / time.Microsecond), true
	}
	s, ok := p.state()
	if !ok {
		return 0, false
	}
	return p.limit.functions.Hold(s, now, p.cost), true
}

func (p *part) measureBooked(d *decision, now, own int64) {
	m := &p.measure
	m.Before, m.After = 0, 0
	if !d.admitted {
		m.Before = duration(max(own-d.longest, int64(d.space)-now, 0))
		m.After = m.Before
	}
	if p.limit.kind.measured() {
		return
	}
	f := p.limit.functions
	s, _ := p.state()
	if d.admitted {
		s = f.Book(s, now, p.cost, d.due-now)
	}
	m.Remaining, m.ResetAfter = f.Room(s, now), duration(f.ResetAfter(s, now))
}
