package weir

import (
	"sync"
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/word"
)

// compiledLimit is a limit ready to decide, or the reason why it is not.
type compiledLimit struct {
	limit     Limit
	identity  string
	algorithm algorithm.Algorithm
	words     algorithm.Worder // the algorithm, if its states fit words
	err       error
}

func compileLimit(limit Limit) (*compiledLimit, error) {
	a, err := compile(limit)
	if err == nil && limit.kind().oneSubject == yes {
		err = &LimitError{Limit: limit.String(), Field: "keyed", Code: CodeOneSubject, Reason: whyOneSubject}
	}
	c := &compiledLimit{limit: limit, algorithm: a, err: err}
	if err == nil {
		c.identity = identity(limit)
		if !algorithm.Stateless(a) { // what has no state must not begin the table of words
			c.words, _ = a.(algorithm.Worder)
		}
	}
	return c, err
}

// limitSource tells the limit of a key: one for all, or by a function whose
// answers are compiled once.
type limitSource[K comparable] struct {
	all      atomic.Pointer[compiledLimit]
	byKey    func(K) Limit
	compiled sync.Map // Limit to *compiledLimit
	count    atomic.Int64
	changes  atomic.Uint64 // how often the waiting callers were planned anew
}

// maxCompiled bounds what a function that never answers the same twice can make
// us remember; beyond it a limit is compiled at each decision.
const maxCompiled = 4096

func (s *limitSource[K]) limitOf(key K) *compiledLimit {
	if c := s.all.Load(); c != nil {
		return c
	}
	limit := s.byKey(key)
	if c, ok := s.compiled.Load(limit); ok {
		return c.(*compiledLimit)
	}
	c, _ := compileLimit(limit)
	if s.count.Load() < maxCompiled {
		known, loaded := s.compiled.LoadOrStore(limit, c)
		if !loaded {
			s.count.Add(1)
		}
		c = known.(*compiledLimit)
	}
	return c
}

// SetLimit gives every key another limit; with NewKeyedFunc, instead of the
// function. NewKeyedFunc says what a change keeps. The waiting callers are
// planned anew.
func (k *Keyed[K]) SetLimit(limit Limit) error {
	if k.unmade() {
		return k.notMade("set limit")
	}
	compiled, err := compileLimit(limit)
	if err != nil {
		return err
	}
	now := k.clock.Now()
	k.limits.all.Store(compiled)
	if t := k.table.Load(); t != nil && t.identity != compiled.identity {
		k.table.CompareAndSwap(t, nil) // its words mean nothing to the new limit
	}
	k.refresh(now)
	return nil
}

// Refresh asks anew for the limits of the keys that have waiting callers. Every
// other key is asked about at its next decision anyway.
func (k *Keyed[K]) Refresh() {
	if !k.unmade() {
		k.refresh(k.clock.Now())
	}
}

func (k *Keyed[K]) refresh(now int64) {
	k.limits.changes.Add(1)
	var panicked any
	for i := range k.shards {
		if p := k.shards[i].replan(now, k.limits.limitOf); panicked == nil {
			panicked = p
		}
	}
	if panicked != nil {
		panic(panicked)
	}
}

// keyTable keeps the words of the keys whose limit has one identity.
type keyTable struct {
	word.Table
	identity string
	first    *compiledLimit // the limit that it was begun with
}

// holds says that states under the limit are words of t.
func (t *keyTable) holds(limit *compiledLimit) bool {
	return t != nil && (limit == t.first || limit.words != nil && limit.identity == t.identity)
}

// tableFor is the table: the one that there is, unless there is none or it is of
// another identity than the limit of all keys. A caller that still has the limit
// before may have begun that one.
func (k *Keyed[K]) tableFor(limit *compiledLimit, now int64) *keyTable {
	t := k.table.Load()
	if t == nil && limit.words == nil || t.holds(limit) || t != nil && limit != k.limits.all.Load() {
		return t
	}
	var next *keyTable
	if limit.words != nil {
		next = &keyTable{word.NewTable(limit.words, now, k.maxKeys), limit.identity, limit}
	}
	k.table.CompareAndSwap(t, next)
	return k.table.Load()
}
