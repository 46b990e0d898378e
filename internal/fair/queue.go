// Package fair orders waiting callers: a Queue lets flows share by weight, and a Heap holds what has a rank.
package fair

import "math/bits"

// Queue chooses the next waiter: by arrival within a flow, and between flows by weighted fairness. It is start-time
// fair queueing (Goyal, Vin and Cheng, 1996). A waiter starts, in virtual time, when the waiter before it in its flow
// has been served its cost divided by the weight; the earliest start comes first, and of equal ones the earliest
// arrival. With one flow this is the order of arrival.
//
// A flow is made when its first waiter joins, and forgotten when it is indistinguishable from a new one. The zero value is
// an empty queue.
type Queue[W any] struct {
	own     flow[W]     // the first flow, with the queue, because most queues have no other; its weight is 0 until it is made
	several *several[W] // nil while there is no other flow
	virtual tag         // the start of the waiter served last
	length  int
	units   int64 // the costs of the waiters
}

// several is the flows of a queue that has had more than one, with the first.
type several[W any] struct {
	flows   map[Flow]*flow[W]
	waiting Heap[*flow[W]] // the flows that have a waiter
	sweepAt int            // at this number of flows it looks for forgettable ones
}

// Flow names the waiters that share with other flows by weight: by a name, or by a class if the name is empty.
type Flow struct {
	Class int
	Name  string
}

const (
	// MaxWeight is the largest weight.
	MaxWeight = 1 << 10

	fairUnits  = 1 << 40 // larger costs count as this, so that tags fit
	farthest   = 1 << 49 // virtual time begins again beyond it, so that tags fit for every weight
	firstSweep = 64
)

// Len returns the number of waiters.
func (q *Queue[W]) Len() int { return q.length }

// Units returns the costs of the waiters.
func (q *Queue[W]) Units() int64 { return q.units }

// Single reports whether the queue has had one flow at most, so that all waiters go in order of arrival.
func (q *Queue[W]) Single() bool { return q.several == nil }

// Own returns the name of the first flow.
func (q *Queue[W]) Own() Flow { return q.own.Flow }

// Knows reports whether a flow is not forgotten.
func (q *Queue[W]) Knows(name Flow) bool { return q.known(name) != nil }

// First returns the next waiter, or the zero value of an empty queue.
func (q *Queue[W]) First() (w W) {
	switch {
	case q.several == nil:
		return q.own.first.get()
	case q.several.waiting.Len() > 0:
		return q.several.waiting.First().first.get()
	}
	return w
}

// FromEnd returns the k-th waiter from the end of the only flow, or the zero value for 0.
func (q *Queue[W]) FromEnd(k int) W {
	var n *Node[W]
	for ; k > 0; k-- {
		if n == nil {
			n = q.own.last
		} else {
			n = n.previous
		}
	}
	return n.get()
}

// Push adds a waiter at the end of a flow. n is its node, which has its cost and arrival. The first waiter of a flow chooses
// its weight, 1 to MaxWeight.
func (q *Queue[W]) Push(w W, n *Node[W], name Flow, weight int64) {
	f := q.flowOf(name, weight)
	if f.first == nil {
		f.start = f.startAt(q.virtual)
	}
	f.Push(w, n)
	n.in = f
	f.units += n.units()
	q.length, q.units = q.length+1, q.units+n.units()
	q.rank(f)
}

// Serve removes a waiter that goes, and charges its flow.
func (q *Queue[W]) Serve(n *Node[W]) {
	f := n.in
	q.virtual = f.tag(f.start)
	f.start += n.units()
	f.finish = f.start
	q.Remove(n)
	if f.finish > farthest*f.weight {
		q.rebase()
	}
}

// Withdraw removes a waiter without charging its flow; later waiters move up. Beside other flows, the next one takes over
// the arrival of the first of a flow, and so its place.
func (q *Queue[W]) Withdraw(n *Node[W]) {
	if n.previous == nil && n.next != nil && q.several != nil {
		n.next.Arrival = n.Arrival
	}
	q.Remove(n)
}

