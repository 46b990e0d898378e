package weir

import (
	"math"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/clock"
	"github.com/weirflow/weir/internal/table"
)

// saving is a Save on its way.
type saving struct {
	memory *Memory
	out    snapshotWriter
	names  map[*limitTable]uint32
	start  clock.Pair
	swept  int64

	pairs     []table.Pair
	elsewhere []elsewhere
	numbers   []int64
}

// elsewhere is a word that was borrowed, or stood for a cell, when it was met.
type elsewhere struct {
	table *limitTable
	hash  table.Hash
}

func (s *saving) header() {
	s.swept = math.MinInt64
	secret := s.memory.seed.Secret()
	s.out.bytes([]byte(snapshotMagic))
	s.out.uint32(snapshotVersion)
	s.out.bytes(secret[:])
	s.out.clocks(s.start)
}

// words saves what reads as a word in one shard of all tables, and notes what is
// elsewhere. A table's shard is locked for a segment at a time.
func (s *saving) words(shard int) {
	s.elsewhere = s.elsewhere[:0]
	s.memory.tables.Range(func(_, value any) bool {
		t := value.(*limitTable)
		if !t.hasWords() {
			return true
		}
		var place uint64
		for again := true; again; again = place != 0 {
			s.pairs, place = t.Words.Copy(shard, place, s.pairs[:0])
			s.pairsOf(t)
		}
		s.swept = max(s.swept, t.Words.Swept())
		return s.out.err == nil
	})
}

// pairsOf saves a segment.
func (s *saving) pairsOf(t *limitTable) {
	kept := s.pairs[:0]
	for _, p := range s.pairs {
		switch {
		case p.Word == table.Elsewhere:
			s.elsewhere = append(s.elsewhere, elsewhere{t, p.Hash})
		case t.Words.Idle(p.Word, s.start.Clock):
			s.leaveOut()
		default:
			kept = append(kept, p)
		}
	}
	if len(kept) == 0 {
		return
	}
	s.record(t, kept)
	s.out.flushLarge()
}

func (s *saving) record(t *limitTable, pairs []table.Pair) {
	number := s.name(t)
	s.out.byte(recordWords)
	s.out.uint32(number)
	s.out.uint32(uint32(len(pairs)))
	s.out.pairs(pairs)
}

// cells saves what is no word in a shard, and once more looks at what was
// elsewhere: under the lock of the shard nothing is borrowed, so it is a cell by
// now or a word again. What has become a cell since its word was saved is saved
// twice, and the cell is the later.
func (s *saving) cells(shard int) {
	from := &s.memory.shards[shard]
	from.mu.Lock()
	defer from.mu.Unlock()
	for _, c := range from.cells {
		for x := range c.all {
			if x.idle(s.start.Clock) {
				s.leaveOut()
			} else {
				s.cell(c.of, x)
			}
		}
	}
	for _, e := range s.elsewhere {
		if word := e.table.Read(e.hash); word != table.Elsewhere && word != table.Fresh {
			s.record(e.table, []table.Pair{{Hash: e.hash, Word: word}})
		}
	}
	s.swept = max(s.swept, from.swept)
	s.out.byte(recordShard)
}

// cell writes under a shard's lock, so into memory only.
func (s *saving) cell(of *limitTable, x *cell) {
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

// name is the number of a table's name, which is written when it first comes up.
func (s *saving) name(of *limitTable) uint32 {
	number, known := s.names[of]
	if !known {
		number = uint32(len(s.names))
		s.names[of] = number
		s.out.byte(recordName)
		s.out.text(of.name)
		s.out.uint64(uint64(of.Base))
	}
	return number
}

// leaveOut notes that something idle is not saved.
func (s *saving) leaveOut() { s.swept = max(s.swept, s.start.Clock) }

func (s *saving) end() {
	s.out.byte(recordEnd)
	s.out.clocks(s.memory.clock.Pair())
	s.out.uint64(uint64(s.swept))
	s.out.checksum()
}
