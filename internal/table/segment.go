package table

import "sync/atomic"

// slot holds a hash and its word.
type slot struct{ tag, word atomic.Uint64 }

const slotBytes = 16

// Reserved tags. No hash equals them.
const (
	empty  uint64 = 0
	frozen uint64 = 1
)

// valid returns h, or another hash if h equals a reserved tag.
func valid(h Hash) Hash {
	if uint64(h) <= frozen {
		return h + 2
	}
	return h
}

// segment is an array of slots with linear probing. The word of the first slot counts the slots in use; the others
// hold hashes.
type segment struct {
	slots []slot
	depth uint8 // the number of directory bits that its hashes share
}

// newSegment returns a segment for used hashes, which the caller then puts into it.
func newSegment(capacity int, depth uint8, used int) segment {
	s := segment{slots: make([]slot, 1+capacity), depth: depth}
	s.slots[0].word.Store(uint64(used))
	return s
}

// first returns the slot where the search for a hash begins, from the upper half of the hash.
func (s *segment) first(h Hash) int {
	return 1 + int(uint64(h)>>32*uint64(len(s.slots)-1)>>32)
}

// full reports whether seven eighths of the slots are in use.
func (s *segment) full() bool {
	room := uint64(len(s.slots) - 1)
	return s.slots[0].word.Load() >= room-room/8
}

// find searches for h. stale is true if it met a frozen slot first.
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

// claim finds the slot of h or takes an empty one. It returns nil if the segment is full or frozen, or the shard is
// at its bound. due is true once in the life of a segment, when it becomes three quarters full; the caller then
// tidies up another segment.
func (s *segment) claim(h Hash, owner *shard) (word *atomic.Uint64, due bool) {
	i := s.first(h)
	for range len(s.slots) - 1 {
		found := s.slots[i].tag.Load()
		if found == empty {
			due, found = s.take(i, h, owner)
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

// take gives the empty slot i to h if there is room, and returns the slot's tag.
func (s *segment) take(i int, h Hash, owner *shard) (due bool, tag uint64) {
	if s.full() || !owner.countNew() {
		return false, empty
	}
	if !s.slots[i].tag.CompareAndSwap(empty, uint64(h)) {
		owner.used.Add(-1)
		return false, s.slots[i].tag.Load()
	}
	room := uint64(len(s.slots) - 1)
	return s.slots[0].word.Add(1) == room-room/4, uint64(h)
}

// put inserts h into a segment that no other caller can see. The segment has room for h and has counted it.
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

// directory is immutable. Changes replace it.
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
