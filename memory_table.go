package weir

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/rule"
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

// partHome is where a rule remembers the table of a part in the memory engine
// that asked last.
type partHome = atomic.Pointer[limitTable]

func newHome(parts int) *[]partHome {
	homes := make([]partHome, parts)
	return &homes
}

func homesOf(r *rule.Compiled) []partHome { return *r.Home.(*[]partHome) }

// tableOf is the table of a part.
func (m *Memory) tableOf(p *rule.Part, home *partHome, now int64) *limitTable {
	if t := home.Load(); t != nil && t.engine == m {
		return t
	}
	t := m.tableNamed(p.State, p, now)
	home.Store(t)
	return t
}

// tableNamed finds the table of a name, or makes it for states like those of p.
func (m *Memory) tableNamed(name string, p *rule.Part, now int64) *limitTable {
	found, ok := m.tables.Load(name)
	if !ok {
		found, _ = m.tables.LoadOrStore(name, m.newLimitTable(name, p.Words, now))
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
	if m.clock == nil || q.Rule == nil || !q.Rule.compiled.TakesOne(q.Key, q.Place, q.Cost) || ctx.Err() != nil {
		return false // the long way says what is wrong
	}
	r := &q.Rule.compiled
	p := &r.Parts[0]
	now := m.clock.Now()
	t := m.tableOf(p, &homesOf(r)[0], now)
	h := m.seed.Hash(q.Key)
	var a algorithm.Answer
	if (!t.hasWords() || !t.Take(p.Words, h, now, q.Cost, &a)) && !m.shards[h%shardCount].take(t, p, h, q, now, &a) {
		return false
	}
	t.counts.count(m, q.Key, a.Allowed, now)
	d.describe(&a)
	d.Rule, d.Key = r.Name, q.Key
	return true
}

// borrow takes the state of a slot out of its table, if it is there and fits.
func (s *slot) borrow(p *algorithm.Part, now int64) place {
	word, ok := s.table.Borrow(s.hash, now)
	switch {
	case ok:
		s.word, s.place = word, asWord
		p.State = s.part.Words.Unpack(word, s.table.Base)
	case word == table.Elsewhere:
		s.place = unplaced // in a cell
	default:
		s.place = noRoom
	}
	return s.place
}
