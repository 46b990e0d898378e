package memory

import (
	"strings"
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/compiled"
	"github.com/weirflow/weir/internal/table"
	"github.com/weirflow/weir/internal/word"
)

// limitStates keeps the states of one limit of a rule: in words where they fit, otherwise as cells. The limits of all
// rules with one name are columns of one table, so that a key has one entry for all of them.
type limitStates struct {
	column  *word.Column // nil if no state of the limit fits in words
	engine  *Engine
	name    string // the name of the limit's states, and a suffix if keys share them
	counts  *ruleCounts
	maxKeys int                            // 0 means no bound, less than 0 no room
	cells   [table.Shards]*cells           // under the lock of the shard; nil until it has some
	shared  [2]atomic.Pointer[limitStates] // of keys without room
}

func (s *limitStates) hasWords() bool { return s.column != nil }

// limit returns a limit on the words, or nil without words.
func (s *limitStates) limit(words algorithm.Worder) *word.Limit {
	if s.column == nil {
		return nil
	}
	return s.column.Limit(words)
}

// pack returns a state as words, if nothing besides the words matters.
func pack(limit *word.Limit, state algorithm.State, now int64) (w word.Words, ok bool) {
	if algorithm.JustConverted(limit.Words(), state, now) {
		return w, false
	}
	return limit.Pack(state, now)
}

// Homes cache the states that a rule uses in engines, one for each of those made in a row.
type Homes [4]atomic.Pointer[home]

// home holds the states of a rule in the engine that used it last.
type home struct {
	engine *Engine
	parts  []use
	row    *word.Row // nil if a limit has no words, or is not in the table of the others
	counts *ruleCounts
}

// use holds the states of a part of a rule.
type use struct {
	states *limitStates
	limit  *word.Limit // nil if the states have no words
}

var engines atomic.Uint32 // that were made

// homeOf returns the home of a rule in the engine, and makes its states if needed.
func (e *Engine) homeOf(r *compiled.Rule, now int64) *home {
	at := &r.Home.(*Homes)[e.number%uint32(len(Homes{}))]
	if h := at.Load(); h != nil && h.engine == e {
		return h
	}
	e.making.Lock()
	defer e.making.Unlock()
	if e.names[r.Name] == nil {
		e.freeGone(namesAtOnce, table.MaxTouched, now)
	}
	e.nameOf(r.Name).use(r)
	h := &home{engine: e, parts: make([]use, len(r.Parts))}
	limits := make([]*word.Limit, len(r.Parts))
	for i := range r.Parts {
		p := &r.Parts[i]
		states := e.makeStates(p.State, p, now)
		limits[i] = states.limit(p.Words)
		h.parts[i], h.counts = use{states, limits[i]}, states.counts
	}
	if h.row = word.NewRow(limits); h.row != nil {
		h.row.Owner = h
	}
	at.Store(h)
	return h
}

// statesNamed returns the states of a name, and makes them like those of p if needed.
func (e *Engine) statesNamed(name string, p *compiled.Part, now int64) *limitStates {
	if found, ok := e.states.Load(name); ok {
		return found.(*limitStates)
	}
	e.making.Lock()
	defer e.making.Unlock()
	return e.makeStates(name, p, now)
}

// makeStates works like statesNamed. The caller holds the lock of making.
func (e *Engine) makeStates(name string, p *compiled.Part, now int64) *limitStates {
	if found, ok := e.states.Load(name); ok {
		return found.(*limitStates)
	}
	s := e.newStates(name, p.Words, false, now)
	e.states.Store(name, s)
	return s
}

// newStates makes the states of a name; words is nil if no state fits in words. apart keeps them out of the table of the
// rules with their name.
func (e *Engine) newStates(name string, words algorithm.Worder, apart bool, now int64) *limitStates {
	ruleName, _, _ := strings.Cut(name, "\x00")
	n := e.nameOf(ruleName)
	s := &limitStates{engine: e, name: name, counts: n.counts, maxKeys: e.maxKeysOf(name)}
	n.states = append(n.states, s)
	if words != nil {
		if !apart {
			s.column = e.tableNamed(n, ruleName+suffixOf(name), s.maxKeys).AddColumn(words, now)
		}
		if s.column == nil { // the rules of this name have more limits than an entry has words
			s.column = e.tableNamed(n, name, s.maxKeys).AddColumn(words, now)
		}
	}
	return s
}

// isApart reports whether the states have a table of their own.
func (s *limitStates) isApart() bool {
	own, ok := s.engine.tables.Load(s.name)
	return ok && s.column != nil && own.(*word.Table) == s.column.Table()
}

// tableNamed returns the table of a name, and makes it if needed.
func (e *Engine) tableNamed(of *named, name string, maxKeys int) *word.Table {
	if found, ok := e.tables.Load(name); ok {
		return found.(*word.Table)
	}
	t := word.NewTable(maxKeys)
	t.Forgotten(e.idleAt) // perhaps with one of this name
	of.tables = append(of.tables, namedTable{name, t})
	e.tables.Store(name, t)
	return t
}
