package memory

import (
	"strings"
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/rule"
	"github.com/weirflow/weir/internal/table"
	"github.com/weirflow/weir/internal/word"
)

// limitStates keeps the states of one limit of a rule: as words where they fit,
// otherwise as cells.
type limitStates struct {
	word.Table // without words if no state of the limit fits in one
	engine     *Engine
	name       string // of the limit's states, and a suffix if keys share them
	counts     *ruleCounts
	maxKeys    int                            // 0 means no bound, less than 0 no room
	cells      [table.Shards]*cells           // under the lock of the shard; nil until it has some
	shared     [2]atomic.Pointer[limitStates] // of keys without room
}

func (s *limitStates) hasWords() bool { return s.Words != nil }

// pack returns the word of a state, if it is of the rate of the words and nothing besides the word matters.
func (s *limitStates) pack(state algorithm.State, now int64) (word uint64, ok bool) {
	if algorithm.JustConverted(s.Writer, state, now) {
		return 0, false
	}
	return algorithm.PackSettled(s.Writer, state, s.Base, now)
}

// Home caches the states of a rule in the engine that used it last.
type Home struct {
	parts []atomic.Pointer[limitStates]
}

// NewHome returns the home of a rule with n parts, for [rule.Compiled].
func NewHome(n int) *Home { return &Home{make([]atomic.Pointer[limitStates], n)} }

func homeOf(r *rule.Compiled) *Home { return r.Home.(*Home) }

// statesOf returns the states of a part, from the home or by name.
func (e *Engine) statesOf(p *rule.Part, home *atomic.Pointer[limitStates], now int64) *limitStates {
	if s := home.Load(); s != nil && s.engine == e {
		return s
	}
	s := e.statesNamed(p.State, p, now)
	home.Store(s)
	return s
}

// statesNamed returns the states of a name, and makes them like those of p if needed.
func (e *Engine) statesNamed(name string, p *rule.Part, now int64) *limitStates {
	found, ok := e.states.Load(name)
	if !ok {
		found, _ = e.states.LoadOrStore(name, e.newStates(name, p.Words, now))
	}
	return found.(*limitStates)
}

// newStates makes the states of a name; words is nil if no state fits in a word.
func (e *Engine) newStates(name string, words algorithm.Worder, now int64) *limitStates {
	ruleName, _, _ := strings.Cut(name, "\x00")
	maxKeys := e.maxKeysOf(name)
	s := &limitStates{engine: e, name: name, counts: e.countsOf(ruleName), maxKeys: maxKeys}
	if words != nil {
		s.Table = word.NewTable(words, now, maxKeys)
	}
	return s
}
