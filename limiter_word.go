package weir

import (
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/clock"
	"github.com/weirflow/weir/internal/table"
)

// quick is the state of a Limiter as one word, under one limit. As long as
// nobody waits, no told instant lies ahead and the state fits a word, a decision
// is one compare-and-swap. Everything else takes the lock and borrows the state:
// then the word reads table.Elsewhere, which sends everyone to the lock.
type quick struct {
	words algorithm.Worder
	base  int64     // words count time from here
	_     [104]byte // the word has a cache line to itself
	word  atomic.Uint64
	_     [56]byte
}

// newQuick begins borrowed; nil if states of the algorithm fit no words.
func newQuick(a algorithm.Algorithm, now int64) *quick {
	words, ok := a.(algorithm.Worder)
	if !ok {
		return nil
	}
	q := &quick{words: words, base: words.AlignWords(saturatingAdd(now, -wordBase))}
	q.word.Store(table.Elsewhere)
	return q
}

// allow decides on the word; it is not done if that takes the lock.
func (q *quick) allow(now, n int64) (allowed, done bool) {
	if q == nil || n < 1 {
		return false, false
	}
	for {
		old := q.word.Load()
		if old == table.Elsewhere {
			return false, false
		}
		next, allowed, ok := allowWord(q.words, old, q.base, now, n)
		if !ok {
			return false, false
		}
		if !allowed || q.word.CompareAndSwap(old, next) {
			return allowed, true
		}
	}
}

// take is allow with the whole answer.
func (q *quick) take(now, n int64, a *algorithm.Answer) (done bool) {
	if q == nil || n < 1 {
		return false
	}
	for {
		old := q.word.Load()
		if old == table.Elsewhere {
			return false
		}
		next, ok := takeWord(q.words, old, q.base, now, n, a)
		if !ok || a.Delay > 0 {
			return false // who is delayed was told an instant
		}
		if !a.Changed || q.word.CompareAndSwap(old, next) {
			return true
		}
		*a = algorithm.Answer{}
	}
}

// enter takes the lock and borrows the state. It tells the time to decide at.
func (l *Limiter) enter(r clock.Reading) (*subject, int64) {
	l.mu.Lock()
	if q := l.quick.Load(); q != nil {
		if old := q.word.Swap(table.Elsewhere); old != table.Elsewhere {
			l.subject.state = q.words.Unpack(old, q.base)
		}
	}
	return &l.subject, r.Latest(&l.newest)
}

// leave gives the state back, if it is a word again, and the lock.
func (l *Limiter) leave(now int64) {
	defer l.mu.Unlock()
	q, s := l.quick.Load(), &l.subject
	if q == nil || s.line != nil || s.told > now {
		return
	}
	if word, ok := q.words.Pack(s.state, q.base); ok {
		q.word.Store(word)
	}
}
