package fair

import "math/bits"

// flow is the waiters of one name, in order of arrival.
type flow[W any] struct {
	Flow
	List[W]
	weight        int64
	start, finish int64 // of the first waiter and of the last one served, in units; divided by the weight they are tags
	place         int   // in the heap
	units         int64 // the costs of the waiters
	sums          *sums // nil until they are asked for
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

// push adds a waiter at the end.
func (f *flow[W]) push(w W, n *Node[W]) {
	f.Push(w, n)
	n.in = f
	f.units += n.units()
	if f.sums != nil {
		n.place = f.sums.push(n.units())
		if n.place == 0 {
			f.sums = nil
		}
	}
}

// remove removes a waiter.
func (f *flow[W]) remove(n *Node[W]) {
	f.List.remove(n)
	n.in = nil
	f.units -= n.units()
	if f.sums != nil {
		f.sums.add(n.place, -n.units())
	}
	if f.first == nil {
		f.sums = nil
	}
}

// unitsTo returns the costs of the waiters of f that start at a tag or before.
func (f *flow[W]) unitsTo(t tag) int64 {
	hi, lo := bits.Mul64(uint64(t.units), uint64(f.weight))
	start, _ := bits.Div64(hi, lo, uint64(t.weight))
	switch x := int64(start) - f.start; {
	case x < 0:
		return 0
	case x >= f.units || f.first == f.last:
		return f.units
	default:
		if f.sums == nil {
			f.sum()
		}
		return f.sums.above(x)
	}
}

// sum makes the sums, with room for as many waiters again.
func (f *flow[W]) sum() {
	waiters := 0
	for range f.All {
		waiters++
	}
	f.sums = newSums(2 * waiters)
	for n := f.first; n != nil; n = n.next {
		n.place = f.sums.push(n.units())
	}
}
