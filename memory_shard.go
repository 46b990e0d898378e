package weir

import (
	"math"
	"sync"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

const shardCount = 64 // a set of shards is one word

// shard holds those states of the keys that hash to it which are no words in a
// table: logs, and what does not fit. Its mutex guards them, and the borrowing
// of words.
type shard struct {
	mu      sync.Mutex
	cells   map[stateKey]cell
	sweepAt int    // look for idle states when there are so many
	dropped uint64 // idle states forgotten
	// swept is the latest instant at which states were forgotten. A key not
	// found may have been one of them: at earlier times it is not fresh.
	swept  int64
	newest int64    // reading of the clock
	_      [80]byte // shards do not share cache lines
}

type stateKey struct{ limit, key string }

// cell is a state and the algorithm that wrote it. If its table has words, the
// one for the key reads Elsewhere.
type cell struct {
	state     algorithm.State
	algorithm algorithm.Algorithm
	table     *limitTable
	hash      table.Hash
}

// firstSweep is how many states a shard holds before it looks for idle ones.
const firstSweep = 64

func (s *shard) init() {
	s.cells = map[stateKey]cell{}
	s.sweepAt = firstSweep
	s.swept = math.MinInt64
}

// sweep forgets what is idle each time the shard has doubled, so a state costs
// two looks on average. All parts of a decision have to be stored before: logs
// change in place, so that an old state and its log do not belong together.
func (s *shard) sweep(now int64) {
	if len(s.cells) >= s.sweepAt {
		s.forget(nil, len(s.cells), nil, now)
		s.sweepAt = max(firstSweep, 2*len(s.cells))
	}
}

// forget looks at so many cells, from one on that the map chooses, and drops
// those that are idle: of one limit, if it is not nil, and none that a decision
// on its way has loaded.
func (s *shard) forget(of *limitTable, looks int, loaded []slot, now int64) {
	for key, c := range s.cells {
		if looks--; looks < 0 {
			return
		}
		if (of == nil || c.table == of) && algorithm.Idle(c.algorithm, c.state, now) && !holds(loaded, key) {
			s.drop(key, c, now)
			s.swept = max(s.swept, now)
		}
	}
}

// holds says that one of the slots has loaded the cell of a key.
func holds(loaded []slot, key stateKey) bool {
	for i := range loaded {
		if s := &loaded[i]; s.place == asCell && s.key == key {
			return true
		}
	}
	return false
}

// drop forgets a cell.
func (s *shard) drop(key stateKey, c cell, now int64) {
	delete(s.cells, key)
	s.dropped++
	switch {
	case c.table == nil:
	case c.table.hasWords():
		c.table.put(c.hash, table.Fresh, now)
	default:
		c.table.cells[c.hash%shardCount]--
	}
}

// looksAtCap is how many cells are looked at for idle ones when another finds no
// room.
const looksAtCap = 16

// enter counts in another cell of a limit without words, if there is room for
// it. The slots before it in its call are loaded.
func (s *shard) enter(t *limitTable, h table.Hash, loaded []slot, now int64) bool {
	cells, most := &t.cells[h%shardCount], int32(math.MaxInt32)
	if t.maxKeys != 0 {
		most = int32(min(table.Part(t.maxKeys, int(h%shardCount)), math.MaxInt32))
	}
	if *cells >= most {
		s.forget(t, looksAtCap, loaded, now)
	}
	if *cells >= most {
		return false
	}
	*cells++
	return true
}
