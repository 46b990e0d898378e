package table

import "sync/atomic"

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

// segment is an array of entries with linear probing. An entry is a tag, which is the hash or a reserved value, and
// the words of the hash. The first entry holds no hash; its first word counts the entries in use.
type segment struct {
	slots  []uint64
	room   uint32 // entries for hashes
	stride uint8  // slots of an entry
	layout uint8  // the number of the layout of its words
	depth  uint8  // the number of directory bits that its hashes share
}

// newSegment returns a segment for used hashes, which the caller then puts into it.
func newSegment(l numbered, room int, depth uint8, used int) segment {
	s := segment{
		slots: make([]uint64, (1+room)*l.stride()), room: uint32(room), depth: depth,
		stride: uint8(l.stride()), layout: l.number,
	}
	s.slots[1] = uint64(used)
	return s
}

// first returns the place where the search for a hash begins, from the upper half of the hash.
func (s *segment) first(h Hash) int {
	i := 1 + int(uint64(h)>>32*uint64(s.room)>>32)
	if s.stride == 2 { // the most common width: a shift is faster than a multiplication
		return 2 * i
	}
	return i * int(s.stride)
}

// after returns the place behind that at i.
func (s *segment) after(i int) int {
	if i += int(s.stride); i < len(s.slots) {
		return i
	}
	return int(s.stride)
}

// used points at the number of entries in use.
func (s *segment) used() *uint64 { return &s.slots[1] }

func (s *segment) tag(i int) *uint64 { return &s.slots[i] }

func (s *segment) entry(i int) Entry {
	return Entry{Words: s.slots[i+1 : i+int(s.stride)], Layout: s.layout}
}

// full reports whether seven eighths of the entries are in use.
func (s *segment) full() bool {
	room := uint64(s.room)
	return atomic.LoadUint64(s.used()) >= room-room/8
}

// find searches for h. stale is true if it met a frozen entry first.
func (s *segment) find(h Hash) (e Entry, stale bool) {
	i := s.first(h)
	for range s.room {
		switch atomic.LoadUint64(s.tag(i)) {
		case uint64(h):
			return s.entry(i), false
		case empty:
			return Entry{}, false
		case frozen:
			return Entry{}, true
		}
		i = s.after(i)
	}
	return Entry{}, false
}

// claim finds the entry of h or takes an empty one. It returns none if the segment is full or frozen, or the shard is
// at its bound. due is true once in the life of a segment, when it becomes three quarters full; the caller then
// tidies up another segment.
func (s *segment) claim(h Hash, owner *shard) (e Entry, due bool) {
	i := s.first(h)
	for range s.room {
		found := atomic.LoadUint64(s.tag(i))
		if found == empty {
			due, found = s.take(i, h, owner)
		}
		switch found {
		case uint64(h):
			return s.entry(i), due
		case empty, frozen:
			return Entry{}, false
		}
		i = s.after(i)
	}
	return Entry{}, false
}

// take gives the empty entry at i to h if there is room, and returns the entry's tag.
func (s *segment) take(i int, h Hash, owner *shard) (due bool, tag uint64) {
	if s.full() || !owner.countNew() {
		return false, empty
	}
	if !atomic.CompareAndSwapUint64(s.tag(i), empty, uint64(h)) {
		owner.used.Add(-1)
		return false, atomic.LoadUint64(s.tag(i))
	}
	room := uint64(s.room)
	return atomic.AddUint64(s.used(), 1) == room-room/4, uint64(h)
}

// close freezes the entry at i if it is empty, and returns its tag. Most entries are in use, and a load is faster than a
// compare-and-swap that fails.
func (s *segment) close(i int) (tag uint64) {
	if tag = atomic.LoadUint64(s.tag(i)); tag != empty {
		return tag
	}
	if atomic.CompareAndSwapUint64(s.tag(i), empty, frozen) {
		return frozen
	}
	return atomic.LoadUint64(s.tag(i))
}

// put inserts h into a segment that no other caller can see, and returns its words, which are zero. The segment has
// room for h and has counted it.
func (s *segment) put(h Hash) []uint64 {
	i := s.first(h)
	for s.slots[i] != empty {
		i = s.after(i)
	}
	s.slots[i] = uint64(h)
	return s.slots[i+1 : i+int(s.stride)]
}
