package weir

import (
	"math"
	"unsafe"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/rule"
	"github.com/weirflow/weir/internal/table"
)

// cells are the states of one limit in one shard that are no words, by the
// hashes of their keys. The lock of the shard guards them.
//
// It is open addressing in small segments, as in internal/table. One that is
// full gives way to one or two new ones, without the states that are idle, and
// another of the shard is looked through: growing, shrinking and forgetting look
// at two segments at a time.
type cells struct {
	of    *limitTable
	shard *shard
	table.Directory[*cellSegment]
	used     int
	promised int // to calls on their way, where states are no words
	most     int // of used and promised together
	slots    int // of all segments
	next     int // the segment to look through when there is no room
	looked   int64
}

// cell is a state and the part of a rule that wrote it; without a part it is not
// in use. If its table has words, the one for the hash reads Elsewhere.
type cell struct {
	hash  table.Hash
	part  *rule.Part
	state algorithm.State
}

const cellBytes = int(unsafe.Sizeof(cell{}))

func newCells(of *limitTable, in *shard, number int) *cells {
	c := &cells{of: of, shard: in, looked: math.MinInt64}
	c.Segments = []*cellSegment{newCellSegment(0, 0)}
	c.slots, c.most = len(c.Segments[0].slots), math.MaxInt
	if of.maxKeys != 0 {
		c.most = table.Part(of.maxKeys, number)
	}
	return c
}

// find is the cell of a hash; nil if there is none.
func (c *cells) find(h table.Hash) *cell {
	if c == nil {
		return nil
	}
	s := c.segment(h)
	if found := &s.slots[s.find(h)]; found.part != nil {
		return found
	}
	return nil
}

// add puts in a state whose hash is not there. It may forget others, which are
// idle: all that the decision has changed has to be stored before, as logs
// change in place.
func (c *cells) add(h table.Hash, p *rule.Part, state algorithm.State, now int64) {
	grown := false
	for c.segment(h).full() {
		c.renew(c.Index(h), nil, now)
		grown = true
	}
	c.segment(h).put(cell{h, p, state})
	c.used++
	if grown {
		c.shard.look(now)
	}
}

// remove takes out the cell of a hash, which is there.
func (c *cells) remove(h table.Hash) {
	s := c.segment(h)
	s.remove(s.find(h))
	c.used--
}

// evict takes out the cell of a hash, which is there and idle.
func (c *cells) evict(h table.Hash, now int64) {
	c.remove(h)
	c.shard.dropped++
	c.shard.swept = max(c.shard.swept, now)
}

// toWord puts a state back among the words, if it fits one again.
func (c *cells) toWord(h table.Hash, p *rule.Part, state algorithm.State, now int64) bool {
	word, ok := p.Words.Pack(state, c.of.Base)
	if ok {
		c.remove(h)
		c.of.Put(h, word)
	}
	return ok
}

// promise keeps room for another cell, if the cap leaves some. If not, idle ones
// are looked for once in table.SweepEvery, but for those that the slots of a call
// have loaded.
func (c *cells) promise(loaded []slot, now int64) bool {
	if !c.hasRoom() && uint64(now-c.looked) >= uint64(table.SweepEvery) {
		c.looked = now
		at := c.next % len(c.Segments)
		c.next = at + 1
		if c.idle(c.Segments[at], now) > 0 {
			c.renew(at, loaded, now)
		}
	}
	if !c.hasRoom() {
		return false
	}
	c.promised++
	return true
}

func (c *cells) hasRoom() bool { return c.used+c.promised < c.most }

// tidy renews a segment half of which is idle.
func (c *cells) tidy(at int, now int64) {
	s := c.Segments[at]
	if idle := c.idle(s, now); idle > 0 && 2*idle >= s.used {
		c.renew(at, nil, now)
	}
}

// idle is how many cells of a segment are.
func (c *cells) idle(s *cellSegment, now int64) (n int) {
	for x := range s.all {
		if x.idle(now) {
			n++
		}
	}
	c.shard.touched += len(s.slots)
	return n
}

func (x *cell) idle(now int64) bool { return algorithm.Idle(x.part.Algorithm, x.state, now) }

// renew puts the cells of a segment that are not idle into a new one, or two if
// they would be too many. Those that the slots of a call have loaded stay.
func (c *cells) renew(at int, loaded []slot, now int64) {
	old := c.Segments[at]
	var kept, upper int
	for x := range old.all {
		if x.idle(now) && !c.holds(loaded, x.hash) {
			c.forget(x, now)
			continue
		}
		kept++
		upper += table.SplitBit(x.hash, old.depth)
	}
	c.shard.touched += len(old.slots)
	c.slots -= len(old.slots)
	if roomForCells(kept) <= cellSlots || old.depth >= table.MaxDepth(c.used, cellSlots/2) {
		c.Replace(at, old.depth, c.newSegment(kept, old.depth))
	} else {
		c.Split(at, old.depth, c.newSegment(kept-upper, old.depth+1), c.newSegment(upper, old.depth+1))
	}
	for x := range old.all {
		c.segment(x.hash).put(*x)
	}
	c.shard.keepSpare(old)
}

// holds says that one of the slots has loaded the cell of a hash.
func (c *cells) holds(loaded []slot, h table.Hash) bool {
	for i := range loaded {
		if s := &loaded[i]; s.place == asCell && s.table == c.of && s.hash == h {
			return true
		}
	}
	return false
}

// forget drops an idle cell of a segment that is about to go.
func (c *cells) forget(x *cell, now int64) {
	if c.of.hasWords() {
		c.of.Put(x.hash, table.Fresh)
	}
	x.part = nil
	c.used--
	c.shard.dropped++
	c.shard.swept = max(c.shard.swept, now)
}

func (c *cells) segment(h table.Hash) *cellSegment { return c.Segments[c.Index(h)] }

// newSegment is a segment of these cells, counted in.
func (c *cells) newSegment(cells int, depth uint8) *cellSegment {
	s := c.shard.newSegment(cells, depth)
	c.slots += len(s.slots)
	return s
}

// all yields each cell.
func (c *cells) all(yield func(*cell) bool) {
	for i, s := range c.Segments {
		if !table.IsFirst(i, s.depth) {
			continue // seen before
		}
		for x := range s.all {
			if !yield(x) {
				return
			}
		}
	}
}
