package table

import (
	"math/bits"
	"sync/atomic"
)

// Rows are hashes in use and their words: each row is a hash and the words of an entry.
type Rows struct {
	Layout Layout
	Data   []uint64
}

// All yields the hash and the words of each row.
func (r Rows) All(yield func(h Hash, words []uint64) bool) {
	stride := 1 + r.Layout.Width()
	for data := r.Data; len(data) > 0; data = data[stride:] {
		if !yield(Hash(data[0]), data[1:stride]) {
			return
		}
	}
}

// Copy returns the rows of one segment of a shard, without those that are Fresh, in the space of into. It returns the
// place of the next segment, or 0 after the last, which is also the first place. It locks the shard for one segment
// only, so the shard may change between two calls. A caller that continues at next meets every hash that was in use
// all the time exactly once.
//
// A place is the first hash of a segment with its bits reversed. The parts of a split segment stay between its place
// and the next.
func (t *Table) Copy(shard int, place uint64, into []uint64) (_ Rows, next uint64) {
	s := &t.shards[shard]
	s.mu.Lock() // keeps entries from being frozen or copied
	defer s.mu.Unlock()
	d := s.directory.Load()
	if d == nil {
		return Rows{Layout: t.newest().Layout}, 0
	}
	segment := &d.places[bits.Reverse64(place)&uint64(len(d.places)-1)]
	into = into[:0]
	for i := int(segment.stride); i < len(segment.slots); i += int(segment.stride) {
		if tag := atomic.LoadUint64(segment.tag(i)); tag != empty {
			into = segment.entry(i).appendRow(into, tag)
		}
	}
	rows := Rows{t.layoutOf(segment), into}
	if segment.depth == 0 {
		return rows, 0
	}
	return rows, place + 1<<(64-segment.depth)
}

// appendRow appends the hash and the words of an entry that is not frozen, unless all words are Fresh.
func (e Entry) appendRow(into []uint64, tag uint64) []uint64 {
	first, _ := e.Seize(true)
	defer e.Release(first)
	if isFresh(first, e.Words[1:]) {
		return into
	}
	return append(append(into, tag, first), e.Words[1:]...)
}
