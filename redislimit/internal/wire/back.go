package wire

import (
	"math"

	"github.com/weirflow/weir/redislimit/internal/stored"
)

// Undos returns the undos of a take, as often as times says. Each part is undone at the instant when the script wrote
// it. That differs between parts only after a clock has run back.
func (d *Decision) Undos(times int64) (undos []Decision) {
	parts := d.Repeated(times)
	for i := range parts {
		if p := &parts[i]; p.Limit.Kind == stored.KindLeaky {
			p.past = &past{left: d.Parts[i].after(d.Now), told: p.Stored[5]}
		}
	}
	for i := range parts {
		if parts[i].wrote != parts[0].wrote {
			for i := range parts {
				alone := parts[i : i+1 : i+1]
				alone[0].Joins = false
				undos = append(undos, Decision{Op: OpUndo, Parts: alone, Now: alone[0].wrote, Sent: d.Sent, Late: true})
			}
			return undos
		}
	}
	return []Decision{{Op: OpUndo, Parts: parts, Now: parts[0].wrote, Sent: d.Sent, Late: true}}
}

// UndoOf returns the undo of a take by its identity, for a number of times its costs.
func (d *Decision) UndoOf(times int64) Decision {
	return Decision{Op: OpUndo, Parts: d.Repeated(times), Now: d.Now, Sent: d.Sent, Late: true, Identity: d.Identity}
}

// Settlements returns the undos of takes by their callers. taken has the instant of each request of the parts, in us. Parts
// with one value have one request.
func Settlements(parts []Part, taken []int64) (undos []Decision) {
	for len(parts) > 0 {
		n := 1
		for n < len(parts) && taken[parts[n].Request] == taken[parts[0].Request] {
			n++
		}
		undos = append(undos, Decision{Op: OpUndo, Parts: parts[:n:n], Now: taken[parts[0].Request]})
		parts = parts[n:]
	}
	return undos
}

// Wrote returns when an admitted take wrote the part, in us.
func (p *Part) Wrote() int64 { return p.wrote }

// Withdrawal returns the decision that gives n units of a booking back.
func (d *Decision) Withdrawal(n int64) Decision {
	parts := append([]Part(nil), d.Parts...)
	for i := range parts {
		p := &parts[i]
		p.booked(d.Now, d.Due, n)
		p.Cost = -n
	}
	return Decision{Op: OpWithdraw, Parts: parts, Due: d.Due, Now: d.Now}
}

// booked fills in the numbers of the state after the booking, and of the state after n of its units came back.
func (p *Part) booked(now, due, n int64) {
	l := p.Limit
	q := &past{bookedTo: [3]float64{math.Inf(1), 0, 0}} // the numbers of no state
	p.past = q
	s, ok := p.state()
	if !ok || !l.Fixed {
		return
	}
	s = l.Functions.Book(s, now, p.Cost, due-now)
	switch whole := n == p.Cost; {
	case l.Kind == stored.KindCycle:
		cycle := l.Functions.AppendNumbers(nil, s)
		q.bookedTo = [3]float64{float64(cycle[0]*l.Period + l.Origin), float64(cycle[1])}
		q.restored = [5]float64{p.Stored[0], p.Stored[1]}
		if !whole {
			q.restored = [5]float64{q.bookedTo[0], q.bookedTo[1] - float64(n)}
		}
	case whole:
		tat := p.tatOf(s)
		q.bookedTo = [3]float64{tat.Whole, tat.Rest, float64(due) + 0.5}
		q.restored = [5]float64{p.Stored[0], p.Stored[1], p.Stored[4], p.Stored[2], p.Stored[3]} // another rate may have written it
		if l.Kind == stored.KindLeaky {
			q.bookedTo[2], q.restored[2] = max(p.Stored[5], float64(due)), p.Stored[5]
		}
	}
}
