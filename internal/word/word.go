// Package word keeps states that fit in one or two machine words and decides on them without a lock. Single holds the
// state of one subject, and Table the states of many keys under one limit or several. Take and Allow decide on the
// words. The caller borrows a state that they cannot decide on, under a lock of its own, and returns it.
package word

import (
	"math"
	"runtime"
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

// decider decides on the words of one limit.
type decider struct {
	algorithm.WordDecider
	base  int64        // the origin of times in words
	table *table.Table // the table of the words, or nil
}

// result is the outcome of a decision on words.
type result uint8

const (
	decided result = iota
	slow           // needs the lock: the state is not in the words, or does not fit in them
	moved          // another caller has changed the words, moved or seized them: look again
)

// settled returns the result of a look at the first word of an entry: decided if no caller has moved, seized or borrowed it.
func settled(first uint64) result {
	switch first {
	case table.Moved:
		return moved
	case table.Seized:
		runtime.Gosched()
		return moved
	case table.Elsewhere:
		return slow
	}
	return decided
}

// settled also looks at whether the key may have been evicted. Most words are those of a state: the compiler inlines that.
func (d *decider) settled(first uint64, now int64) result {
	if first != table.Fresh && first < table.Seized {
		return decided
	}
	return d.unusual(first, now)
}

func (d *decider) unusual(first uint64, now int64) result {
	if first == table.Fresh && d.mayBeEvicted(now) {
		return slow
	}
	return settled(first)
}

// take decides on one word and writes the answer to a, which must be zero. Without an a it decides like
// [algorithm.Allow].
func (d *decider) take(at *uint64, now, n int64, a *algorithm.Answer) (allowed bool, r result) {
	old := atomic.LoadUint64(at)
	if r = d.settled(old, now); r != decided {
		return false, r
	}
	var next uint64
	var ok bool
	switch {
	case d.Bucket != nil:
		next, allowed, ok = d.Bucket.DecideWord(old, d.base, now, n, a)
	case d.Sliding != nil:
		next, allowed, ok = d.Sliding.DecideWord(old, d.base, now, n, a)
	}
	if !ok {
		next, allowed, ok = d.Decide(old, d.base, now, n, a)
	}
	switch {
	case !ok:
		r = slow
	case next == old || atomic.CompareAndSwapUint64(at, old, next):
		return allowed, decided
	default:
		r = moved
	}
	clearAnswer(a)
	return false, r
}

func clearAnswer(a *algorithm.Answer) {
	if a != nil {
		*a = algorithm.Answer{}
	}
}

// pair is where two words of a bucket are, with the count of loans, which alone bring back an earlier time.
type pair struct {
	words *[2]uint64
	loans *atomic.Uint64
}

// glimpse is two words, read one after the other without seizing them.
type glimpse struct {
	loans         uint64 // so far, read first
	first, second uint64
}

func (p pair) glimpse() glimpse {
	loans, first := p.loans.Load(), atomic.LoadUint64(&p.words[0])
	return glimpse{loans, first, atomic.LoadUint64(&p.words[1])}
}

// takePair decides like take on a glimpse of two words. A refusal writes nothing, so the cores do not pass the memory of
// an exhausted key to each other. An admission seizes the words only to write them. A torn read also gives an answer,
// which takePair drops.
//
// Without a loan, a first word that is there again stood between its two reads, and the second was read meanwhile.
func (d *decider) takePair(at pair, seen glimpse, number uint64, now, n int64, a *algorithm.Answer) (allowed bool, r result) {
	first, second := seen.first, seen.second
	if r = d.settled(first, now); r != decided {
		return false, r
	}
	nextFirst, nextSecond, allowed, ok := d.DecidePair(first, second, number, d.base, now, n, a)
	r = moved
	switch {
	case !ok:
		if atomic.LoadUint64(&at.words[0]) == first {
			r = slow
		}
	case nextFirst == first && nextSecond == second:
		if atomic.LoadUint64(&at.words[0]) == first && at.loans.Load() == seen.loans {
			return allowed, decided
		}
	case atomic.CompareAndSwapUint64(&at.words[0], first, table.Seized):
		if atomic.LoadUint64(&at.words[1]) == second {
			atomic.StoreUint64(&at.words[1], nextSecond)
			atomic.StoreUint64(&at.words[0], nextFirst)
			return allowed, decided
		}
		atomic.StoreUint64(&at.words[0], first)
	}
	clearAnswer(a)
	return false, r
}

// mayBeEvicted reports whether a key that reads Fresh at now may have been evicted after now, or may have a state elsewhere. Then
// only the lock can decide.
func (d *decider) mayBeEvicted(now int64) bool {
	return d.table != nil && (now < d.table.Swept() || d.table.Doubted())
}
