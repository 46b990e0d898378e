package weir

import "github.com/weirflow/weir/internal/table"

// cellSegment is an array of cells, probed linearly. One at least is not in use.
type cellSegment struct {
	slots []cell
	used  int
	depth uint8 // how many directory bits its hashes share
}

const (
	cellSlots    = 127 // of a segment, where hashes are as good as random
	minCellSlots = 4
)

// newCellSegment has room for so many cells and some more.
func newCellSegment(cells int, depth uint8) *cellSegment {
	return &cellSegment{slots: make([]cell, slotsForCells(cells)), depth: depth}
}

// slotsForCells is how many slots so many cells get. Segments are small or
// whole, so that whole ones can be used again.
func slotsForCells(cells int) int {
	n := roomForCells(cells)
	if n > cellSlots/2 && n < cellSlots {
		return cellSlots
	}
	return n
}

// roomForCells makes so many fill two of three slots.
func roomForCells(cells int) int { return max(minCellSlots, cells+cells/2+1) }

// full says that seven of eight slots are in use, or all but one.
func (s *cellSegment) full() bool { return s.used >= len(s.slots)-max(1, len(s.slots)/8) }

// find is where a hash is, or where it belongs.
func (s *cellSegment) find(h table.Hash) int {
	i := s.first(h)
	for s.slots[i].part != nil && s.slots[i].hash != h {
		i = s.after(i)
	}
	return i
}

// first is where the search for a hash begins: its upper half says how far into
// the segment.
func (s *cellSegment) first(h table.Hash) int {
	return int(uint64(h) >> 32 * uint64(len(s.slots)) >> 32)
}

func (s *cellSegment) after(i int) int {
	if i++; i < len(s.slots) {
		return i
	}
	return 0
}

// put is for a hash that is not there.
func (s *cellSegment) put(x cell) {
	s.slots[s.find(x.hash)] = x
	s.used++
}

// remove empties a slot, and moves those behind it that would not be found any
// more.
func (s *cellSegment) remove(gap int) {
	for i := s.after(gap); s.slots[i].part != nil; i = s.after(i) {
		if s.distance(s.first(s.slots[i].hash), i) >= s.distance(gap, i) {
			s.slots[gap] = s.slots[i]
			gap = i
		}
	}
	s.slots[gap] = cell{}
	s.used--
}

// distance is how many steps a search takes from one slot to another.
func (s *cellSegment) distance(from, to int) int {
	if to -= from; to >= 0 {
		return to
	}
	return to + len(s.slots)
}

func (s *cellSegment) all(yield func(*cell) bool) {
	for i := range s.slots {
		if x := &s.slots[i]; x.part != nil && !yield(x) {
			return
		}
	}
}
