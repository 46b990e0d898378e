package memory

import (
	"fmt"
	"io"
	"math"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/clock"
	"github.com/weirflow/weir/internal/table"
)

// Save writes the states of all keys. Decisions continue meanwhile.
func (e *Engine) Save(w io.Writer) error {
	s := save{engine: e, out: writer{w: w}, names: map[*limitStates]uint32{}, start: e.clock.Pair()}
	s.header()
	for i := range e.shards {
		s.words(i)
		s.cells(i)
		s.out.flush()
	}
	s.end()
	if s.out.err != nil {
		return fmt.Errorf("weir: save: %w", s.out.err)
	}
	return nil
}

// save is a Save in progress.
type save struct {
	engine       *Engine
	out          writer
	names        map[*limitStates]uint32
	start        clock.Pair
	lastEviction int64

	pairs     []table.Pair
	elsewhere []elsewhere
	numbers   []int64
}

// elsewhere is a word that was borrowed, or stood for a cell, when words met it.
type elsewhere struct {
	states *limitStates
	hash   table.Hash
}

func (s *save) header() {
	s.lastEviction = math.MinInt64
	secret := s.engine.seed.Secret()
	s.out.bytes([]byte(magic))
	s.out.uint32(formatVersion)
	s.out.bytes(secret[:])
	s.out.clocks(s.start)
}

// words saves the words of all limits in one shard, and notes those that are
// elsewhere. It locks the shard of a table for one segment at a time.
func (s *save) words(shard int) {
	s.elsewhere = s.elsewhere[:0]
	s.engine.states.Range(func(_, value any) bool {
		states := value.(*limitStates)
		if !states.hasWords() {
			return true
		}
		var place uint64
		for again := true; again; again = place != 0 {
			s.pairs, place = states.Words.Copy(shard, place, s.pairs[:0])
			s.writePairs(states)
		}
		s.lastEviction = max(s.lastEviction, states.Words.Swept())
		return s.out.err == nil
	})
}

// writePairs saves the words of one segment.
func (s *save) writePairs(states *limitStates) {
	saved := s.pairs[:0]
	for _, p := range s.pairs {
		switch {
		case p.Word == table.Elsewhere:
			s.elsewhere = append(s.elsewhere, elsewhere{states, p.Hash})
		case states.Words.Idle(p.Word, s.start.Clock):
			s.omit()
		default:
			saved = append(saved, p)
		}
	}
	if len(saved) == 0 {
		return
	}
	s.record(states, saved)
	s.out.flushLarge()
}

func (s *save) record(states *limitStates, pairs []table.Pair) {
	number := s.name(states)
	s.out.byte(recordWords)
	s.out.uint32(number)
	s.out.uint32(uint32(len(pairs)))
	s.out.pairs(pairs)
}

// cells saves the cells of a shard, and looks again at the words that were
// elsewhere. Nothing is borrowed under the lock of the shard, so by now each of them
// is a cell or a word again. A word that became a cell after it was saved is saved
// twice, and the cell is the later state.
func (s *save) cells(shard int) {
	from := &s.engine.shards[shard]
	from.mu.Lock()
	defer from.mu.Unlock()
	for _, c := range from.cells {
		for x := range c.all {
			if x.idle(s.start.Clock) {
				s.omit()
			} else {
				s.cell(c.states, x)
			}
		}
	}
	for _, e := range s.elsewhere {
		if word := e.states.Read(e.hash); word != table.Elsewhere && word != table.Fresh {
			s.record(e.states, []table.Pair{{Hash: e.hash, Word: word}})
		}
	}
	s.lastEviction = max(s.lastEviction, from.lastEviction)
	s.out.byte(recordShard)
}

// cell saves a cell. Its caller holds the lock of a shard, so it writes to memory only.
func (s *save) cell(of *limitStates, x *cell) {
	number := s.name(of)
	s.numbers = x.part.Algorithm.(algorithm.Saver).AppendState(s.numbers[:0], x.state)
	s.out.byte(recordCell)
	s.out.uint32(number)
	s.out.uint64(uint64(x.part.Algorithm.Capacity()))
	s.out.uint64(uint64(x.hash))
	s.out.uint32(uint32(len(s.numbers)))
	for _, n := range s.numbers {
		s.out.uint64(uint64(n))
	}
}

// name returns the number of a name. It writes the name at its first use.
func (s *save) name(of *limitStates) uint32 {
	number, known := s.names[of]
	if !known {
		number = uint32(len(s.names))
		s.names[of] = number
		s.out.byte(recordName)
		s.out.text(of.name)
		s.out.uint64(uint64(of.Base))
		s.out.rate(algorithm.RateOf(of.Writer))
	}
	return number
}

// omit records that an idle state is not saved.
func (s *save) omit() { s.lastEviction = max(s.lastEviction, s.start.Clock) }

func (s *save) end() {
	s.out.byte(recordEnd)
	s.out.clocks(s.engine.clock.Pair())
	s.out.uint64(uint64(s.lastEviction))
	s.out.checksum()
}
