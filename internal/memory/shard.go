package memory

import (
	"sync"

	"github.com/weirflow/weir/internal/table"
)

// shard holds the states of its keys that are not words: logs, leases, and other states that do not fit. Its mutex
// guards them and the borrowing of words. A call stores the set of its shards in one word.
type shard struct {
	mu      sync.Mutex
	cells   []*cells // cells of all limits that have some
	next    int      // those to sweep next
	scanned int      // cells examined so far
	evicted uint64   // idle states
	// lastEviction is the latest instant of an eviction. A missing key may have had the evicted state, so it is not
	// new at earlier times.
	lastEviction int64
	newest       int64        // reading of the clock
	busy         []table.Hash // hashes of the call that has the lock: it may have loaded their cells and borrowed their words
	_            [16]byte     // shards do not share cache lines
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
