package weir

import (
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// wordTable keeps those states of one limit of many keys that fit a word: nearly
// all. A decision on one is a look-up and a compare-and-swap, without a lock.
// Whatever needs more borrows the state under the lock of the key's shard;
// meanwhile the word reads table.Elsewhere, which sends everyone else to the
// same lock.
type wordTable struct {
	base  int64 // words count time from here
	table *table.Table
}

// wordBase is how far before its first decision a table begins, so that a clock
// that is set back a little still fits its words.
const wordBase = int64(24 * time.Hour)

// idleGrace is how long a key stays in its table after it has become idle: one
// that is used again soon need not be put in anew.
const idleGrace = int64(time.Second)

// newWordTable makes a table for the states of all limits that share their
// identity with words, with a cap on keys.
func newWordTable(words algorithm.Worder, now int64, maxKeys int) wordTable {
	base := words.AlignWords(saturatingAdd(now, -wordBase))
	return wordTable{base: base, table: table.New(table.Options{
		Idle:    func(word uint64, now int64) bool { return words.IdleWord(word, base, now-idleGrace) },
		MaxKeys: maxKeys,
	})}
}

// take decides on the word of h and writes the answer to a, which is zero; it is
// not done if the state is no word, or the cost asks for more than a decision.
func (t *wordTable) take(words algorithm.Worder, h table.Hash, now, n int64, a *algorithm.Answer) (done bool) {
	for {
		word, old := t.word(h, now)
		if old == table.Elsewhere {
			return false
		}
		next, ok := takeWord(words, old, t.base, now, n, a)
		if !ok {
			return false
		}
		if !a.Changed || word.CompareAndSwap(old, next) {
			return true
		}
		*a = algorithm.Answer{}
	}
}

// takeWord calls the limit that most choose without a detour, which lets a stay
// on the stack.
func takeWord(words algorithm.Worder, word uint64, base, now, n int64, a *algorithm.Answer) (next uint64, ok bool) {
	if b, isBucket := words.(*algorithm.TokenBucket); isBucket {
		return b.DecideWord(word, base, now, n, a)
	}
	next, *a, ok = words.TakeWord(word, base, now, n)
	return next, ok
}

// allowWord is takeWord for a bool.
func allowWord(words algorithm.Worder, word uint64, base, now, n int64) (next uint64, allowed, ok bool) {
	if b, isBucket := words.(*algorithm.TokenBucket); isBucket {
		return b.AllowWord(word, base, now, n)
	}
	return words.AllowWord(word, base, now, n)
}

// allow is take for a bool.
func (t *wordTable) allow(words algorithm.Worder, h table.Hash, now, n int64) (allowed, done bool) {
	for {
		word, old := t.word(h, now)
		if old == table.Elsewhere {
			return false, false
		}
		next, allowed, ok := allowWord(words, old, t.base, now, n)
		if !ok {
			return false, false
		}
		if !allowed || word.CompareAndSwap(old, next) {
			return allowed, true
		}
	}
}

// word is that of h, and what it reads. A key that may have been forgotten later
// than now, or that finds no room, reads Elsewhere: the long way knows what to do.
func (t *wordTable) word(h table.Hash, now int64) (*atomic.Uint64, uint64) {
	for {
		word := t.table.Claim(h, now)
		if word == nil {
			return nil, table.Elsewhere
		}
		old := word.Load()
		if old == table.Fresh && now < t.table.Swept() {
			return word, table.Elsewhere
		}
		if old != table.Moved {
			return word, old
		}
	}
}

// borrow takes the state of h out of the table, and its word. It fails if the
// state is elsewhere already, which the word then reads, or there is no room for
// it, which reads table.Moved. The shard's lock is held until put.
func (t *wordTable) borrow(h table.Hash, now int64) (word uint64, ok bool) {
	for {
		at := t.table.Claim(h, now)
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

// put ends a borrowing with a word. The shard's lock is held. What is borrowed
// is never idle, so it is still there.
func (t *wordTable) put(h table.Hash, word uint64, now int64) {
	for {
		at := t.table.Find(h)
		if at == nil {
			return
		}
		if at.Load() != table.Moved && at.CompareAndSwap(table.Elsewhere, word) {
			return
		}
	}
}
