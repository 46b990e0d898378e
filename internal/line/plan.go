package line

import (
	"slices"

	"github.com/weirflow/weir/internal/algorithm"
)

// plan is the state after the release of every waiter in the line, and the instant of that. It gives a newcomer its
// wait. It is updated on demand, at the price of one decision for each waiter that it does not cover.
//
// A late release of a strict limit can delay the later ones. A long line keeps its plan for a while all the same. The
// planned waits are then too short, but never too long, so no newcomer is refused wrongly. The plan begins again after
// one late release for every markEvery waiters, so a join costs about markEvery decisions at any length of the line.
//
// Under a bucket the costs add up, so most events cost one step. These cost one step for each caller in line, or behind the
// leaver: a departure before callers with other costs, and a Record or a change under another limit. A departure before equal
// costs takes up to markEvery steps there, or up to the units of a log or gate.
type plan struct {
	count int // waiters covered, from the head
	gone  int // covered waiters that were released since the plan began
	late  int // how many of those were late
	state algorithm.State
	at    int64
	// marks are earlier plans. When a waiter withdraws, the plan goes back to a mark and does not start again.
	marks []mark
}

// mark is the plan of the first count waiters, from the first one that the plan began with.
type mark struct {
	count int
	state algorithm.State
	at    int64
}

// markEvery is the number of waiters between marks, unless a state is large.
const markEvery = 64

// tail returns the planned state and the instant that it holds from, which is not before now.
func (l *line) tail(now int64) (algorithm.State, int64) {
	if from, ok := l.summable(); ok {
		if state, at := l.summed(from, l.queue.Units()); at < algorithm.Never {
			return state, max(at, now)
		}
	}
	if l.plan == nil {
		l.plan = new(plan)
	}
	l.plan.complete(l, now)
	return l.plan.state, max(l.plan.at, now)
}

func (p *plan) begin(l *line, now int64) {
	p.state, p.at = l.subject.State.Clone(), l.since
	if !l.subject.algorithm.Planned() {
		p.at = max(p.at, now)
	}
}

// drop discards the plan.
func (p *plan) drop() {
	if p == nil {
		return
	}
	clear(p.marks)
	*p = plan{marks: p.marks[:0]}
}

// complete covers the rest of the line. A plan that covers no waiter starts again, because it does not know the units
// taken since the line was empty.
func (p *plan) complete(l *line, now int64) {
	if p.count > 0 {
		for w := l.queue.FromEnd(l.length() - p.count); w != nil; w = w.Next() {
			p.add(l, w)
		}
		return
	}
	p.begin(l, now)
	bookings := l.bookings
	for w := range l.queue.All {
		for ; len(bookings) > 0 && p.yields(l, w, bookings[0]); bookings = bookings[1:] {
			p.book(l, bookings[0])
		}
		p.add(l, w)
	}
	for _, b := range bookings {
		p.book(l, b)
	}
}

// yields reports whether a waiter lets the first booking go first: it came earlier, or the waiter would take units that
// the booking needs at its promised instant. Later bookings then have theirs, too, because each was promised an instant
// behind the others. Limits that do not plan keep the order of arrival.
func (p plan) yields(l *line, w *Waiter, b *Booking) bool {
	a := l.subject.algorithm
	if w.Arrival > b.arrival || !a.Planned() {
		return w.Arrival > b.arrival
	}
	p.add(l, w) // to this copy
	return algorithm.AddSaturating(p.at, algorithm.UntilDue(a, p.state, p.at, b.Cost)) > b.promised
}

// served updates the plan before the release of the head of the line at an instant. w is nil for a booking.
func (p *plan) served(l *line, w *Waiter, at int64) {
	if p == nil || p.count == 0 {
		return
	}
	if l.subject.algorithm.Planned() {
		p.count--
		return
	}
	if len(l.bookings) > 0 || !l.single() {
		p.drop()
		return
	}
	p.count, p.gone = p.count-1, p.gone+1
	from := max(w.arrived, l.since)
	planned := algorithm.AddSaturating(from, l.subject.algorithm.Wait(l.subject.State, from, w.Cost))
	if planned < at {
		p.late++
	}
	ranBack := planned > at
	if p.count == 0 || p.late > p.count/markEvery || ranBack {
		p.drop()
		return
	}
	if len(p.marks) > 0 && p.marks[0].count < p.gone {
		p.marks = slices.Delete(p.marks, 0, 1)
	}
}

