package word

import (
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// Table keeps the states of one limit of many keys, as words. A decision is a
// look-up and a compare-and-swap. Whatever needs more borrows the state under
// the lock of the key's shard: meanwhile the word reads table.Elsewhere, which
// sends every other caller to the same lock. The zero value has no room.
type Table struct {
	Base  int64 // words count time from here
	Words *table.Table
}

// idleGrace is how long a key stays in its table after it has become idle: one
// that is used again soon need not be put in anew.
const idleGrace = int64(time.Second)

// NewTable makes a table for the states of all limits that share their identity
// with words; 0 keys is no cap.
func NewTable(words algorithm.Worder, now int64, maxKeys int) Table {
	base := baseFor(words, now)
	return Table{Base: base, Words: table.New(table.Options{
		Idle:    func(word uint64, now int64) bool { return words.IdleWord(word, base, now-idleGrace) },
		MaxKeys: maxKeys,
	})}
}

// Take decides on the word of h and writes the answer to a, which is zero; it is
// not done if that takes the lock.
func (t *Table) Take(words algorithm.Worder, h table.Hash, now, n int64, a *algorithm.Answer) (done bool) {
	for {
		at := t.Words.Claim(h, now)
		if at == nil {
			return false
		}
		if r := take(words, t.Words, at, t.Base, now, n, a); r != moved {
			return r == decided
		}
	}
}

// Allow is Take for a bool.
func (t *Table) Allow(words algorithm.Worder, h table.Hash, now, n int64) (allowed, done bool) {
	for {
		at := t.Words.Claim(h, now)
		if at == nil {
			return false, false
		}
		if allowed, r := allow(words, t.Words, at, t.Base, now, n); r != moved {
			return allowed, r == decided
		}
	}
}

// Borrow takes the word of h out of the table. It fails if the state is elsewhere
// already, which the word then reads, or there is no room for it, which reads
// table.Moved. The shard's lock is held until Put.
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

// Put ends a borrowing with a word. The shard's lock is held. A borrowed word is
// never idle, so it is still there.
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

// Read is the word of h, Fresh if there is none.
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
