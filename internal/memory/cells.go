package memory

import (
	"math"
	"slices"
	"unsafe"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/compiled"
	"github.com/weirflow/weir/internal/table"
	"github.com/weirflow/weir/internal/word"
)

// cells are the states of one limit in one shard that are not words. The lock of the shard guards them.
//
// They stand side by side in blocks, so that growing copies none and sweeping takes them in turn.
type cells struct {
	states    *limitStates
	shard     *shard
	places    map[table.Hash]int // places of the cells, by the hashes of their keys
	blocks    []*[blockCells]cell
	reserved  int // for calls in progress, if the states have no words
	most      int // cells and reserved ones together
	hand      int // the next cell to sweep
	lastSweep int64
}

// cell is a state and the part of a rule that wrote it. If the states have words, those of the hash read Elsewhere.
type cell struct {
	hash  table.Hash
	part  *compiled.Part
	state algorithm.State
}

const (
	blockCells = 16
	cellBytes  = int(unsafe.Sizeof(cell{}))
	placeBytes = 26 // for each entry of a map, on average

	sweepAtAdd = 3   // cells for each new one: idle ones take no more space than those in use
	sweepAtCap = 128 // cells in table.SweepEvery
)

func newCells(states *limitStates, in *shard, number int) *cells {
	c := &cells{states: states, shard: in, places: map[table.Hash]int{}, lastSweep: math.MinInt64, most: math.MaxInt}
	if states.maxKeys != 0 {
		c.most = table.Part(states.maxKeys, number)
	}
	return c
}

func (x *cell) idle(now int64) bool { return algorithm.Idle(x.part.Algorithm, x.state, now) }

func (c *cells) at(i int) *cell { return &c.blocks[i/blockCells][i%blockCells] }

// find returns the cell of a hash, or nil. It stays in its place until another cell is added or removed.
func (c *cells) find(h table.Hash) *cell {
	if c == nil {
		return nil
	}
	if i, ok := c.places[h]; ok {
		return c.at(i)
	}
	return nil
}

// add adds the state of a hash that has none. It may evict idle cells. The call
// stores all its other changes first, because logs change in place.
func (c *cells) add(h table.Hash, p *compiled.Part, state algorithm.State, now int64) {
	at := len(c.places)
	if at >= blockCells { // so few take little, and a key that is forgotten counts as new since then if the clock goes back
		c.shard.sweep(sweepAtAdd, now)
		at = len(c.places)
	}
	if at == len(c.blocks)*blockCells {
		c.blocks = append(c.blocks, new([blockCells]cell))
	}
	*c.at(at), c.places[h] = cell{h, p, state}, at
}

// remove removes the cell of a hash, which exists. The last cell takes its place.
func (c *cells) remove(h table.Hash) {
	at, last := c.places[h], c.at(len(c.places)-1)
	c.places[last.hash], *c.at(at) = at, *last
	*last = cell{}
	delete(c.places, h)
	switch spare := len(c.blocks) - 1; {
	case len(c.places) == 0:
		c.places = map[table.Hash]int{} // a map never shrinks
	case (spare-1)*blockCells >= len(c.places):
		c.blocks[spare], c.blocks = nil, c.blocks[:spare]
	}
}

// evict removes a cell, which is idle.
func (c *cells) evict(x *cell, now int64) {
	if c.states.hasWords() {
		c.states.column.Table().Forgotten(now)
		c.states.column.Put(x.hash, word.Words{}, now)
	}
	c.remove(x.hash)
	c.shard.evicted++
	c.shard.lastEviction = max(c.shard.lastEviction, now)
}

// sweep looks at the next cells, up to n, and evicts those that are idle. Those of the keys of the call stay. It reports
// whether it has passed the last cell.
func (c *cells) sweep(n int, now int64) (passed bool) {
	for ; n > 0 && c.hand < len(c.places); n-- {
		c.shard.scanned++
		if x := c.at(c.hand); x.idle(now) && !slices.Contains(c.shard.busy, x.hash) {
			c.evict(x, now)
		} else {
			c.hand++
		}
	}
	if passed = c.hand >= len(c.places); passed {
		c.hand = 0
	}
	return passed
}

// reserve keeps room for another cell if the bound permits. Otherwise it looks for idle cells once in table.SweepEvery.
func (c *cells) reserve(now int64) bool {
	if !c.hasRoom() && uint64(now-c.lastSweep) >= uint64(table.SweepEvery) {
		c.lastSweep = now
		c.sweep(sweepAtCap, now)
	}
	if !c.hasRoom() {
		return false
	}
	c.reserved++
	return true
}

func (c *cells) hasRoom() bool { return len(c.places)+c.reserved < c.most }

// all yields each cell.
func (c *cells) all(yield func(*cell) bool) {
	for i := range len(c.places) {
		if !yield(c.at(i)) {
			return
		}
	}
}

// bytes returns the memory of the cells.
func (c *cells) bytes() int { return len(c.blocks)*blockCells*cellBytes + len(c.places)*placeBytes }
