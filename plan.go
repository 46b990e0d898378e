package weir

import "github.com/weirflow/weir/internal/algorithm"

// plan is the state as it will be when everyone in the line has gone, and when
// that is. It tells a newcomer how long it would wait, and is kept up to date as
// long as that is cheap: made anew it costs one decision for each who waits, and
// it is needed only where someone asks.
type plan struct {
	valid bool
	state algorithm.State
	at    int64
}

// tail is the planned state and the instant, not before now, from which on it
// holds.
func (p *plan) tail(l *line, now int64) (algorithm.State, int64) {
	if !p.valid || l.length == 0 { // what was taken since the line ran dry is not in the plan
		p.begin(l, now)
		for w := range l.order.all {
			p.add(l, w)
		}
		p.valid = true
	}
	return p.state, max(p.at, now)
}

func (p *plan) begin(l *line, now int64) {
	p.state, p.at = l.subject.state.Clone(), l.since
	if !algorithm.Planned(l.subject.algorithm) {
		p.at = max(p.at, now)
	}
}

// turn is the planned state before the turn of a newcomer: not the tail where
// its class goes before others.
func (l *line) turn(now int64, t Turn) (algorithm.State, int64) {
	if len(l.order.classes) == 1 {
		return l.plan.tail(l, now)
	}
	newcomer := &waiter{n: t.Cost, class: t.Class}
	l.order.push(newcomer)
	defer l.order.remove(newcomer)
	var p plan
	p.begin(l, now)
	for w := range l.order.all {
		if w == newcomer {
			break
		}
		p.add(l, w)
	}
	return p.state, max(p.at, now)
}

// extend plans one more at the end, where that is where it will go.
func (p *plan) extend(l *line, w *waiter) {
	if p.valid && len(l.order.classes) == 1 {
		p.add(l, w)
	} else {
		p.valid = false
	}
}

func (p *plan) add(l *line, w *waiter) {
	a := l.subject.algorithm
	if l.hopeless(w) {
		return
	}
	from := max(p.at, w.arrived)
	switch {
	case w.done == nil:
		p.at = max(from, w.told)
		from = w.spent(a)
	case algorithm.Planned(a):
		p.at = saturatingAdd(from, algorithm.Hold(a, p.state, from, w.n))
	default:
		from = saturatingAdd(from, a.Wait(p.state, from, w.n))
		p.at = from
	}
	p.state = a.Take(p.state, from, w.n)
}
