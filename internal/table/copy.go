package table

import (
	"fmt"
	"math/bits"
)

// Pair is a hash in use and its word.
type Pair struct {
	Hash Hash
	Word uint64
}

// Copy appends the pairs of one segment of a shard to into, with words that are
// not Fresh, and says where the next segment begins: 0 after the last, as it is
// the first. The shard is locked for one segment only, so it may change between
// two calls: who goes on where the last call ended meets each hash once that was
// in use all the time.
//
// A place is the first hash of a segment, its bits reversed: what a segment
// splits into stays between its place and the next.
func (t *Table) Copy(shard int, place uint64, into []Pair) (_ []Pair, next uint64) {
	s := &t.shards[shard]
	s.mu.Lock() // no slot is frozen or copied meanwhile
	defer s.mu.Unlock()
	d := s.directory.Load()
	if d == nil {
		return into, 0
	}
	segment := &d.Segments[bits.Reverse64(place)&(1<<d.Depth-1)]
	for i := 1; i < len(segment.slots); i++ {
		tag, word := segment.slots[i].tag.Load(), segment.slots[i].word.Load()
		if tag != empty && word != Fresh {
			into = append(into, Pair{Hash(tag), word})
		}
	}
	if segment.depth == 0 {
		return into, 0
	}
	return into, place + 1<<(64-segment.depth)
}

// fillLive is how many words Fill puts into a segment on average, at most: so
// few that none is full.
const fillLive = segmentSlots / 2

// Fill makes the pairs the words of a shard that has none, whatever the cap on
// keys. Of two pairs of one hash, Elsewhere wins; else it is an error, as are
// pairs of another shard, words with a meaning to the table, and hashes that are
// not as good as random. Then the shard stays empty.
func (t *Table) Fill(shard int, pairs []Pair) error {
	if len(pairs) == 0 {
		return nil
	}
	var depth uint8
	for len(pairs)>>depth > fillLive {
		depth++
	}
	d, err := emptyDirectory(shard, depth, pairs)
	if err != nil {
		return err
	}
	for _, p := range pairs {
		if !d.segment(p.Hash).putOnce(p.Hash, p.Word) {
			return fmt.Errorf("table: fill: hash %#x comes twice", uint64(p.Hash))
		}
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

// emptyDirectory has room for the pairs, each of which it checks.
func emptyDirectory(shard int, depth uint8, pairs []Pair) (*directory, error) {
	d := newDirectory(depth, make([]segment, 1<<depth))
	counts := make([]int, 1<<depth)
	for _, p := range pairs {
		if uint64(p.Hash) <= frozen || p.Hash%Shards != Hash(shard) {
			return nil, fmt.Errorf("table: fill: hash %#x is not of shard %d", uint64(p.Hash), shard)
		}
		if p.Word == Fresh || p.Word == Moved {
			return nil, fmt.Errorf("table: fill: word %#x is none", p.Word)
		}
		counts[d.Index(p.Hash)]++
	}
	for i, live := range counts {
		if live > segmentSlots*7/8 {
			return nil, fmt.Errorf("table: fill: %d of %d hashes share %d bits", live, len(pairs), ShardBits+depth)
		}
		d.Segments[i] = newSegment(min(roomFor(live), segmentSlots), depth, 0)
	}
	return d, nil
}

// putOnce is put of a hash that may be there already.
func (s *segment) putOnce(h Hash, word uint64) bool {
	found, _ := s.find(h)
	switch {
	case found == nil:
		s.put(h, word)
		s.slots[0].word.Add(1)
	case word == Elsewhere:
		found.Store(Elsewhere)
	case found.Load() != Elsewhere:
		return false
	}
	return true
}

// Forgotten says that idle words were dropped at an instant before the table
// came to be.
func (t *Table) Forgotten(at int64) { t.swept.Store(max(at, t.swept.Load())) }

// Idle says that a word means no more than Fresh from now on.
func (t *Table) Idle(word uint64, now int64) bool { return t.isIdle(word, now) }
