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
