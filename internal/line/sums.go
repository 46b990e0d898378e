package line

import "math/bits"

// sums are the costs of a flow's waiters, in order of arrival, as a binary indexed tree: a cost is added or removed, and
// a sum is found, in a number of steps that grows with the logarithm of the waiters. A flow has them once they were
// asked for.
type sums struct {
	tree []int64 // from place 1 on
	used int     // places so far
}

// newSums returns the sums of a list of waiters, with room for as many again.
func newSums(first *Waiter, waiters int) *sums {
	s := &sums{tree: make([]int64, 2*waiters+16)}
	for w := first; w != nil; w = w.next {
		s.push(w)
	}
	return s
}

// push adds a waiter at the end, if there is room.
func (s *sums) push(w *Waiter) (ok bool) {
	if s.used == len(s.tree)-1 {
		return false
	}
	s.used++
	w.place = s.used
	s.add(w, w.n)
	return true
}

// add adds n to the cost of a waiter.
func (s *sums) add(w *Waiter, n int64) {
	for place := w.place; place < len(s.tree); place += place & -place {
		s.tree[place] += n
	}
}

// above returns the first sum that is above x. There is one.
func (s *sums) above(x int64) int64 {
	below := 0 // the last place whose sum is not above x
	for step := 1 << (bits.Len(uint(len(s.tree))) - 1); step > 0; step >>= 1 {
		if next := below + step; next < len(s.tree) && s.tree[next] <= x {
			below, x = next, x-s.tree[next]
		}
	}
	return s.to(below + 1)
}

// to returns the sum up to a place.
func (s *sums) to(place int) (sum int64) {
	for ; place > 0; place -= place & -place {
		sum += s.tree[place]
	}
	return sum
}

// unitsBefore returns the costs of the waiters that go before a newcomer of a flow.
func (o *order) unitsBefore(name Flow, weight int64) (units int64) {
	f := o.known(name)
	if f == nil {
		made := o.newFlow(name, weight)
		f = &made
	}
	start := Tag{f.start + f.units, f.weight}
	if f.first == nil {
		start.Units = f.startAt(o.virtual)
	}
	for _, g := range o.busy() {
		if g == f {
			units += f.units
		} else {
			units += g.unitsTo(start)
		}
	}
	return units
}

// unitsTo returns the costs of the waiters of f that start at a tag or before.
func (f *flow) unitsTo(t Tag) int64 {
	hi, lo := bits.Mul64(uint64(t.Units), uint64(f.weight))
	start, _ := bits.Div64(hi, lo, uint64(t.Weight))
	switch x := int64(start) - f.start; {
	case x < 0:
		return 0
	case x >= f.units || f.first == f.last:
		return f.units
	default:
		if f.sums == nil {
			f.sums = newSums(f.first, f.waiters)
		}
		return f.sums.above(x)
	}
}

// join counts a waiter that joined f.
func (f *flow) join(w *Waiter) {
	f.waiters++
	f.units += w.n
	if f.sums != nil && !f.sums.push(w) {
		f.sums = nil
	}
}

// part counts a waiter that left f.
func (f *flow) part(w *Waiter) {
	f.charge(w, -w.n)
	if f.waiters--; f.waiters == 0 {
		f.sums = nil
	}
}

// charge adds n to the cost of a waiter of f.
func (f *flow) charge(w *Waiter, n int64) {
	f.units += n
	if f.sums != nil {
		f.sums.add(w, n)
	}
}
