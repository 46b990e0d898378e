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

// Copy appends the pairs of one segment of a shard to into, without Fresh words. It returns the place of the next
// segment, or 0 after the last, which is also the first place. It locks the shard for one segment only, so the shard
// may change between two calls. A caller that continues at next meets every hash that was in use all the time exactly
// once.
//
// A place is the first hash of a segment with its bits reversed. The parts of a split segment stay between its place
// and the next.
func (t *Table) Copy(shard int, place uint64, into []Pair) (_ []Pair, next uint64) {
	s := &t.shards[shard]
	s.mu.Lock() // keeps slots from being frozen or copied
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

// fillLive bounds the average number of words that Fill puts into a segment, so that no segment is full.
const fillLive = segmentSlots / 2

// Fill puts the pairs into an empty shard, regardless of MaxKeys. Of two pairs with the same hash, the one with
// Elsewhere wins. Other duplicates are an error, and so are pairs of another shard, reserved words, and hashes that
// are not as good as random. After an error the shard is empty.
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

// emptyDirectory checks the pairs and returns a directory with room for them.
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

// putOnce puts a hash and reports whether it was new.
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

// Forgotten records that idle words were dropped at an instant before the table was created.
func (t *Table) Forgotten(at int64) { t.swept.Store(max(at, t.swept.Load())) }

// Idle reports whether a word means no more than Fresh from now on.
func (t *Table) Idle(word uint64, now int64) bool { return t.isIdle(word, now) }
