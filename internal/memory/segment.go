package memory

import (
	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/rule"
	"github.com/weirflow/weir/internal/table"
)

// segment is an array of cells, probed linearly. At least one slot is empty.
type segment struct {
	cells  []cell
	rarely []rarely // of the same slots; nil if all are zero
	used   int
	depth  uint8 // the number of directory bits that its hashes share
}

const (
	fullSlots = 127 // in a segment, for hashes as good as random
	minSlots  = 4
)

// newSegment returns a segment with room for n cells and some more.
func newSegment(n int, depth uint8) *segment {
	return &segment{cells: make([]cell, slotsFor(n)), depth: depth}
}

// slotsFor returns the number of slots for n cells. Segments are small or of full size, so that full-size ones can be
// reused.
func slotsFor(n int) int {
	slots := roomFor(n)
	if slots > fullSlots/2 && slots < fullSlots {
		return fullSlots
	}
	return slots
}

// roomFor returns the slots that n cells fill to two thirds.
func roomFor(n int) int { return max(minSlots, n+n/2+1) }

// full reports whether seven eighths of the slots are in use, or all but one.
func (s *segment) full() bool { return s.used >= len(s.cells)-max(1, len(s.cells)/8) }

// find returns the slot of a hash, or the empty slot where it belongs.
func (s *segment) find(h table.Hash) int {
	i := s.first(h)
	for s.cells[i].part != nil && s.cells[i].hash != h {
		i = s.after(i)
	}
	return i
}

// first returns the slot where the search for a hash begins, from the upper half of the hash.
func (s *segment) first(h table.Hash) int {
	return int(uint64(h) >> 32 * uint64(len(s.cells)) >> 32)
}

func (s *segment) after(i int) int {
	if i++; i < len(s.cells) {
		return i
	}
	return 0
}

// put adds a cell whose hash is not in the segment. It returns the bytes that this allocated.
func (s *segment) put(h table.Hash, p *rule.Part, state algorithm.State) (bytes int) {
	i := s.find(h)
	s.cells[i].hash = h
	s.used++
	return s.set(i, p, state)
}

// remove empties a slot and moves later cells that a search would miss.
func (s *segment) remove(gap int) {
	for i := s.after(gap); s.cells[i].part != nil; i = s.after(i) {
		if s.distance(s.first(s.cells[i].hash), i) >= s.distance(gap, i) {
			s.move(gap, i)
			gap = i
		}
	}
	s.cells[gap] = cell{}
	s.used--
}

func (s *segment) move(to, from int) {
	s.cells[to] = s.cells[from]
	if s.rarely != nil {
		s.rarely[to] = s.rarely[from]
	}
}

// distance returns the number of steps of a search from one slot to another.
func (s *segment) distance(from, to int) int {
	if to -= from; to >= 0 {
		return to
	}
	return to + len(s.cells)
}

// all yields the slots of the cells.
func (s *segment) all(yield func(int) bool) {
	for i := range s.cells {
		if s.cells[i].part != nil && !yield(i) {
			return
		}
	}
}