// withdrawn updates the plan before w withdraws. If all costs are equal and only they matter, this equals a withdrawal of
// the last waiter, so the plan of the waiters before that one stays.
func (p *plan) withdrawn(l *line, w *Waiter) {
	if p == nil {
		return
	}
	if l.subject.algorithm.Planned() || !l.single() || !l.inTurn() {
		p.drop()
		return
	}
	if p.count == 0 {
		return
	}
	keep := l.length() - 1
	for v := w.Next(); v != nil && l.smallest < l.largest; v = v.Next() {
		keep--
	}
	if p.count <= keep {
		return
	}
	for n := len(p.marks); n > 0; n-- {
		if m := &p.marks[n-1]; m.count-p.gone <= keep {
			p.count, p.state, p.at = m.count-p.gone, m.state.Clone(), m.at
			return
		}
		p.marks[n-1] = mark{}
		p.marks = p.marks[:n-1]
	}
	p.drop()
}

// hugeCost is a cost above which sums could overflow.
const hugeCost = 1 << 32

// summable reports whether the costs of the line add up under its limit, as of an instant.
func (l *line) summable() (from int64, ok bool) {
	s, head := l.subject, l.queue.First()
	if l.length() == 0 || l.ranBack || l.largest > min(hugeCost, s.algorithm.Capacity()) {
		return 0, false
	}
	if from = l.since; head != nil {
		from = max(from, head.arrived)
	}
	return from, s.algorithm.AddsUp(s.State, from, l.queue.Units()) && (len(l.bookings) == 0 || l.bookingsAddUp(from))
}

// summed plans in one step the release of the first waiters of a summable line, whose costs are units, or of all beside
// bookings.
func (l *line) summed(from, units int64) (state algorithm.State, at int64) {
	s, a := l.subject, l.subject.algorithm
	switch n := len(l.bookings); {
	case n > 0:
		all := l.promises()
		state = a.Take(s.State, from, all.units-all.since)
		return a.Take(state, all.full.spentAt(a), all.since+units-l.between), l.bookings[n-1].promised
	case units == 0:
		return s.State, l.since
	}
	return a.Take(s.State, from, units), algorithm.AddSaturating(from, algorithm.UntilDue(a, s.State, from, units))
}

// planBefore returns the planned state before the turn of a newcomer. It is not the tail if the newcomer's flow
// comes before others. Then the turn may come later than that: the waiters before it are not known to the unit, and not
// at all under a limit whose costs do not add up.
func (l *line) planBefore(now int64, t Turn) (algorithm.State, int64) {
	flow := l.flowFor(t.Flow)
	if l.single() && l.queue.Knows(flow) {
		return l.tail(now)
	}
	weight := l.owner.weight(flow, t.Weight)
	if from, ok := l.summable(); ok {
		if state, at := l.summed(from, l.queue.UnitsBefore(flow, weight)); at < algorithm.Never {
			return state, max(at, now)
		}
	}
	var p plan
	p.begin(l, now)
	return p.state, max(p.at, now)
}

// extends reports whether a newcomer, which has joined, is to be added at the end of the plan.
func (p *plan) extends(l *line) bool {
	if !l.single() {
		p.drop()
	}
	return p != nil && p.count > 0 && p.count == l.length()-1
}

func (p *plan) add(l *line, w *Waiter) {
	a := l.subject.algorithm
	p.count++
	if l.hopeless(w) {
		return
	}
	from := max(p.at, w.arrived)
	if a.Planned() {
		until := algorithm.UntilDue(a, p.state, from, w.Cost)
		p.at = algorithm.AddSaturating(from, until)
		from = a.SpendAt(p.state, from, until)
	} else {
		from = algorithm.AddSaturating(from, a.Wait(p.state, from, w.Cost))
		p.at = from
	}
	p.state = a.Take(p.state, from, w.Cost)
	if !a.Planned() && l.single() {
		p.mark()
	}
}

func (p *plan) book(l *line, b *Booking) {
	a := l.subject.algorithm
	p.count++
	p.at = max(p.at, b.promised)
	p.state = a.Take(p.state, b.spentAt(a), b.Cost)
}

// mark stores the plan so far. Marks of large states are farther apart, so that all marks take a few bytes per
// waiter.
func (p *plan) mark() {
	since := 0
	if n := len(p.marks); n > 0 {
		since = p.marks[n-1].count
	}
	if count := p.gone + p.count; count-since >= max(markEvery, p.state.Size()) {
		p.marks = append(p.marks, mark{count: count, state: p.state.Clone(), at: p.at})
	}
}

// spentAt returns when the units of a booking in line are taken: just before the promised one, so that no
// rounding to a nanosecond adds up.
func (b *Booking) spentAt(a algorithm.Algorithm) int64 {
	if a.Planned() {
		return b.promised - 1
	}
	return b.promised
}
