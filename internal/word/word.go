// Package word keeps the states that fit one word, and decides on them by
// compare-and-swap: Single is the state of one subject, Table those of many keys.
// Take and Allow decide on a word; a state that they cannot decide on is
// borrowed under a lock of the caller and put back afterwards.
package word

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// Slack is how far before its first decision the base of words lies, so that a
// clock that is set back a little still fits them.
const Slack = int64(24 * time.Hour)

// baseFor is the instant that words count time from, for a first decision at now.
func baseFor(words algorithm.Worder, now int64) int64 {
	if now < math.MinInt64+Slack {
		return words.AlignWords(math.MinInt64)
	}
	return words.AlignWords(now - Slack)
}

// result says what became of a decision on one word.
type result uint8

const (
	decided result = iota
	slow           // it takes the lock: the state is not in the word, or does not fit it
	moved          // the word is in another place by now
)

// take decides on one word, again after each swap that another caller won, and
// writes the answer to a, which is zero. The word is of a table, or of is nil: a
// key that reads Fresh there may have been evicted later than now.
func take(words algorithm.Worder, of *table.Table, at *atomic.Uint64, base, now, n int64, a *algorithm.Answer) result {
	for {
		old := at.Load()
		if old >= table.Elsewhere || old == table.Fresh && of != nil && now < of.Swept() {
			return unreadable(old)
		}
		next, ok := takeWord(words, old, base, now, n, a)
		if !ok {
			return slow
		}
		if !a.Changed || at.CompareAndSwap(old, next) {
			return decided
		}
		*a = algorithm.Answer{}
	}
}

// allow is take for a bool.
func allow(words algorithm.Worder, of *table.Table, at *atomic.Uint64, base, now, n int64) (allowed bool, r result) {
	for {
		old := at.Load()
		if old >= table.Elsewhere || old == table.Fresh && of != nil && now < of.Swept() {
			return false, unreadable(old)
		}
		next, allowed, ok := allowWord(words, old, base, now, n)
		if !ok {
			return false, slow
		}
		if !allowed || at.CompareAndSwap(old, next) {
			return allowed, decided
		}
	}
}

// unreadable says what to do about a word that cannot be decided on.
func unreadable(word uint64) result {
	if word == table.Moved {
		return moved
	}
	return slow
}

// takeWord calls the token bucket, which most callers choose, without an
// interface: that lets a stay on the stack.
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
