package weir

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
	"github.com/weirflow/weir/internal/word"
)

// limitTable keeps the states of one limit of a rule for an engine: the words of
// those that fit one, and cells of all others.
type limitTable struct {
	word.Table // without a table if no state of the limit fits a word
	engine     *Memory
	name       string // of the state of a part, and what shared states add
	counts     *ruleCounts
	maxKeys    int                           // 0 is no cap, less no room
	cells      [shardCount]*cells            // under the lock of the shard; nil if it never had any
	shared     [2]atomic.Pointer[limitTable] // of those who find no room
}

func (t *limitTable) hasWords() bool { return t.Words != nil }

// tableOf is the table of a part. The part remembers that of the engine that
// asked last.
func (m *Memory) tableOf(p *part, now int64) *limitTable {
	if t := p.table.Load(); t != nil && t.engine == m {
		return t
	}
	t := m.tableNamed(p.state, p, now)
	p.table.Store(t)
	return t
}

// tableNamed finds the table of a name, or makes it for states like those of p.
func (m *Memory) tableNamed(name string, p *part, now int64) *limitTable {
	found, ok := m.tables.Load(name)
	if !ok {
		found, _ = m.tables.LoadOrStore(name, m.newLimitTable(name, p.words, now))
	}
	return found.(*limitTable)
}

// newLimitTable makes a table; words is nil if no state fits one.
func (m *Memory) newLimitTable(name string, words algorithm.Worder, now int64) *limitTable {
	rule, _, _ := strings.Cut(name, "\x00")
	maxKeys := m.maxKeysOf(name)
	t := &limitTable{engine: m, name: name, counts: m.countsOf(rule), maxKeys: maxKeys}
	if words != nil {
		t.Table = word.NewTable(words, now, maxKeys)
	}
	return t
}

// takeOne is Take of a request of one limit; done says that it was: the state is a
// word or a cell, or becomes one.
func (m *Memory) takeOne(ctx context.Context, q *Request, d *Decision) (done bool) {
	if m.clock == nil || q.check(opTake) != nil || len(q.Rule.parts) != 1 || ctx.Err() != nil {
		return false // the long way says what is wrong
	}
	p := &q.Rule.parts[0]
	now := m.clock.Now()
	t := m.tableOf(p, now)
	h := m.seed.Hash(q.Key)
	var a algorithm.Answer
	if (!t.hasWords() || !t.Take(p.words, h, now, q.Cost, &a)) && !m.shards[h%shardCount].take(t, p, h, q, now, &a) {
		return false
	}
	t.counts.count(m, q.Key, a.Allowed, now)
	d.describe(&a)
	d.Rule, d.Key = q.Rule.name, q.Key
	return true
}

// borrow takes the state of a slot out of its table, if it is there and fits.
func (s *slot) borrow(p *algorithm.Part, now int64) place {
	word, ok := s.table.Borrow(s.hash, now)
	switch {
	case ok:
		s.word, s.place = word, asWord
		p.State = s.part.words.Unpack(word, s.table.Base)
	case word == table.Elsewhere:
		s.place = unplaced // in a cell
	default:
		s.place = noRoom
	}
	return s.place
}
