package table

import (
	"fmt"
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
	segment := d.At(int(bits.Reverse64(place) & uint64(d.Places()-1)))
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
	first, _ := e.Hold(true)
	defer e.Release(first)
	if isFresh(first, e.Words[1:]) {
		return into
	}
	return append(append(into, tag, first), e.Words[1:]...)
}

// Mark says that the word at a place in the entry of a hash is Elsewhere.
type Mark struct {
	Hash Hash
	At   uint8
}

// fillLive bounds the average number of entries that Fill puts into a segment, so that no segment is full.
func (l numbered) fillLive() int { return l.segmentRoom() / 2 }

// Fill puts rows of the newest layout into an empty shard, regardless of MaxKeys, and then the marks. Duplicate rows
// are an error, and so are rows of another shard, words that are Elsewhere, and hashes that are not as good as random.
// After an error the shard is empty.
func (t *Table) Fill(shard int, data []uint64, marks []Mark) error {
	l := t.newest()
	rows := Rows{l.Layout, data}
	keys := len(data)/l.stride() + len(marks)
	if keys == 0 {
		return nil
	}
	var depth uint8
	for keys>>depth > l.fillLive() {
		depth++
	}
	d, err := emptyDirectory(l, shard, depth, rows, marks)
	if err != nil {
		return err
	}
	for h, words := range rows.All {
		if !d.segment(h).putOnce(h, words) {
			return fmt.Errorf("table: fill: hash %#x comes twice", uint64(h))
		}
	}
	for _, m := range marks {
		d.segment(m.Hash).mark(m)
	}
	s := &t.shards[shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.directory.Load() != nil {
		return fmt.Errorf("table: fill: shard %d is in use", shard)
	}
	s.used.Store(d.used())
	s.directory.Store(d)
	return nil
}

// emptyDirectory checks the rows and marks, and returns a directory with room for them.
func emptyDirectory(l numbered, shard int, depth uint8, rows Rows, marks []Mark) (*directory, error) {
	d := newDirectory(make([]segment, 1<<depth))
	counts, keys := make([]int, 1<<depth), 0
	count := func(h Hash) error {
		if uint64(h) <= frozen || h%Shards != Hash(shard) {
			return fmt.Errorf("table: fill: hash %#x is not of shard %d", uint64(h), shard)
		}
		counts[d.Index(h)]++
		keys++
		return nil
	}
	for h, words := range rows.All {
		if err := count(h); err != nil {
			return nil, err
		}
		if words[0] >= Held || isFresh(words[0], words[1:]) {
			return nil, fmt.Errorf("table: fill: word %#x is none", words[0])
		}
	}
	for _, m := range marks {
		if err := count(m.Hash); err != nil {
			return nil, err
		}
	}
	for i, live := range counts {
		if live > l.segmentRoom()*7/8 {
			return nil, fmt.Errorf("table: fill: %d of %d hashes share %d bits", live, keys, ShardBits+depth)
		}
		*d.At(i) = newSegment(l, min(l.roomFor(live), l.segmentRoom()), depth, 0)
	}
	return d, nil
}

// putOnce puts the words of a hash and reports whether it was new.
func (s *segment) putOnce(h Hash, words []uint64) bool {
	if e, _ := s.find(h); !e.None() {
		return false
	}
	copy(s.put(h), words)
	*s.used()++
	return true
}

// mark makes a word Elsewhere, of a hash that may be new.
func (s *segment) mark(m Mark) {
	if e, _ := s.find(m.Hash); !e.None() {
		e.Words[m.At] = Elsewhere
		return
	}
	s.put(m.Hash)[m.At] = Elsewhere
	*s.used()++
}
