package word

import (
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// Table holds the states of many keys under one limit, as words. A decision is a look-up and a compare-and-swap.
// Other operations borrow the state under the lock of the key's shard; the word then reads table.Elsewhere, which
// sends every other caller to that lock. The zero value has no room.
type Table struct {
	Base   int64 // the origin of times in words
	Words  *table.Table
	Writer algorithm.Worder // the limit whose words these are; other rates need the lock
}

// idleGrace is how long an idle key stays in its table, so that a key used again soon need not be inserted again.
const idleGrace = int64(time.Second)

// NewTable returns a table for all limits that share their identity with words. A maxKeys of 0 means no bound.
func NewTable(words algorithm.Worder, now int64, maxKeys int) Table {
	base := baseFor(words, now)
	return Table{Base: base, Writer: words, Words: table.New(table.Options{
		Idle:    func(word uint64, now int64) bool { return words.IdleWord(word, base, now-idleGrace) },
		MaxKeys: maxKeys,
	})}
}

// Take decides on the word of h and writes the answer to a, which must be zero. done is false if the decision needs
// the lock.
func (t *Table) Take(words algorithm.Worder, h table.Hash, now, n int64, a *algorithm.Answer) (done bool) {
	if !algorithm.SameWords(words, t.Writer) {
		return false
	}
	d := newDecider(words, t.Base, t.Words)
	for {
		at := t.Words.Claim(h, now)
		if at == nil {
			return false
		}
		if done = d.take(at, now, n, a); done || at.Load() != table.Moved {
			return done
		}
	}
}

// Allow decides like Take and returns only whether the cost was admitted.
func (t *Table) Allow(words algorithm.Worder, h table.Hash, now, n int64) (allowed, done bool) {
	if !algorithm.SameWords(words, t.Writer) {
		return false, false
	}
	d := newDecider(words, t.Base, t.Words)
	for {
		at := t.Words.Claim(h, now)
		if at == nil {
			return false, false
		}
		if allowed, done = d.allow(at, now, n); done || at.Load() != table.Moved {
			return allowed, done
		}
	}
}

// Borrow removes the word of h from the table. ok is false if the state is already elsewhere, and then word is
// table.Elsewhere; or if there is no room, and then word is table.Moved. The caller holds the shard's lock until Put.
func (t *Table) Borrow(h table.Hash, now int64) (word uint64, ok bool) {
	for {
		at := t.Words.Claim(h, now)
		if at == nil {
			return table.Moved, false
		}
		old := at.Load()
		switch {
		case old == table.Moved:
			continue
		case old == table.Elsewhere:
			return old, false
		case at.CompareAndSwap(old, table.Elsewhere):
			return old, true
		}
	}
}

// Put returns a borrowed word. The caller holds the shard's lock. A borrowed word is never idle, so the table still
// has it.
func (t *Table) Put(h table.Hash, word uint64) {
	for {
		at := t.Words.Find(h)
		if at == nil {
			return
		}
		if at.Load() != table.Moved && at.CompareAndSwap(table.Elsewhere, word) {
			return
		}
	}
}

// Read returns the word of h, or Fresh if there is none.
func (t *Table) Read(h table.Hash) uint64 {
	for {
		at := t.Words.Find(h)
		if at == nil {
			return table.Fresh
		}
		if word := at.Load(); word != table.Moved {
			return word
		}
	}
}
