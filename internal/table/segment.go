package table

import (
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sync/atomic"
)

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

// Reserved values of the first word of an entry. All other values belong to the caller.
const (
	// Fresh is every word of a new key.
	Fresh uint64 = 0
	// Moved means that the segment was replaced: call Claim or Find again.
	Moved uint64 = math.MaxUint64
	// Elsewhere means that the caller keeps the state, because it does not fit in its words. An entry with such a word
	// is never idle.
	Elsewhere uint64 = math.MaxUint64 - 1
	// Seized means that one caller is changing the words.
	Seized uint64 = math.MaxUint64 - 2
)

// Entry is the words of one hash. Its first word is read and written by atomic operations only. An entry of one word
// changes by compare-and-swap, or by a caller that has seized it together with others. Only the caller that has seized a wider entry
// writes its other words: that has replaced the first word by Seized, or by Elsewhere, which only the caller's own lock
// protects.
type Entry struct {
	Words  []uint64 // none if there is no entry
	Layout uint8
}

// None reports whether there is no entry.
func (e Entry) None() bool { return len(e.Words) == 0 }

// First returns the first word.
func (e Entry) First() uint64 { return atomic.LoadUint64(&e.Words[0]) }

// Swap replaces the first word if it is old.
func (e Entry) Swap(old, next uint64) bool {
	return atomic.CompareAndSwapUint64(&e.Words[0], old, next)
}

// Seize seizes the entry and returns its first word, for Release. If the first word is Moved, or is Elsewhere and the
// caller does not have the lock of such states, it seizes nothing and returns that word.
func (e Entry) Seize(withElsewhere bool) (first uint64, seized bool) {
	return SeizeWord(&e.Words[0], withElsewhere)
}

// SeizeWord seizes the words behind a first word that is in no table, like Seize.
func SeizeWord(at *uint64, withElsewhere bool) (first uint64, seized bool) {
	for spins := 0; ; spins++ {
		first = atomic.LoadUint64(at)
		switch {
		case first == Seized:
			pause(spins)
		case first == Moved || first == Elsewhere && !withElsewhere:
			return first, false
		case atomic.CompareAndSwapUint64(at, first, Seized):
			return first, true
		}
	}
}

// Release gives a seized entry back with the next first word.
func (e Entry) Release(first uint64) { atomic.StoreUint64(&e.Words[0], first) }

// pause waits a moment for a caller that has seized an entry, which takes some ten nanoseconds unless its thread is
// suspended.
func pause(spins int) {
	if spins >= 16 {
		runtime.Gosched()
	}
}

// freeze makes the entry Moved and returns its first word. The other words no longer change.
func (e Entry) freeze() (first uint64) {
	for spins := 0; ; spins++ {
		first = e.First()
		if first == Seized {
			pause(spins)
		} else if e.Swap(first, Moved) {
			return first
		}
	}
}

// Layout says what the words of an entry mean. A table has several layouts during its life; each segment has the one
// that was the newest when the segment was made.
type Layout interface {
	// Width returns the number of words of an entry, at most MaxWidth.
	Width() int
	// Idle reports whether the first word and the rest mean the same as those of a new key from now on. Once true, it
	// must stay true. The table calls it unless the first word is Elsewhere or all words are Fresh.
	Idle(first uint64, rest []uint64, now int64) bool
	// Convert writes the words of an entry of an earlier layout of the same table as words of this one.
	Convert(from Layout, first uint64, rest, into []uint64)
}

// MaxWidth is the largest number of words of an entry.
const MaxWidth = 8

// numbered is a layout and its number in its table.
type numbered struct {
	Layout
	number uint8
}

func (l numbered) stride() int { return 1 + l.Width() }

// segmentRoom returns the number of entries for hashes in a segment of full size. Such a segment fills a size class
// of the allocator, or at most 32 KiB.
func (l numbered) segmentRoom() int { return min(segmentSlots, 4096/l.stride()-1) }

// directory finds the segment of a hash by bits of the hash above those that number its shard (extendible hashing;
// Fagin and others, 1979). Each segment knows its depth, the number of bits that its hashes share. A segment with less
// depth than the directory stands in several places, whose number is a power of two. A directory is immutable.
type directory struct{ places []segment }

func (d *directory) index(h Hash) int { return int(uint(h>>ShardBits) & uint(len(d.places)-1)) }

func (d *directory) segment(h Hash) *segment { return &d.places[d.index(h)] }

// with returns a directory with one segment, or with two that are deeper by one bit, in the place of the segment at an
// index. It has twice the places if d has too few bits.
func (d *directory) with(at int, segments ...segment) *directory {
	depth := d.places[at].depth
	places := slices.Clone(d.places)
	if len(segments) > 1 && 1<<depth == len(places) {
		places = slices.Concat(d.places, d.places)
	}
	for i := at & (1<<depth - 1); i < len(places); i += 1 << depth {
		places[i] = segments[i>>depth&(len(segments)-1)]
	}
	return &directory{places}
}

// all yields each segment once.
func (d *directory) all(yield func(*segment) bool) {
	for i := range d.places {
		if s := &d.places[i]; i>>s.depth == 0 && !yield(s) {
			return
		}
	}
}

// maxDepth is the largest depth of a segment in a shard of n keys: four bits more than where each segment would hold a
// few keys. Random hashes stay far below. Others share a segment that grows, instead of a directory
// that doubles without end.
func maxDepth(keys, few int) uint8 { return uint8(bits.Len(uint(keys)/uint(few))) + 4 }