// Remove removes a waiter without charging its flow; later waiters move up and keep their arrivals.
func (q *Queue[W]) Remove(n *Node[W]) {
	f := n.in
	f.remove(n)
	n.in = nil
	f.units -= n.units()
	q.length, q.units = q.length-1, q.units-n.units()
	q.rank(f)
}

// rank puts f where it belongs among the flows that have a waiter.
func (q *Queue[W]) rank(f *flow[W]) {
	switch {
	case q.several == nil:
	case f.first == nil:
		q.several.waiting.Remove(f)
	default:
		q.several.waiting.Put(f)
	}
}

// flowOf returns the flow of a name, and makes it if needed.
func (q *Queue[W]) flowOf(name Flow, weight int64) *flow[W] {
	if f := q.known(name); f != nil {
		return f
	}
	if q.own.weight == 0 {
		q.own = flow[W]{Flow: name, weight: weight, place: -1}
		return &q.own
	}
	if q.several == nil {
		q.several = &several[W]{flows: map[Flow]*flow[W]{q.own.Flow: &q.own}, waiting: newFlows[W](), sweepAt: firstSweep}
		if q.own.first != nil {
			q.rank(&q.own)
		}
	}
	q.several.forget(q.virtual)
	f := &flow[W]{Flow: name, weight: weight, place: -1}
	q.several.flows[name] = f
	return f
}

// known returns the flow of a name, or nil.
func (q *Queue[W]) known(name Flow) *flow[W] {
	switch {
	case q.several != nil:
		return q.several.flows[name]
	case q.own.weight != 0 && q.own.Flow == name:
		return &q.own
	}
	return nil
}

// forget drops flows without a waiter whose service ended before virtual time: a new flow would start where they do.
func (s *several[W]) forget(virtual tag) {
	if len(s.flows) < s.sweepAt {
		return
	}
	for name, f := range s.flows {
		if f.first == nil && !virtual.before(f.tag(f.finish)) {
			delete(s.flows, name)
		}
	}
	s.sweepAt = max(firstSweep, 2*len(s.flows))
}

// rebase moves virtual time back to less than 1, long before it overflows.
func (q *Queue[W]) rebase() {
	whole := q.virtual.units / q.virtual.weight
	q.virtual.units -= whole * q.virtual.weight
	if q.several == nil {
		q.own.back(whole)
		return
	}
	for _, f := range q.several.flows {
		f.back(whole)
	}
}

// All yields the waiters, flow by flow, those of a flow in order of arrival.
func (q *Queue[W]) All(yield func(W) bool) {
	for _, f := range q.busy() {
		for w := range f.All {
			if !yield(w) {
				return
			}
		}
	}
}

// Ahead yields the waiters in the order that they go if none joins or leaves.
func (q *Queue[W]) Ahead(yield func(W) bool) {
	if q.several == nil {
		q.own.All(yield)
		return
	}
	heads := NewHeap(func(a, b *head[W]) bool {
		s, t := a.tag(a.start), b.tag(b.start)
		return s.before(t) || !t.before(s) && a.next.Arrival < b.next.Arrival
	}, func(h *head[W]) *int { return &h.place })
	for _, f := range q.busy() {
		heads.Put(&head[W]{flow: f, next: f.first, start: f.start, place: -1})
	}
	for heads.Len() > 0 {
		h := heads.Pop()
		if !yield(h.next.waiter) {
			return
		}
		h.start += h.next.units()
		if h.next = h.next.next; h.next != nil {
			heads.Put(h)
		}
	}
}

// head is the next waiter of a flow, after those that Ahead has yielded.
type head[W any] struct {
	*flow[W]
	next  *Node[W]
	start int64
	place int
}

// Firsts yields the first waiter of each flow, in no particular order.
func (q *Queue[W]) Firsts(yield func(W) bool) {
	for _, f := range q.busy() {
		if !yield(f.first.waiter) {
			return
		}
	}
}

// UnitsBefore returns the costs of the waiters that go before a newcomer of a flow, or fewer: beside other flows, less than
// one cost of each is missing. Together, all costs are below 1<<52.
func (q *Queue[W]) UnitsBefore(name Flow, weight int64) (units int64) {
	newcomer := q.startOf(name, weight)
	for _, f := range q.busy() {
		units += f.unitsTo(newcomer)
	}
	return units
}

