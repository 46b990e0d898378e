package line

import "github.com/weirflow/weir/internal/algorithm"

// plan is the state as it will be when everyone in the line has gone, and when
// that is. It tells a newcomer how long it would wait. It is brought up to date
// when someone asks, at the price of one decision for each waiter that it does
// not cover.
type plan struct {
	count int // waiters covered, from the head on
	state algorithm.State
	at    int64
	// marks are plans on the way. When a waiter withdraws, the plan goes back to
	// one and does not start again.
	marks    []mark
	fromMark bool // state and at are those of the last mark
}

// mark is the plan of the first count waiters.
type mark struct {
	count int
	state algorithm.State
	at    int64
}

// markEvery is the distance of marks in waiters, unless a state is larger.
const markEvery = 64

// tail returns the planned state and the instant, not before now, from which on it
// holds.
func (p *plan) tail(l *line, now int64) (algorithm.State, int64) {
	if state, at, ok := l.summed(); ok {
		return state, max(at, now)
	}
	p.complete(l, now)
	return p.state, max(p.at, now)
}

func (p *plan) begin(l *line, now int64) {
	p.state, p.at = l.subject.State.Clone(), l.since
	if !algorithm.Planned(l.subject.algorithm) {
		p.at = max(p.at, now)
	}
}

// drop forgets the plan.
func (p *plan) drop() {
	clear(p.marks)
	*p = plan{marks: p.marks[:0]}
}

// complete covers the rest of the line. A plan that covers nobody begins again:
// it does not know what was taken since the line ran dry.
func (p *plan) complete(l *line, now int64) {
	if p.fromMark {
		m := p.marks[len(p.marks)-1]
		p.state, p.at, p.fromMark = m.state.Clone(), m.at, false
	}
	if p.count == 0 {
		p.begin(l, now)
		for w := range l.order.all {
			p.add(l, w)
		}
		return
	}
	for w := l.order.fromEnd(l.length - p.count); w != nil; w = w.next {
		p.add(l, w)
	}
}

// served follows a waiter that was let go. A planned one went as it was planned.
func (p *plan) served(l *line) {
	if !algorithm.Planned(l.subject.algorithm) {
		p.drop()
	} else {
		p.count = max(p.count-1, 0)
	}
}

// withdrawn follows w, which is about to withdraw. Where only the costs matter,
// this is the same as if the last waiter of its run withdrew: the plan of those
// before that one stays.
func (p *plan) withdrawn(l *line, w *Waiter) {
	if algorithm.Planned(l.subject.algorithm) || len(l.order.classes) > 1 || !l.inTurn() {
		p.drop()
		return
	}
	keep := l.length - 1 - l.behind(w.run)
	if p.count <= keep {
		return
	}
	for n := len(p.marks); n > 0; n-- {
		if m := &p.marks[n-1]; m.count <= keep {
			p.count, p.fromMark = m.count, true
			return
		}
		p.marks[n-1] = mark{}
		p.marks = p.marks[:n-1]
	}
	p.drop()
}

// planBefore returns the planned state before the turn of a newcomer: not the tail
// where its class goes before others.
func (l *line) planBefore(now int64, t Turn) (algorithm.State, int64) {
	if len(l.order.classes) == 1 {
		return l.plan.tail(l, now)
	}
	newcomer := &Waiter{n: t.Cost, class: t.Class}
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
func (p *plan) extend(l *line, w *Waiter) {
	switch {
	case len(l.order.classes) > 1:
		p.drop()
	case p.count > 0 && p.count == l.length-1 && !p.fromMark:
		p.add(l, w)
	}
}

func (p *plan) add(l *line, w *Waiter) {
	a := l.subject.algorithm
	p.count++
	if l.hopeless(w) {
		return
	}
	from := max(p.at, w.arrived)
	switch {
	case w.isBooking():
		p.at = max(from, w.promised)
		from = w.spentAt(a)
	case algorithm.Planned(a):
		p.at = algorithm.AddSaturating(from, algorithm.Hold(a, p.state, from, w.n))
	default:
		from = algorithm.AddSaturating(from, a.Wait(p.state, from, w.n))
		p.at = from
	}
	p.state = a.Take(p.state, from, w.n)
	if !algorithm.Planned(a) && len(l.order.classes) == 1 {
		p.mark()
	}
}

// mark notes the plan so far. Marks of large states are as far apart as these
// are large, so all marks take at most a few bytes for each waiter.
func (p *plan) mark() {
	since := 0
	if n := len(p.marks); n > 0 {
		since = p.marks[n-1].count
	}
	if p.count-since >= max(markEvery, cap(p.state.Log)) {
		p.marks = append(p.marks, mark{count: p.count, state: p.state.Clone(), at: p.at})
	}
}
