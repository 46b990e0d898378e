package weir

import (
	"math"
	"sync"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/rule"
	"github.com/weirflow/weir/internal/table"
)

const (
	shardBits  = table.ShardBits
	shardCount = table.Shards // a set of shards is one word
)

// shard holds those states of the keys that hash to it which are no words in a
// table: logs, and what does not fit. Its mutex guards them, and the borrowing
// of words.
type shard struct {
	mu      sync.Mutex
	cells   []*cells // of all limits that have some
	turn    int      // whose turn it is to be looked through
	segment int      // and which of its segments
	touched int      // cells that were looked through
	spare   *cellSegment
	dropped uint64 // idle states forgotten
	// swept is the latest instant at which states were forgotten. A key not
	// found may have been one of them: at earlier times it is not fresh.
	swept  int64
	newest int64    // reading of the clock
	_      [40]byte // shards do not share cache lines
}

func (s *shard) init() { s.swept = math.MinInt64 }

// take decides on the cell of h, and writes the answer to a. It is not done if
// there is none; but where states are no words one is made, if there is room.
func (s *shard) take(t *limitTable, p *rule.Part, h table.Hash, q *Request, now int64, a *algorithm.Answer) (done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !t.engine.clock.Injected() {
		now = max(now, s.newest)
		s.newest = now
	}
	at, c := now, t.cells[h%shardCount]
	parts := [1]algorithm.Part{{Algorithm: p.Algorithm, Cost: q.Cost, Lease: q.Lease}}
	found := c.find(h)
	if found != nil {
		parts[0].State = found.state
	} else {
		if t.hasWords() {
			return false
		}
		if c = s.cellsOf(t, h); !c.hasRoom() {
			return false
		}
		parts[0].State, at = p.Algorithm.Fresh(), max(now, s.swept)
	}
	*a = algorithm.Take(parts[:], at)
	switch {
	case !a.Changed:
	case found == nil:
		c.add(h, p, parts[0].State, now)
	case !t.hasWords() || !c.toWord(h, p, parts[0].State, now):
		found.part, found.state = p, parts[0].State
	}
	return true
}

// look looks through the next segment of the shard, and forgets what is idle if
// it is half of it.
func (s *shard) look(now int64) {
	s.segment++
	if s.segment >= len(s.cells[s.turn].Segments) {
		s.segment, s.turn = 0, (s.turn+1)%len(s.cells)
	}
	s.cells[s.turn].tidy(s.segment, now)
}

// cellsOf are the cells of a limit in the shard, which begin when they are first
// asked for.
func (s *shard) cellsOf(t *limitTable, h table.Hash) *cells {
	number := h % shardCount
	if t.cells[number] == nil {
		c := newCells(t, s, int(number))
		t.cells[number] = c
		s.cells = append(s.cells, c)
	}
	return t.cells[number]
}

// newSegment is newCellSegment, or the spare one.
func (s *shard) newSegment(cells int, depth uint8) *cellSegment {
	if spare := s.spare; spare != nil && slotsForCells(cells) == cellSlots {
		spare.depth, s.spare = depth, nil
		return spare
	}
	return newCellSegment(cells, depth)
}

// keepSpare empties a whole segment that is no longer used, for the next time
// that one is needed.
func (s *shard) keepSpare(old *cellSegment) {
	if s.spare == nil && len(old.slots) == cellSlots {
		clear(old.slots)
		old.used, s.spare = 0, old
	}
}
