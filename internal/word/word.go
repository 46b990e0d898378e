// Package word keeps states that fit in one machine word and decides on them by compare-and-swap. Single holds the
// state of one subject, and Table the states of many keys. Take and Allow decide on a word. The caller borrows a
// state that they cannot decide on, under a lock of its own, and returns it.
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

// result is the outcome of a decision on one word.
type result uint8

const (
	decided result = iota
	slow           // needs the lock: the state is not in the word, or does not fit in it
	moved          // the word has moved to another segment
)

// take decides on one word and writes the answer to a, which must be zero. It tries again when another caller changes
// the word first. in is the table of the word, or nil. A key that reads Fresh in a table may have been evicted after
// now, and then only the lock can decide.
func take(words algorithm.Worder, in *table.Table, at *atomic.Uint64, base, now, n int64, a *algorithm.Answer) result {
	bucket, isBucket := words.(*algorithm.TokenBucket)
	for {
		old := at.Load()
		if old >= table.Elsewhere || old == table.Fresh && in != nil && now < in.Swept() {
			return unreadable(old)
		}
		var next uint64
		var ok bool
		if isBucket { // the most common limit: a direct call is faster, and keeps a on the stack
			next, ok = bucket.DecideWord(old, base, now, n, a)
		} else {
			next, *a, ok = words.TakeWord(old, base, now, n)
		}
		if !ok {
			return slow
		}
		if !a.Changed || at.CompareAndSwap(old, next) {
			return decided
		}
		*a = algorithm.Answer{}
	}
}

// allow decides like take and returns only whether the cost was admitted.
func allow(words algorithm.Worder, in *table.Table, at *atomic.Uint64, base, now, n int64) (allowed bool, r result) {
	bucket, isBucket := words.(*algorithm.TokenBucket)
	for {
		old := at.Load()
		if old >= table.Elsewhere || old == table.Fresh && in != nil && now < in.Swept() {
			return false, unreadable(old)
		}
		var next uint64
		var ok bool
		if isBucket {
			next, allowed, ok = bucket.AllowWord(old, base, now, n)
		} else {
			next, allowed, ok = words.AllowWord(old, base, now, n)
		}
		if !ok {
			return false, slow
		}
		if !allowed || at.CompareAndSwap(old, next) {
			return allowed, decided
		}
	}
}

// unreadable returns the result for a word that take cannot decide on.
func unreadable(word uint64) result {
	if word == table.Moved {
		return moved
	}
	return slow
}