// startOf returns the start of a newcomer of a flow.
func (q *Queue[W]) startOf(name Flow, weight int64) tag {
	f := q.known(name)
	switch {
	case f == nil:
		return tag{q.virtual.in(weight), weight}
	case f.first == nil:
		return f.tag(f.startAt(q.virtual))
	}
	return f.tag(f.start + f.units)
}

// busy returns the flows that have a waiter.
func (q *Queue[W]) busy() []*flow[W] {
	switch {
	case q.several != nil:
		return q.several.waiting.All()
	case q.own.first != nil:
		return []*flow[W]{&q.own}
	}
	return nil
}

// flow is the waiters of one name, in order of arrival.
type flow[W any] struct {
	Flow
	List[W]
	weight        int64
	start, finish int64 // start of the first waiter and finish of the last one served, in units; divided by the weight they are tags
	place         int   // in the heap
	units         int64 // the costs of the waiters
}

// newFlows returns an empty heap of flows, by the start of their first waiters, and then by their arrival.
func newFlows[W any]() Heap[*flow[W]] {
	return NewHeap(func(f, g *flow[W]) bool {
		a, b := f.tag(f.start), g.tag(g.start)
		return a.before(b) || !b.before(a) && f.first.Arrival < g.first.Arrival
	}, func(f *flow[W]) *int { return &f.place })
}

// tag returns the virtual time of units of f.
func (f *flow[W]) tag(units int64) tag { return tag{units, f.weight} }

// startAt returns the start of a waiter that joins the empty flow: virtual time, rounded up, or the end of the flow's
// service if that is later.
func (f *flow[W]) startAt(virtual tag) int64 { return max(virtual.in(f.weight), f.finish) }

// back moves f back in virtual time.
func (f *flow[W]) back(whole int64) {
	f.start, f.finish = max(f.start-whole*f.weight, 0), max(f.finish-whole*f.weight, 0)
}

// unitsTo returns the costs of the waiters of f that start at a tag or before, or fewer by less than the last of these costs.
func (f *flow[W]) unitsTo(t tag) int64 {
	hi, lo := bits.Mul64(uint64(t.units), uint64(f.weight))
	start, _ := bits.Div64(hi, lo, uint64(t.weight))
	if int64(start) < f.start {
		return 0
	}
	return min(max(int64(start)-f.start+1, f.first.units()), f.units)
}

// Node is the place of a waiter in a Queue. The waiter holds it, so that a place takes no memory of its own.
type Node[W any] struct {
	Cost    int64  // charged to its flow when it is served
	Arrival uint64 // decides between equal starts of different flows

	waiter         W
	in             *flow[W] // nil if it is in no queue
	previous, next *Node[W]
}

// Queued reports whether the waiter is in a queue.
func (n *Node[W]) Queued() bool { return n.in != nil }

// Next returns the next waiter of the same flow or list, or the zero value.
func (n *Node[W]) Next() W { return n.next.get() }

// get returns the waiter, or the zero value for nil.
func (n *Node[W]) get() (w W) {
	if n != nil {
		w = n.waiter
	}
	return w
}

// units returns the units that the flow is charged.
func (n *Node[W]) units() int64 { return min(n.Cost, fairUnits) }

// List is waiters in order. Each is in no other list and no queue.
type List[W any] struct{ first, last *Node[W] }

// Push adds a waiter at the end.
func (l *List[W]) Push(w W, n *Node[W]) {
	n.waiter, n.previous, n.next = w, l.last, nil
	if l.last == nil {
		l.first = n
	} else {
		l.last.next = n
	}
	l.last = n
}

// All yields the waiters. The loop may remove the one that it has.
func (l *List[W]) All(yield func(W) bool) {
	for n := l.first; n != nil; {
		next := n.next
		if !yield(n.waiter) {
			return
		}
		n = next
	}
}

// remove removes a waiter of the list.
func (l *List[W]) remove(n *Node[W]) {
	if n.previous == nil {
		l.first = n.next
	} else {
		n.previous.next = n.next
	}
	if n.next == nil {
		l.last = n.previous
	} else {
		n.next.previous = n.previous
	}
	n.previous, n.next = nil, nil
}
