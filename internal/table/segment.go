package table

import "sync/atomic"

// slot is a hash and its word.
type slot struct{ tag, word atomic.Uint64 }

const slotBytes = 16

// Tags with a meaning. No hash has them.
const (
	empty  uint64 = 0
	frozen uint64 = 1
)

// valid is h, or a neighbour that is no tag with a meaning.
func valid(h Hash) Hash {
	if uint64(h) <= frozen {
		return h + 2
	}
	return h
}

// segment is an array of slots, probed linearly. The word of the first slot
// counts those in use; hashes live in the others.
type segment struct {
	slots []slot
	depth uint8 // how many directory bits its hashes share
}

// newSegment is a segment that so many hashes are about to be put into.
func newSegment(capacity int, depth uint8, used int) segment {
	s := segment{slots: make([]slot, 1+capacity), depth: depth}
	s.slots[0].word.Store(uint64(used))
	return s
}

// first is where the search for a hash begins: its upper half says how far into
// the segment.
func (s *segment) first(h Hash) int {
	return 1 + int(uint64(h)>>32*uint64(len(s.slots)-1)>>32)
}

// full says that seven of eight slots are in use.
func (s *segment) full() bool {
	room := uint64(len(s.slots) - 1)
	return s.slots[0].word.Load() >= room-room/8
}

// find probes for h; stale says that it met a frozen slot first.
func (s *segment) find(h Hash) (word *atomic.Uint64, stale bool) {
	i := s.first(h)
	for range len(s.slots) - 1 {
		switch s.slots[i].tag.Load() {
		case uint64(h):
			return &s.slots[i].word, false
		case empty:
			return nil, false
		case frozen:
			return nil, true
		}
		if i++; i == len(s.slots) {
			i = 1
		}
	}
	return nil, false
}

// claim finds or takes the slot of h; nil if the segment is full or frozen, or
// its shard may hold no more. It is due to tidy up elsewhere when the segment
// passes three quarters, which it does once at most.
func (s *segment) claim(h Hash, of *shard) (word *atomic.Uint64, due bool) {
	i := s.first(h)
	for range len(s.slots) - 1 {
		found := s.slots[i].tag.Load()
		if found == empty {
			due, found = s.take(i, h, of)
		}
		switch found {
		case uint64(h):
			return &s.slots[i].word, due
		case empty, frozen:
			return nil, false
		}
		if i++; i == len(s.slots) {
			i = 1
		}
	}
	return nil, false
}

// take makes the empty slot i that of h, unless there is no room, and says whose
// it is.
func (s *segment) take(i int, h Hash, of *shard) (due bool, tag uint64) {
	if s.full() || !of.enter() {
		return false, empty
	}
	if !s.slots[i].tag.CompareAndSwap(empty, uint64(h)) {
		of.used.Add(-1)
		return false, s.slots[i].tag.Load()
	}
	room := uint64(len(s.slots) - 1)
	return s.slots[0].word.Add(1) == room-room/4, uint64(h)
}

// put is claim for a segment that nobody else sees yet, which has room for h and
// has counted it.
func (s *segment) put(h Hash, word uint64) {
	i := s.first(h)
	for s.slots[i].tag.Load() != empty {
		if i++; i == len(s.slots) {
			i = 1
		}
	}
	s.slots[i].tag.Store(uint64(h))
	s.slots[i].word.Store(word)
}

// directory is replaced, never changed.
type directory struct{ Directory[segment] }

func newDirectory(depth uint8, segments []segment) *directory {
	return &directory{Directory[segment]{depth, segments}}
}

func (d *directory) segment(h Hash) *segment { return &d.Segments[d.Index(h)] }

// all yields each segment once.
func (d *directory) all(yield func(*segment) bool) {
	for i := range d.Segments {
		if s := &d.Segments[i]; IsFirst(i, s.depth) && !yield(s) {
			return
		}
	}
}

func (d *directory) used() (n int64) {
	for s := range d.all {
		n += int64(s.slots[0].word.Load())
	}
	return n
}
