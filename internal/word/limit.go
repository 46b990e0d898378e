package word

import (
	"runtime"
	"sync/atomic"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// Limit is one limit of a column, with what it needs to decide.
//
// A decision under one of many limits waits for the memory of the limit. The fields that most decisions read are
// therefore in its first 128 bytes. A Limit must not be copied.
type Limit struct {
	decider
	*Column
	number   uint32 // of the rate of a bucket
	numbered bool   // words of the rate can be told from others; if not, every decision needs the lock
	fine     bool   // the states of the rate need two words
	oneWord  bool   // entries of one word are those of the limit

	own   algorithm.TokenBucket // the common limit
	pairs algorithm.Pairer      // the limit, if it is a bucket of any kind
}

// Limit returns a limit of the column.
func (c *Column) Limit(words algorithm.Worder) *Limit {
	l := &Limit{}
	l.init(c, words)
	return l
}

// init makes a zero Limit a limit of the column.
func (l *Limit) init(c *Column, words algorithm.Worder) {
	l.decider, l.Column = newDecider(words, c.Base, c.in.Table), c
	l.numbered, l.oneWord = true, c.index == 0
	if l.bucket != nil {
		l.own = *l.bucket
		l.bucket, l.tokens, l.words = &l.own, &l.own, &l.own
	}
	l.pairs, _ = l.words.(algorithm.Pairer)
	if l.pairs == nil {
		l.numbered = algorithm.RateOf(words) == algorithm.RateOf(c.like)
		l.oneWord = l.oneWord && l.numbered
		return
	}
	var number int
	number, l.numbered = c.rates.number(l.pairs)
	l.number, l.fine = uint32(number), algorithm.RateOf(words).NeedsPair()
	if number != 0 || l.fine || !l.numbered {
		l.oneWord = false
		l.numbered = l.numbered && c.Widen()
	}
}

// Words returns the limit.
func (l *Limit) Words() algorithm.Worder { return l.words }

// Take decides on the words of h and writes the answer to a, which must be zero. done is false if the decision needs
// the lock.
func (l *Limit) Take(h table.Hash, now, n int64, a *algorithm.Answer) (done bool) {
	return l.TakeIn(l.table, h, now, n, a)
}

// TakeIn works like Take for a caller that has the table of the words. The search for the entry then does not wait for
// the memory of l.
func (l *Limit) TakeIn(words *table.Table, h table.Hash, now, n int64, a *algorithm.Answer) (done bool) {
	for e := words.Claim(h, now); !e.None(); e = l.table.Claim(h, now) {
		if len(e.Words) == 1 && l.oneWord {
			if done = l.take(&e.Words[0], now, n, a); done || !unsettled(e.First()) {
				return done
			}
			continue
		}
		if r := l.takeHeld(e, h, now, n, a); r != moved {
			return r == decided
		}
	}
	return false
}

// AllowIn decides like TakeIn and returns only whether the cost was admitted.
func (l *Limit) AllowIn(words *table.Table, h table.Hash, now, n int64) (allowed, done bool) {
	for e := words.Claim(h, now); !e.None(); e = l.table.Claim(h, now) {
		if len(e.Words) == 1 && l.oneWord {
			at := &e.Words[0]
			if old := atomic.LoadUint64(at); l.bucket != nil && old < table.Held && old != table.Fresh {
				next, allowed, ok := l.bucket.AllowWord(old, l.base, now, n) // as allow does, with one call less
				if ok && (!allowed || atomic.CompareAndSwapUint64(at, old, next)) {
					return allowed, true
				}
			}
			if allowed, done = l.allow(at, now, n); done || !unsettled(e.First()) {
				return allowed, done
			}
			continue
		}
		if allowed, r := l.allowHeld(e, h, now, n); r != moved {
			return allowed, r == decided
		}
	}
	return false, false
}

// Within decides like that of a Single. A limit with delays may admit what waits, so the lock tells.
func (l *Limit) Within(h table.Hash, now, n, longest int64) (need int64, done bool) {
	var a algorithm.Answer
	if longest == algorithm.Never || algorithm.Delays(l.words) || !l.Take(h, now, n, &a) {
		return 0, false
	}
	return a.RetryAfter, a.Allowed || tooLong(&a, longest)
}

// result is the outcome of a decision on a held entry.
type result uint8

const (
	decided result = iota
	slow           // needs the lock: the state is not in the words, or does not fit in them
	moved          // another caller has moved the words: look again
	wide           // not one word for each key
)

// unsettled reports whether another caller has moved an entry of one word, or holds it. If so, it lets that caller go on.
func unsettled(first uint64) bool {
	if first == table.Held {
		runtime.Gosched()
	}
	return first == table.Moved || first == table.Held
}

// takeHeld decides while it holds the entry, unless takePair has decided.
func (l *Limit) takeHeld(e table.Entry, h table.Hash, now, n int64, a *algorithm.Answer) result {
	p, ok := l.placeIn(l.in.layoutOf(e))
	if !ok {
		return l.upgrade(h, now)
	}
	if p.at == 0 && p.width == 2 {
		at := l.pairAt(e, h)
		if r := l.takePair(at, at.glimpse(), uint64(l.number), now, n, a); r != moved {
			return r
		}
	}
	first, held := e.Hold(false)
	if !held {
		return unheld(first)
	}
	words, r := l.readable(e, p, first, now)
	if r == decided {
		if words, ok = l.decide(words, p.width, now, n, a); !ok {
			*a = algorithm.Answer{}
			r = slow
		} else if a.Changed {
			first = store(e, p, first, words)
		}
	}
	e.Release(first)
	return r
}

// decide decides on words of a width.
func (l *Limit) decide(w Words, width uint8, now, n int64, a *algorithm.Answer) (_ Words, ok bool) {
	switch {
	case width == 1:
		w.First, ok = l.decideWord(w.First, now, n, a)
	default:
		w.First, w.Second, ok = l.decidePair(w.First, w.Second, uint64(l.number), now, n, a)
	}
	return w, ok
}

// allowHeld decides like takeHeld, or like takePair, and returns only whether the cost was admitted.
func (l *Limit) allowHeld(e table.Entry, h table.Hash, now, n int64) (allowed bool, r result) {
	p, ok := l.placeIn(l.in.layoutOf(e))
	if !ok {
		return false, l.upgrade(h, now)
	}
	if p.at == 0 && p.width == 2 {
		return l.allowPair(l.pairAt(e, h), now, n)
	}
	first, held := table.TryHold(&e.Words[0])
	if !held {
		if first, held = e.Hold(false); !held {
			return false, unheld(first)
		}
	}
	words, r := l.readable(e, p, first, now)
	if r == decided {
		if p.width == 1 {
			words.First, allowed, ok = l.words.AllowWord(words.First, l.base, now, n)
		} else {
			words.First, words.Second, allowed, ok = l.tokens.AllowPair(words.First, words.Second, uint64(l.number), l.base, now, n)
		}
		if !ok {
			allowed, r = false, slow
		} else if allowed {
			first = store(e, p, first, words)
		}
	}
	e.Release(first)
	return allowed, r
}

// pairAt returns the two words at the start of an entry.
func (l *Limit) pairAt(e table.Entry, h table.Hash) pair {
	return pair{(*[2]uint64)(e.Words), &l.in.loans[h%table.Shards]}
}

// upgrade gives the entry of h a layout in which the limit has a place, if there is one.
func (l *Limit) upgrade(h table.Hash, now int64) result {
	if !l.numbered {
		return slow
	}
	l.in.Upgrade(h, now)
	return moved
}

// unheld returns the result for the first word of an entry that could not be held.
func unheld(first uint64) result {
	if first == table.Moved {
		return moved
	}
	return slow
}

// placeIn returns the place of the limit's words. ok is false if entries of the layout have none that it can use.
func (l *Limit) placeIn(in *layout) (p place, ok bool) {
	if l.index >= len(in.places) || !l.numbered {
		return place{}, false
	}
	p = in.places[l.index]
	return p, p.width == 2 || l.pairs == nil || l.number == 0 && !l.fine
}

// readable returns the words at a place of a held entry. The result is slow if only the lock can decide on them.
func (l *Limit) readable(e table.Entry, p place, first uint64, now int64) (w Words, r result) {
	w.First = first
	if p.at > 0 {
		w.First = atomic.LoadUint64(&e.Words[p.at])
	}
	if p.width == 2 {
		w.Second = atomic.LoadUint64(&e.Words[p.at+1])
	}
	if w.First == table.Elsewhere || w.First == table.Fresh && l.mayBeEvicted(now) {
		return w, slow
	}
	return w, decided
}

// store writes words at a place of a held entry, and returns its first word.
func store(e table.Entry, p place, first uint64, w Words) uint64 {
	if p.width == 2 {
		table.Write(&e.Words[p.at+1], w.Second)
	}
	if p.at == 0 {
		return w.First
	}
	table.Write(&e.Words[p.at], w.First)
	return first
}
