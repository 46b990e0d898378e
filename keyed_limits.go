package weir

import (
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/compiled"
	"github.com/weirflow/weir/internal/table"
	"github.com/weirflow/weir/internal/word"
)

// compiledLimit is a limit ready to decide, or the reason it is not.
type compiledLimit struct {
	use       word.Use // on the words of a table
	limit     Limit
	identity  string
	algorithm algorithm.Algorithm
	words     algorithm.Worder // the algorithm, if its states fit in words
	err       error
}

func compileLimit(limit Limit) (*compiledLimit, error) {
	c := &compiledLimit{}
	c.compile(limit)
	return c, c.err
}

func (c *compiledLimit) compile(limit any) {
	c.limit, _ = limit.(Limit)
	c.algorithm, c.err = compileAlone(c.limit)
	if c.err == nil {
		c.identity = identity(c.limit)
		c.algorithm = algorithm.PerKey(c.algorithm)
		if !algorithm.Stateless(c.algorithm) { // a limit without state must not begin the table of words
			c.words, _ = c.algorithm.(algorithm.Worder)
		}
	}
}

// limitSource returns the limit of a key: one limit for all, or the result of a function.
type limitSource[K comparable] struct {
	all      atomic.Pointer[compiledLimit]
	byKey    func(K) Limit
	compiled *compiled.Once[compiledLimit] // the results of the function
	changes  atomic.Uint64                 // number of times that waiting callers were rescheduled
}

func (s *limitSource[K]) limitOf(key K) *compiledLimit {
	if c := s.all.Load(); c != nil {
		return c
	}
	return s.compiled.Of(s.byKey(key))
}

// SetLimit gives every key another limit, and replaces the function of NewKeyedFunc. NewKeyedFunc says what a change
// keeps, and which operation converts the state of a key: SetLimit itself converts none. Waiting callers are
// rescheduled.
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
		k.replaceTable(t, nil, now) // its words mean nothing under the new limit
	}
	k.refresh(now)
	return nil
}

// Refresh applies the current limits of keys with waiting callers. For every other key, the next decision does so.
func (k *Keyed[K]) Refresh() {
	if !k.unmade() {
		k.refresh(k.clock.Now())
	}
}

func (k *Keyed[K]) refresh(now int64) {
	k.limits.changes.Add(1)
	var panicked any
	for i := range k.shards {
		if p := k.shards[i].replan(now, &k.limits); panicked == nil {
			panicked = p
		}
	}
	if panicked != nil {
		panic(panicked)
	}
}

// keyTable holds the words of keys whose limits have one identity.
type keyTable struct {
	words    *table.Table
	column   *word.Column
	identity string
}

// holds reports whether states under the limit are words of t.
func (t *keyTable) holds(limit *compiledLimit) bool {
	return t != nil && limit.words != nil && limit.identity == t.identity
}

// limit returns a limit on the words of t, or nil if its states are not words of t.
func (t *keyTable) limit(c *compiledLimit) *word.Limit {
	if !t.holds(c) {
		return nil
	}
	return c.use.On(t.column, c.words)
}

// tableFor returns the table. It replaces a missing table, or one with another identity than the limit of all keys,
// which a caller with an old limit may have created.
func (k *Keyed[K]) tableFor(limit *compiledLimit, now int64) *keyTable {
	t := k.table.Load()
	if t == nil && limit.words == nil || t.holds(limit) || t != nil && limit != k.limits.all.Load() {
		return t
	}
	var next *keyTable
	if limit.words != nil {
		in := word.NewTable(k.maxKeys)
		next = &keyTable{in.Table, in.AddColumn(limit.words, now), limit.identity}
	}
	k.replaceTable(t, next, now)
	return k.table.Load()
}

// replaceTable replaces the table. Subjects that are not words get an entry in the new one, which would otherwise read like
// that of a new key. Until all of them have one, only the locks decide on keys without words.
func (k *Keyed[K]) replaceTable(t, next *keyTable, now int64) {
	if next != nil {
		next.words.Doubt(true)
		defer next.words.Doubt(false)
	}
	if k.table.CompareAndSwap(t, next) {
		for i := range k.shards {
			k.shards[i].lend(&k.table, next, now)
		}
	}
}
