package word

import (
	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/table"
)

// Limit is one limit of a column, ready to decide.
type Limit struct {
	decider
	*Column
	number   uint32           // number of the rate of a bucket
	numbered bool             // words show that this rate wrote them; if not, every decision needs the lock
	fine     bool             // the states of the rate need two words
	oneWord  bool             // entries of one word are those of the limit
	pairs    algorithm.Pairer // the limit, if it is a bucket of any kind
	alone    *Row             // the row of this limit
}

// Limit returns a limit of the column.
func (c *Column) Limit(words algorithm.Worder) *Limit {
	l := &Limit{decider: decider{algorithm.NewWordDecider(words), c.Base, c.in.Table}, Column: c, numbered: true, oneWord: c.index == 0}
	l.alone = newRow(c.in, []*Limit{l})
	l.pairs, _ = words.(algorithm.Pairer)
	if l.pairs == nil {
		l.numbered = algorithm.RateOf(words) == algorithm.RateOf(c.like)
		l.oneWord = l.oneWord && l.numbered
		return l
	}
	var number int
	number, l.numbered = c.rates.number(l.pairs)
	l.number, l.fine = uint32(number), algorithm.RateOf(words).NeedsPair()
	if number != 0 || l.fine || !l.numbered {
		l.oneWord = false
		l.numbered = l.numbered && c.Widen()
	}
	return l
}

// Take decides on the words of h and writes the answer to a, which must be zero. done is false if the decision needs
// the lock.
func (l *Limit) Take(h table.Hash, now, n int64, a *algorithm.Answer) (done bool) {
	_, done = l.decideOn(h, now, n, a)
	return done
}

// Allow decides like [algorithm.Allow].
func (l *Limit) Allow(h table.Hash, now, n int64) (allowed, done bool) {
	return l.decideOn(h, now, n, nil)
}

func (l *Limit) decideOn(h table.Hash, now, n int64, a *algorithm.Answer) (allowed, done bool) {
	for e := l.table.Claim(h, now); !e.None(); e = l.table.Claim(h, now) {
		var r result
		if len(e.Words) == 1 && l.oneWord {
			allowed, r = l.take(&e.Words[0], now, n, a)
		} else if p, ok := l.spanIn(l.in.layoutOf(e)); ok && p.at == 0 && p.width == 2 {
			at := l.pairAt(e, h)
			allowed, r = l.takePair(at, at.glimpse(), uint64(l.number), now, n, a)
		} else {
			return false, a != nil && l.numbered && Decide([]Ask{{l.alone, h, n}}, now, false, a)
		}
		if r != moved {
			return allowed, r == decided
		}
	}
	return false, false
}

// Within decides like Single.Within. A limit with delays may admit a waiting cost, so it needs the lock.
func (l *Limit) Within(h table.Hash, now, n, longest int64) (need int64, done bool) {
	var a algorithm.Answer
	if longest == algorithm.Never || algorithm.Delays(l.Words()) || !l.Take(h, now, n, &a) {
		return 0, false
	}
	return a.RetryAfter, a.Allowed || tooLong(&a, longest)
}

// decide decides on words of a width.
func (l *Limit) decide(w Words, width uint8, now, n int64, a *algorithm.Answer) (_ Words, ok bool) {
	if width == 1 {
		w.First, _, ok = l.Decide(w.First, l.base, now, n, a)
	} else {
		w.First, w.Second, _, ok = l.DecidePair(w.First, w.Second, uint64(l.number), l.base, now, n, a)
	}
	return w, ok
}

// pairAt returns the two words at the start of an entry.
func (l *Limit) pairAt(e table.Entry, h table.Hash) pair {
	return pair{(*[2]uint64)(e.Words), &l.in.loans[h%table.Shards]}
}

// spanIn returns the span of the limit's words. ok is false if entries of the layout have none that it can use.
func (l *Limit) spanIn(in *layout) (p span, ok bool) {
	if l.index >= len(in.spans) || !l.numbered {
		return span{}, false
	}
	p = in.spans[l.index]
	return p, p.width == 2 || l.pairs == nil || l.number == 0 && !l.fine
}
