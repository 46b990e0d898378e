package memory

import (
	"math"
	"slices"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/rule"
	"github.com/weirflow/weir/internal/table"
	"github.com/weirflow/weir/internal/word"
)

// cells are the states of one limit in one shard that are not words, by the hashes
// of their keys. The lock of the shard guards them.
//
// They are open addressing in small segments, like the words of internal/table. A
// full segment is replaced by one or two new segments, without its idle cells, and
// another segment of the shard is tidied: growing, shrinking and evicting look at
// two segments at a time.
type cells struct {
	states *limitStates
	shard  *shard
	table.Directory[*segment]
	used      int
	reserved  int // for calls in progress, if the states have no words
	maxUsed   int // of used and reserved together
	bytes     int // of all segments
	nextSwept int // the segment to sweep next when there is no room
	lastSweep int64
}

func newCells(states *limitStates, in *shard, number int) *cells {
	c := &cells{states: states, shard: in, lastSweep: math.MinInt64, maxUsed: math.MaxInt}
	first := newSegment(0, 0)
	c.Directory, c.bytes = table.NewDirectory([]*segment{first}), first.bytes()
	if states.maxKeys != 0 {
		c.maxUsed = table.Part(states.maxKeys, number)
	}
	return c
}

// find returns the slot of a hash; its segment is nil if the hash has no cell.
func (c *cells) find(h table.Hash) slot {
	if c == nil {
		return slot{}
	}
	s := c.segment(h)
	if i := s.find(h); s.cells[i].part != nil {
		return slot{s, i}
	}
	return slot{}
}

// set replaces the state of a cell and the part that wrote it.
func (c *cells) set(x slot, p *rule.Part, state algorithm.State) {
	c.bytes += x.segment.set(x.at, p, state)
}

// add adds the state of a hash that has none. It may evict idle cells. The call
// stores all its other changes first, because logs change in place.
func (c *cells) add(h table.Hash, p *rule.Part, state algorithm.State, now int64) {
	grown := false
	for c.segment(h).full() {
		c.rebuild(c.Index(h), now)
		grown = true
	}
	c.bytes += c.segment(h).put(h, p, state)
	c.used++
	if grown {
		c.shard.tidy(now)
	}
}

// remove removes the cell of a hash, which exists.
func (c *cells) remove(h table.Hash) {
	s := c.segment(h)
	s.remove(s.find(h))
	c.used--
}

// evict removes the cell of a hash, which exists and is idle.
func (c *cells) evict(h table.Hash, now int64) {
	c.remove(h)
	c.shard.evicted++
	c.shard.lastEviction = max(c.shard.lastEviction, now)
}

// toWords moves a cell to words if its state fits again.
func (c *cells) toWords(h table.Hash, limit *word.Limit, state algorithm.State, now int64) bool {
	words, ok := pack(limit, state, now)
	if ok {
		c.remove(h)
		limit.Put(h, words, now)
	}
	return ok
}

// reserve keeps room for another cell if the bound permits. Otherwise it searches for idle cells once in
// table.SweepEvery.
func (c *cells) reserve(now int64) bool {
	if !c.hasRoom() && uint64(now-c.lastSweep) >= uint64(table.SweepEvery) {
		c.lastSweep = now
		at := c.nextSwept % c.Places()
		c.nextSwept = at + 1
		if c.countIdle(*c.At(at), now) > 0 {
			c.rebuild(at, now)
		}
	}
	if !c.hasRoom() {
		return false
	}
	c.reserved++
	return true
}

func (c *cells) hasRoom() bool { return c.used+c.reserved < c.maxUsed }

// tidy rebuilds a segment if half of its cells are idle.
func (c *cells) tidy(at int, now int64) {
	s := *c.At(at)
	if idle := c.countIdle(s, now); idle > 0 && 2*idle >= s.used {
		c.rebuild(at, now)
	}
}

func (c *cells) countIdle(s *segment, now int64) (n int) {
	for i := range s.all {
		if s.idle(i, now) {
			n++
		}
	}
	c.shard.scanned += len(s.cells)
	return n
}

// rebuild moves the live cells of a segment to a new segment, or to two if one would be too full. Idle cells of the
// keys of the call stay.
func (c *cells) rebuild(at int, now int64) {
	old := *c.At(at)
	var live, upper int
	for i := range old.all {
		x := &old.cells[i]
		if old.idle(i, now) && !slices.Contains(c.shard.busy, x.hash) {
			c.evictFrom(x, now)
			continue
		}
		live++
		upper += table.SplitBit(x.hash, old.depth)
	}
	c.shard.scanned += len(old.cells)
	c.bytes -= old.bytes()
	if roomFor(live) <= fullSlots || old.depth >= table.MaxDepth(c.used, fullSlots/2) {
		c.Directory = c.Replace(at, old.depth, c.newSegment(live, old.depth))
	} else {
		c.Directory = c.Split(at, old.depth, c.newSegment(live-upper, old.depth+1), c.newSegment(upper, old.depth+1))
	}
	for i := range old.all {
		x := &old.cells[i]
		c.bytes += c.segment(x.hash).put(x.hash, x.part, old.state(i))
	}
	c.shard.keepSpare(old)
}

// evictFrom evicts an idle cell of a segment that is being replaced.
func (c *cells) evictFrom(x *cell, now int64) {
	if c.states.hasWords() {
		c.states.column.Table().Forgotten(now)
		c.states.column.Put(x.hash, word.Words{}, now)
	}
	x.part = nil
	c.used--
	c.shard.evicted++
	c.shard.lastEviction = max(c.shard.lastEviction, now)
}

func (c *cells) segment(h table.Hash) *segment { return *c.At(c.Index(h)) }

// newSegment returns a segment for these cells and counts its bytes.
func (c *cells) newSegment(n int, depth uint8) *segment {
	s := c.shard.newSegment(n, depth)
	c.bytes += s.bytes()
	return s
}

// all yields each cell.
func (c *cells) all(yield func(slot) bool) {
	for i := range c.Places() {
		s := *c.At(i)
		if !table.IsFirst(i, s.depth) {
			continue
		}
		for j := range s.all {
			if !yield(slot{s, j}) {
				return
			}
		}
	}
}
