// Package word keeps states that fit in one or two machine words and decides on them without a lock. Single holds the
// state of one subject, and Table the states of many keys under one limit or several. Take and Allow decide on the
// words. The caller borrows a state that they cannot decide on, under a lock of its own, and returns it.
package word

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// Slack is how far the base of words lies before the first decision, so that words can hold the times of a clock that
// is set back a little.
const Slack = int64(24 * time.Hour)

// baseFor returns the origin of times in words, for a first decision at now.
func baseFor(words algorithm.Worder, now int64) int64 {
	if now < math.MinInt64+Slack {
		return words.AlignWords(math.MinInt64)
	}
	return words.AlignWords(now - Slack)
}

// decider decides on the words of one limit. The common limit has a field of its own, because a direct call is faster
// and keeps an answer on the stack.
type decider struct {
	bucket *algorithm.TokenBucket // words, if that is its type
	tokens *algorithm.TokenBucket // of a bucket of either kind, which allows without a delay
	words  algorithm.Worder
	base   int64        // the origin of times in words
	table  *table.Table // the table of the words, or nil
}

func newDecider(words algorithm.Worder, base int64, table *table.Table) decider {
	d := decider{words: words, base: base, table: table}
	switch l := words.(type) {
	case *algorithm.TokenBucket:
		d.bucket, d.tokens = l, l
	case *algorithm.LeakyBucket:
		d.tokens = &l.TokenBucket
	}
	return d
}

// take decides on one word and writes the answer to a, which must be zero. It tries again when another caller changes
// the word first. done is false if the decision needs the lock, or if the word has moved or is held.
func (d *decider) take(at *uint64, now, n int64, a *algorithm.Answer) (done bool) {
	for {
		old := atomic.LoadUint64(at)
		if old >= table.Held || old == table.Fresh && d.mayBeEvicted(now) {
			return false
		}
		var next uint64
		var ok bool
		if d.bucket != nil { // decideWord, with one call less
			next, ok = d.bucket.DecideWord(old, d.base, now, n, a)
		} else {
			next, ok = d.decideWord(old, now, n, a)
		}
		if !ok {
			*a = algorithm.Answer{}
			return false
		}
		if !a.Changed || atomic.CompareAndSwapUint64(at, old, next) {
			return true
		}
		*a = algorithm.Answer{}
	}
}

// decideWord decides on a word and writes the answer to a, which must be zero. A call of a known type keeps the answer
// on the stack and copies none.
func (d *decider) decideWord(word uint64, now, n int64, a *algorithm.Answer) (next uint64, ok bool) {
	if d.bucket != nil {
		return d.bucket.DecideWord(word, d.base, now, n, a)
	}
	switch l := d.words.(type) {
	case *algorithm.FixedWindow:
		return l.DecideWord(word, d.base, now, n, a)
	case *algorithm.SlidingWindow:
		return l.DecideWord(word, d.base, now, n, a)
	case *algorithm.Cycle:
		return l.DecideWord(word, d.base, now, n, a)
	case *algorithm.LeakyBucket:
		return l.DecideWord(word, d.base, now, n, a)
	}
	next, *a, ok = d.words.TakeWord(word, d.base, now, n)
	return next, ok
}

// allow decides like take and returns only whether the cost was admitted.
func (d *decider) allow(at *uint64, now, n int64) (allowed, done bool) {
	for {
		old := atomic.LoadUint64(at)
		if old >= table.Held || old == table.Fresh && d.mayBeEvicted(now) {
			return false, false
		}
		var next uint64
		var ok bool
		if d.bucket != nil {
			next, allowed, ok = d.bucket.AllowWord(old, d.base, now, n)
		} else {
			next, allowed, ok = d.words.AllowWord(old, d.base, now, n)
		}
		if !ok {
			return false, false
		}
		if !allowed || atomic.CompareAndSwapUint64(at, old, next) {
			return allowed, true
		}
	}
}

// decidePair decides like decideWord on two words of a bucket.
func (d *decider) decidePair(first, second, number uint64, now, n int64, a *algorithm.Answer) (_, _ uint64, ok bool) {
	if d.bucket != nil {
		return d.bucket.DecidePair(first, second, number, d.base, now, n, a)
	}
	return d.words.(*algorithm.LeakyBucket).DecidePair(first, second, number, d.base, now, n, a)
}

// mayBeEvicted reports whether a key that reads Fresh at now may have been evicted after now, or may have a state elsewhere. Then
// only the lock can decide.
func (d *decider) mayBeEvicted(now int64) bool {
	return d.table != nil && (now < d.table.Swept() || d.table.Doubted())
}
