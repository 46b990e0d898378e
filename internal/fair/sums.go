package fair

import "math/bits"

// sums are the costs of a flow's waiters, in order of arrival, as a binary indexed tree: a cost is added or removed, and
// a sum is found, in a number of steps that grows with the logarithm of the waiters. A flow has them once they were
// asked for.
type sums struct {
	tree []int64 // from place 1 on
	used int     // places so far
}

// newSums returns sums with room for a number of costs.
func newSums(costs int) *sums { return &sums{tree: make([]int64, costs+16)} }

// push adds a cost at the end and returns its place, or 0 if there is no room.
func (s *sums) push(cost int64) (place int) {
	if s.used == len(s.tree)-1 {
		return 0
	}
	s.used++
	s.add(s.used, cost)
	return s.used
}

// add adds n to the cost at a place.
func (s *sums) add(place int, n int64) {
	for ; place < len(s.tree); place += place & -place {
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
