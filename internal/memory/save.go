package memory

import (
	"fmt"
	"io"
	"math"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/clock"
	"github.com/weirflow/weir/internal/table"
	"github.com/weirflow/weir/internal/word"
)

// Save writes the states of all keys. Decisions continue meanwhile.
func (e *Engine) Save(w io.Writer) error {
	s := save{
		engine: e, out: writer{w: w}, start: e.clock.Pair(),
		names: map[*limitStates]*savedName{}, states: map[*word.Column]*limitStates{}, layouts: map[table.Layout]uint32{},
	}
	e.saving(1)
	defer e.saving(-1)
	s.header()
	for i := range e.shards {
		s.shard(i)
		s.out.flush()
	}
	s.end()
	if s.out.err != nil {
		return fmt.Errorf("weir: save: %w", s.out.err)
	}
	return nil
}

// saving counts the saves in progress, which keep what they have begun to write.
func (e *Engine) saving(more int) {
	e.making.Lock()
	defer e.making.Unlock()
	e.saves += more
}

// save is a Save in progress.
type save struct {
	engine       *Engine
	out          writer
	names        map[*limitStates]*savedName
	states       map[*word.Column]*limitStates
	layouts      map[table.Layout]uint32
	start        clock.Pair
	lastEviction int64

	rows    []uint64
	numbers []int64
}

// savedName is a name in the snapshot.
type savedName struct {
	number uint32
	rates  int // the number of its rates in the snapshot
}

func (s *save) header() {
	s.lastEviction = math.MinInt64
	secret := s.engine.seed.Secret()
	s.out.bytes([]byte(magic))
	s.out.uint32(formatVersion)
	s.out.bytes(secret[:])
	s.out.clocks(s.start)
}

// shard saves the words and cells of one shard. Nothing is borrowed under its lock, so a word that reads Elsewhere is a
// cell. It writes to memory only.
func (s *save) shard(number int) {
	from := &s.engine.shards[number]
	from.mu.Lock()
	defer from.mu.Unlock()
	for _, value := range s.engine.tables.Range {
		s.words(value.(*word.Table), number)
	}
	for _, c := range from.cells {
		for x := range c.all {
			if x.idle(s.start.Clock) {
				s.omit()
			} else {
				s.cell(c.states, x)
			}
		}
	}
	s.lastEviction = max(s.lastEviction, from.lastEviction)
	s.out.byte(recordShard)
}

// words saves the words of a table in one shard.
func (s *save) words(t *word.Table, shard int) {
	var place uint64
	for again := true; again; again = place != 0 {
		var rows table.Rows
		rows, place = t.Copy(shard, place, s.rows)
		s.rows = rows.Data
		s.writeRows(rows)
	}
	s.lastEviction = max(s.lastEviction, t.Swept())
}

// writeRows saves the words of one segment.
func (s *save) writeRows(rows table.Rows) {
	saved, columns := rows.Data[:0], word.ColumnsOf(rows.Layout)
	for h, words := range rows.All {
		used := uint64(0)
		for _, c := range columns {
			if words[c.At] == table.Elsewhere {
				words[c.At] = table.Fresh
			}
			used |= words[c.At]
		}
		switch {
		case used == table.Fresh:
		case rows.Layout.Idle(words[0], words[1:], s.start.Clock):
			s.omit()
		default:
			saved = append(append(saved, uint64(h)), words...)
		}
	}
	if len(saved) > 0 {
		s.record(rows.Layout, saved)
	}
}

func (s *save) record(layout table.Layout, rows []uint64) {
	columns := word.ColumnsOf(layout)
	number, known := s.layouts[layout]
	if !known {
		number = uint32(len(s.layouts))
		s.layouts[layout] = number
		s.layout(columns)
	}
	for _, c := range columns {
		s.rates(c.Column) // those of the rows have been numbered by now
	}
	s.out.byte(recordWords)
	s.out.uint32(number)
	s.out.uint32(uint32(len(rows) / (1 + layout.Width())))
	s.out.numbers(rows)
}

// layout writes a layout.
func (s *save) layout(columns []word.Placed) {
	for _, c := range columns {
		s.rates(c.Column)
	}
	s.out.byte(recordTable)
	s.out.byte(byte(len(columns)))
	for _, c := range columns {
		s.out.uint32(s.name(s.statesOf(c.Column)).number)
		s.out.byte(c.Width)
	}
}

// rates writes the name of a column, and its rates that are not in the snapshot yet.
func (s *save) rates(c *word.Column) {
	n := s.name(s.statesOf(c))
	for _, r := range c.Rates(n.rates) {
		s.out.byte(recordRate)
		s.out.uint32(n.number)
		s.out.rate(r)
		n.rates++
	}
}

// statesOf returns the states of a column.
func (s *save) statesOf(c *word.Column) *limitStates {
	if s.states[c] == nil {
		for _, value := range s.engine.states.Range {
			if states := value.(*limitStates); states.hasWords() {
				s.states[states.column] = states
			}
		}
	}
	return s.states[c]
}

// cell saves a cell.
func (s *save) cell(of *limitStates, x *cell) {
	number := s.name(of).number
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

// name returns a name of the snapshot. It writes the name at its first use.
func (s *save) name(of *limitStates) *savedName {
	n := s.names[of]
	if n == nil {
		n = &savedName{number: uint32(len(s.names))}
		s.names[of] = n
		s.out.byte(recordName)
		s.out.text(of.name)
		base := int64(0)
		if of.hasWords() {
			base = of.column.Base
		}
		s.out.uint64(uint64(base))
		s.out.byte(map[bool]byte{true: 1}[of.isApart()])
		if of.hasWords() {
			s.rates(of.column)
		}
	}
	return n
}

// omit records that an idle state is not saved.
func (s *save) omit() { s.lastEviction = max(s.lastEviction, s.start.Clock) }

func (s *save) end() {
	s.out.byte(recordEnd)
	s.out.clocks(s.engine.clock.Pair())
	s.out.uint64(uint64(s.lastEviction))
	s.out.checksum()
}
