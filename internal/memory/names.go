package memory

import (
	"maps"
	"slices"
	"weak"

	"github.com/weirflow/weir/internal/compiled"
	"github.com/weirflow/weir/internal/table"
	"github.com/weirflow/weir/internal/word"
)

// named holds the states and counts of the rules of one name. The engine frees it once the program has no such rule and
// all its states are idle: no answer shows that. No call is then in progress that could use it, because a call holds its
// rules. The lock of making guards it.
type named struct {
	rule   string
	counts *ruleCounts
	rules  map[weak.Pointer[compiled.Rule]]bool // that have used it
	prune  int                                  // at this number of rules it forgets those that are gone
	states []*limitStates
	tables []namedTable

	// The next states to look at, if the program has no such rule: all before them are idle.
	shard int
	table int
	place uint64
}

type namedTable struct {
	name string
	*word.Table
}

// A new name looks at some others, so that gone ones take no more space than those in use.
const (
	namesAtOnce = 3
	leastPrune  = 16
)

// nameOf returns the named of a name, and makes it if needed.
func (e *Engine) nameOf(ruleName string) *named {
	n := e.names[ruleName]
	if n == nil {
		n = &named{rule: ruleName, counts: &ruleCounts{rule: ruleName}, rules: map[weak.Pointer[compiled.Rule]]bool{}, prune: leastPrune}
		e.names[ruleName] = n
		e.inTurn = append(e.inTurn, n)
		e.rules.Store(ruleName, n.counts)
	}
	return n
}

// use notes a rule. A program may make one for each call, so it forgets those that are gone only once they may be half
// of all.
func (n *named) use(r *compiled.Rule) {
	n.rules[weak.Make(r)] = true
	n.shard, n.table, n.place = 0, 0, 0
	if len(n.rules) >= n.prune {
		maps.DeleteFunc(n.rules, func(w weak.Pointer[compiled.Rule], _ bool) bool { return w.Value() == nil })
		n.prune = max(2*len(n.rules), leastPrune)
	}
}

// isGone reports whether the program has no rule of the name.
func (n *named) isGone() bool {
	for w := range n.rules {
		if w.Value() != nil {
			return false
		}
		delete(n.rules, w)
	}
	return true
}

// freeGone looks at the next names, up to a number, and frees those that are gone and idle. It looks at about the same
// number of entries of each. A save in progress keeps all.
func (e *Engine) freeGone(names, entries int, now int64) {
	if e.saves > 0 {
		return
	}
	for range min(names, len(e.inTurn)) {
		if e.turn >= len(e.inTurn) {
			e.turn = 0
		}
		n := e.inTurn[e.turn]
		gone := n.isGone()
		if gone {
			e.idleAt = max(e.idleAt, now)
		}
		if gone && n.isIdle(e, entries, now) {
			e.free(n)
			last := len(e.inTurn) - 1
			e.inTurn[e.turn], e.inTurn[last] = e.inTurn[last], nil
			e.inTurn = e.inTurn[:last]
		} else {
			e.turn++
		}
	}
}

// isIdle looks at the next states, until it has touched a number of entries. It reports whether it has seen all states,
// and found them idle.
func (n *named) isIdle(e *Engine, entries int, now int64) bool {
	var space []uint64
	for touched := 0; n.shard < table.Shards; touched += 1 + len(space) {
		if touched >= entries {
			return false
		}
		if n.table == len(n.tables) {
			if !n.areCellsIdle(&e.shards[n.shard], now) {
				return false
			}
			n.shard, n.table = n.shard+1, 0
			continue
		}
		rows, next := n.tables[n.table].Copy(n.shard, n.place, space)
		if space = rows.Data; !areIdle(rows, now) {
			return false
		}
		if n.place = next; next == 0 {
			n.table++
		}
	}
	return true
}

// areIdle reports whether all rows are idle, besides their cells.
func areIdle(rows table.Rows, now int64) bool {
	for _, words := range rows.All {
		for _, c := range word.ColumnsOf(rows.Layout) {
			if words[c.At] == table.Elsewhere {
				words[c.At] = table.Fresh
			}
		}
		if !rows.Layout.Idle(words[0], words[1:], now) {
			return false
		}
	}
	return true
}

// areCellsIdle evicts idle cells of a shard, and reports whether none is left.
func (n *named) areCellsIdle(s *shard, now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, states := range n.states {
		if c := states.cells[n.shard]; c != nil {
			if c.sweep(sweepAtCap, now); len(c.places) > 0 {
				return false
			}
		}
	}
	return true
}

// free forgets a name. Its keys count as evicted when names were last looked at.
func (e *Engine) free(n *named) {
	delete(e.names, n.rule)
	e.rules.Delete(n.rule)
	dropped := uint64(0)
	for _, t := range n.tables {
		dropped += t.Dropped() + uint64(t.Len())
		e.tables.Delete(t.name)
	}
	for _, states := range n.states {
		e.states.Delete(states.name)
	}
	for i := range e.shards {
		s := &e.shards[i]
		s.mu.Lock()
		s.cells = slices.DeleteFunc(s.cells, func(c *cells) bool { return slices.Contains(n.states, c.states) })
		s.next, s.lastEviction = 0, max(s.lastEviction, e.idleAt)
		s.evicted += dropped
		dropped = 0
		s.mu.Unlock()
	}
}
