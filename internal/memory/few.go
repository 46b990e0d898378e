package memory

import (
	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/rule"
	"github.com/weirflow/weir/internal/table"
	"github.com/weirflow/weir/internal/word"
)

// Few is a call of a few requests on the fast path: those whose limits are few, and whose states are in words.
type Few struct {
	engine *Engine
	now    int64
	n      int
	limits int
	rules  [word.MaxRow]*rule.Compiled
	keys   [word.MaxRow]string
	uses   [word.MaxRow]*rowUse
	asks   [word.MaxRow]word.Ask
}

// Few returns a call without requests. It reads the clock.
func (e *Engine) Few() (f Few) {
	f.engine, f.now = e, e.clock.Now()
	return f
}

// Add adds a request, which must be checked. It returns false if the call needs the slow path.
func (f *Few) Add(r *rule.Compiled, key string, cost int64) (ok bool) {
	if f.limits += len(r.Parts); f.limits > word.MaxRow || r.Alone() {
		return false
	}
	for i := range f.n {
		if f.rules[i].Name == r.Name && f.keys[i] == key { // to be merged, or refused
			return false
		}
	}
	u := f.engine.rowOf(r, f.now)
	if u.row == nil {
		return false
	}
	f.rules[f.n], f.keys[f.n], f.uses[f.n] = r, key, u
	f.asks[f.n] = word.Ask{Row: u.row, Hash: f.hash(key), N: cost}
	f.n++
	return true
}

// hash returns the hash of a key, of which neighbouring requests often have the same.
func (f *Few) hash(key string) table.Hash {
	if f.n > 0 && f.keys[f.n-1] == key {
		return f.asks[f.n-1].Hash
	}
	return f.engine.seed.Hash(key)
}

// Take decides like [Engine.Take]. If done is false, nothing has happened, and the slow path decides. a must be zero.
func (f *Few) Take(a *algorithm.Answer) (done bool) {
	if !word.TakeAll(f.asks[:f.n], f.now, a) {
		return false
	}
	for i := range f.n {
		f.uses[i].counts.count(f.engine, f.keys[i], a.Allowed || i != a.Binding, f.now)
	}
	return true
}
