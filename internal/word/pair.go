package word

import (
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// pair is where two words of a bucket are, with the count of loans, which alone bring back an earlier time.
type pair struct {
	words *[2]uint64
	loans *atomic.Uint64
}

// glimpse is two words, read one after the other without a hold.
type glimpse struct {
	Words
	loans uint64 // so far, read first
}

func (p pair) glimpse() glimpse {
	loans := p.loans.Load()
	first := atomic.LoadUint64(&p.words[0])
	return glimpse{Words{first, atomic.LoadUint64(&p.words[1])}, loans}
}

// stood reports whether the words of a refusal were there at one instant, given the first of them and the loans before.
// Without a loan, a first word that is there again stood between its two reads, and the second was read meanwhile.
func (p pair) stood(first, loans uint64) bool {
	return atomic.LoadUint64(&p.words[0]) == first && p.loans.Load() == loans
}

// takePair decides on a glimpse. A refusal writes nothing, so the cores do not pass the memory of an exhausted key to
// each other. An admission holds the words only to write them. The result is moved if another caller holds the words or
// has changed them. Words of two instants also give an answer, which takePair drops.
func (d *decider) takePair(at pair, seen glimpse, number uint64, now, n int64, a *algorithm.Answer) result {
	if seen.First >= table.Held || seen.First == table.Fresh && d.mayBeEvicted(now) {
		return moved
	}
	var next Words
	var ok bool
	if d.bucket != nil { // decidePair, with one call less
		next.First, next.Second, ok = d.bucket.DecidePair(seen.First, seen.Second, number, d.base, now, n, a)
	} else {
		next.First, next.Second, ok = d.decidePair(seen.First, seen.Second, number, now, n, a)
	}
	switch {
	case !ok:
	case !a.Changed:
		if at.stood(seen.First, seen.loans) {
			return decided
		}
	case atomic.CompareAndSwapUint64(&at.words[0], seen.First, table.Held):
		if atomic.LoadUint64(&at.words[1]) == seen.Second {
			table.Write(&at.words[1], next.Second)
			table.Write(&at.words[0], next.First)
			return decided
		}
		table.Write(&at.words[0], seen.First)
	}
	*a = algorithm.Answer{}
	return moved
}

// allowPair decides on the two words and returns only whether the cost was admitted. A refusal holds nothing; an admission
// is decided while it holds the words, which takes less time than a glimpse.
func (l *Limit) allowPair(at pair, now, n int64) (allowed bool, r result) {
	b, number := l.tokens, uint64(l.number)
	if n != 1 && l.refusesCost(at, number, now, n) {
		return false, decided
	}
	loans, first := at.loans.Load(), atomic.LoadUint64(&at.words[0])
	if excess := b.Excess(first, number, l.base, now, n); excess > 0 || excess > -algorithm.PairStep &&
		b.Exceeds(excess, atomic.LoadUint64(&at.words[1])) && at.stood(first, loans) {
		return false, decided
	}
	first, held := table.TryHold(&at.words[0])
	if !held {
		if first, held = table.HoldWord(&at.words[0], false); !held {
			return false, unheld(first)
		}
	}
	if first == table.Fresh && l.mayBeEvicted(now) {
		table.Write(&at.words[0], first)
		return false, slow
	}
	next, second, allowed, ok := b.AllowPair(first, at.words[1], number, l.base, now, n)
	if !ok {
		allowed, r = false, slow
	} else if allowed {
		first = next
		table.Write(&at.words[1], second)
	}
	table.Write(&at.words[0], first)
	return allowed, r
}

// refusesCost reports whether a glimpse tells that a cost other than one is refused.
func (d *decider) refusesCost(at pair, number uint64, now, n int64) bool {
	seen := at.glimpse()
	if !d.tokens.MayRefusePair(seen.First, d.base, now, n) {
		return false
	}
	_, _, allowed, ok := d.tokens.AllowPair(seen.First, seen.Second, number, d.base, now, n)
	return ok && !allowed && at.stood(seen.First, seen.loans)
}
