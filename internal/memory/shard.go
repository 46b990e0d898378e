package memory

import (
	"sync"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/rule"
	"github.com/weirflow/weir/internal/table"
)

// shard holds the states of its keys that are not words: logs, leases, and other states that do not fit. Its mutex
// guards them and the borrowing of words. A call stores the set of its shards in one word.
type shard struct {
	mu      sync.Mutex
	cells   []*cells // of all limits that have some
	next    int      // those to sweep next
	scanned int      // cells examined so far
	evicted uint64   // idle states
	// lastEviction is the latest instant of an eviction. A missing key may have had the evicted state, so it is not
	// new at earlier times.
	lastEviction int64
	newest       int64        // reading of the clock
	busy         []table.Hash // of the call that has the lock: it may have loaded their cells and borrowed their words
	_            [16]byte     // shards do not share cache lines
}

// take decides on the cell of h and writes the answer to a. done is false without a cell, except for a limit without
// words: then take makes a cell if there is room.
func (s *shard) take(u *use, p *rule.Part, h table.Hash, cost int64, lease uint64, now int64, a *algorithm.Answer) (done bool) {
	states := u.states
	s.mu.Lock()
	defer s.mu.Unlock()
	if !states.engine.clock.Injected() {
		now = max(now, s.newest)
		s.newest = now
	}
	c := states.cells[h%table.Shards]
	if found := c.find(h); found != nil {
		algorithm.TakeOne(p.Algorithm, &found.state, now, cost, lease, a)
		if a.Changed && (u.limit == nil || !c.toWords(h, u.limit, found.state, now)) {
			found.part = p
		}
		return true
	}
	if states.hasWords() {
		return false
	}
	if c = s.cellsOf(states, h); !c.hasRoom() {
		return false
	}
	state := p.Algorithm.Fresh()
	algorithm.TakeOne(p.Algorithm, &state, max(now, s.lastEviction), cost, lease, a)
	if a.Changed {
		c.add(h, p, state, now)
	}
	return true
}

// sweep looks at the next n cells of the shard: those of one limit after those of another.
func (s *shard) sweep(n int, now int64) {
	if s.cells[s.next].sweep(n, now) {
		s.next = (s.next + 1) % len(s.cells)
	}
}

// cellsOf returns the cells of a limit in the shard of h, and makes them if needed.
func (s *shard) cellsOf(states *limitStates, h table.Hash) *cells {
	number := h % table.Shards
	if states.cells[number] == nil {
		c := newCells(states, s, int(number))
		states.cells[number] = c
		s.cells = append(s.cells, c)
	}
	return states.cells[number]
}
