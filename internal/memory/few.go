package memory

import (
	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/rule"
	"github.com/weirflow/weir/internal/word"
)

// Few is a call of a few requests on the fast path: those whose limits are few, and whose states are in words. The zero
// Few has no requests. All its methods get the same engine.
type Few struct {
	now    int64
	n      int
	limits int
	keys   [word.MaxRow]string
	counts [word.MaxRow]*ruleCounts
	asks   [word.MaxRow]word.Ask
}

// Add adds a request, which must be checked. It returns false if the call needs the slow path.
func (f *Few) Add(e *Engine, r *rule.Compiled, key string, cost int64) (ok bool) {
	if f.limits += len(r.Parts); f.limits > word.MaxRow || r.Alone() {
		return false
	}
	if f.n == 0 {
		f.now = e.clock.Now()
	}
	u := e.rowOf(r, f.now)
	if u.row == nil {
		return false
	}
	for i := range f.n {
		if f.counts[i] == u.counts && f.keys[i] == key { // rules of one name: to be merged, or refused
			return false
		}
	}
	f.keys[f.n], f.counts[f.n] = key, u.counts
	f.asks[f.n] = word.Ask{Row: u.row, Hash: e.seed.Hash(key), N: cost}
	f.n++
	return true
}

// Take decides like [Engine.Take], but leaves it to the caller to Count. If done is false, nothing has happened, and the
// slow path decides. a must be zero.
func (f *Few) Take(a *algorithm.Answer) (done bool) { return word.TakeAll(f.asks[:f.n], f.now, a) }

// Count counts the decision, as [Decided.Count] does: after the caller has written its answer.
func (f *Few) Count(e *Engine, allowed bool, binding int) {
	for i := range f.n {
		f.counts[i].count(e, f.keys[i], allowed || i != binding, f.now)
	}
}
