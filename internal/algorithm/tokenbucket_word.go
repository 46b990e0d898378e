package algorithm

import (
	"math"
	"math/bits"
)

// A TAT in a word is its whole ns from the base and, in the low 6 bits, the fraction r/den as an index into a table
// of all fractions with den up to 10. Whole ns have index 0. The owner of the word remembers the rate that wrote it.
const (
	fractionBits = 64 - wordTime
	maxDen       = 10
)

var (
	fractions     [1 << fractionBits]struct{ r, den int64 }
	fractionIndex [maxDen + 1][maxDen]uint8
)

func init() {
	i := uint8(1)
	fractions[0].den = 1
	for den := int64(2); den <= maxDen; den++ {
		for r := int64(1); r < den; r++ {
			fractions[i].r, fractions[i].den = r, den
			fractionIndex[den][r] = i
			i++
		}
	}
}

// AlignWords returns the base unchanged.
func (b *TokenBucket) AlignWords(base int64) int64 { return base }

// Pack returns the word of a TAT that the rate of b wrote.
func (b *TokenBucket) Pack(s State, base int64) (uint64, bool) {
	if s.A == math.MinInt64 {
		return 0, true
	}
	if !b.owns(&s) {
		return 0, false
	}
	den := s.C
	ahead := int128{s.A, uint64(s.B)}.sub(mul(base, den))
	if den > maxDen || !ahead.positive() || ahead.hi >= den {
		return 0, false
	}
	whole, r := ahead.divMod(den)
	if whole < 1 || whole >= 1<<wordTime-2 {
		return 0, false
	}
	return uint64(whole)<<fractionBits | uint64(fractionIndex[den][r]), true
}

// Unpack returns the TAT of a word, in ticks of this bucket if the word is in whole ns.
func (b *TokenBucket) Unpack(word uint64, base int64) State {
	if word == 0 {
		return b.Fresh()
	}
	whole, f := int64(word>>fractionBits), fractions[word&(1<<fractionBits-1)]
	den := f.den
	if f.r == 0 {
		den = b.den
	}
	tat := mul(base, den).add(mul(whole, den)).add(int128{lo: uint64(f.r)})
	s := b.state(b.Fresh(), tat)
	s.C = den // another one in a word that b did not write
	return s
}

// IdleWord reports whether TAT is not ahead of now.
func (b *TokenBucket) IdleWord(word uint64, base, now int64) bool {
	now, ok := relative(now, base)
	return ok && word <= uint64(now)<<fractionBits
}

// ResetWord returns how far TAT is ahead of now, with a fraction rounded up.
func (b *TokenBucket) ResetWord(word uint64, base, now int64) (reset int64, ok bool) {
	at, ok := relative(now, base)
	tat := int64(word >> fractionBits)
	if word&(1<<fractionBits-1) != 0 {
		tat++
	}
	return max(tat-at, 0), ok
}

// TakeWord is DecideWord with the signature of Worder.
func (b *TokenBucket) TakeWord(word uint64, base, now, n int64) (next uint64, a Answer, ok bool) {
	next, ok = b.DecideWord(word, base, now, n, &a)
	return next, a, ok
}

// DecideWord decides and writes the answer to a, which must be zero; this avoids copying it. It uses mixed durations
// if they fit, and otherwise 128 bits. A cost of 0 describes the key.
func (b *TokenBucket) DecideWord(word uint64, base, now, n int64, a *Answer) (next uint64, ok bool) {
	if tat, at, ok := b.wholeWord(word, base, now, n); ok {
		return b.decideWhole(tat, at, n, a)
	}
	ahead, at, ok := b.ahead(word, base, now, n)
	cost, fits := b.cost(n)
	if !ok || !fits || b.burstTime.less(ahead) { // above the burst after a record
		next, *a, ok = takeWord(b, word, base, now, n)
		return next, ok
	}
	if ahead = b.decide(ahead, cost, n, a); !a.Changed {
		return word, true
	}
	return b.word(at, ahead)
}

// decideWhole decides in whole ns.
func (b *TokenBucket) decideWhole(tat, at, n int64, a *Answer) (next uint64, ok bool) {
	a.Limit = b.burst
	if next := tat + n*b.unit; next-at <= b.whole {
		a.Allowed, a.Changed, tat = true, true, next
	} else {
		a.RetryAfter = next - at - b.whole
	}
	a.ResetAfter = tat - at
	a.Remaining = b.perUnit.quotient(b.whole - a.ResetAfter)
	return uint64(tat) << fractionBits, tat < 1<<wordTime-2
}

// wholeWord returns TAT, but not behind now, and now, both in ns from the base. ok is false unless all is in whole ns,
// the cost at least 1, and TAT at most the burst ahead: then nothing overflows.
func (b *TokenBucket) wholeWord(word uint64, base, now, n int64) (tat, at int64, ok bool) {
	at = now - base
	tat = max(int64(word>>fractionBits), at)
	ok = tat-at <= b.whole && word&(1<<fractionBits-1) == 0 && uint64(at-1) < 1<<wordTime-3 && now >= base &&
		uint64(n-1) < uint64(b.burst)
	return tat, at, ok
}

// decide admits or refuses n units when TAT lies ahead of now, and writes the answer. It returns how far TAT lies ahead
// afterwards.
func (b *TokenBucket) decide(ahead, cost mixed, n int64, a *Answer) mixed {
	a.Limit = b.burst
	if after := ahead.add(cost, b.den); !b.burstTime.less(after) {
		a.Allowed, a.Changed, ahead = true, n > 0, after
	} else {
		a.RetryAfter = after.sub(b.burstTime, b.den).ceil()
	}
	a.ResetAfter = ahead.ceil()
	a.Remaining = b.burst - ahead.units(b.den, b.unit)
	return ahead
}

// AllowWord decides like TakeWord without describing the key.
func (b *TokenBucket) AllowWord(word uint64, base, now, n int64) (next uint64, allowed, ok bool) {
	if tat, at, ok := b.wholeWord(word, base, now, n); ok {
		if tat += n * b.unit; tat-at > b.whole {
			return word, false, true
		}
		return uint64(tat) << fractionBits, true, tat < 1<<wordTime-2
	}
	ahead, at, ok := b.ahead(word, base, now, n)
	cost, fits := b.cost(n)
	if !ok || !fits || n == 0 {
		return allowWord(b, word, base, now, n)
	}
	ahead = ahead.add(cost, b.den)
	if b.burstTime.less(ahead) {
		return word, false, true
	}
	next, ok = b.word(at, ahead)
	return next, true, ok
}

// ahead returns how far TAT lies ahead of now, and now relative to the base. ok is false if the word is of another
// rate, or a time or the cost is out of range; then 128 bits decide.
func (b *TokenBucket) ahead(word uint64, base, now, n int64) (ahead mixed, at int64, ok bool) {
	at = now - base
	ok = uint64(at-1) < 1<<wordTime-3 && now >= base && uint64(n) <= uint64(b.burst)
	if tat := int64(word >> fractionBits); tat >= at {
		ahead.ns = tat - at
		if i := word & (1<<fractionBits - 1); i != 0 {
			f := &fractions[i]
			ahead.part = f.r
			ok = ok && f.den == b.den
		}
	}
	return ahead, at, ok
}

// cost returns the time of n units. ok is false if it is longer than any time of a word.
func (b *TokenBucket) cost(n int64) (_ mixed, ok bool) {
	if n == 1 {
		return b.one, true
	}
	return b.costOf(n)
}

// costOf is not inlined, so that cost is.
//
//go:noinline
func (b *TokenBucket) costOf(n int64) (_ mixed, ok bool) {
	hi, lo := bits.Mul64(uint64(n), uint64(b.unit))
	if b.den == 1 {
		return mixed{ns: int64(lo)}, hi == 0 && lo < 1<<wordTime
	}
	if hi >= uint64(b.den) {
		return mixed{}, false
	}
	ns, part := bits.Div64(hi, lo, uint64(b.den))
	return mixed{int64(ns), int64(part)}, ns < 1<<wordTime
}

// word returns the word of a TAT that lies ahead of an instant relative to the base.
func (b *TokenBucket) word(at int64, ahead mixed) (word uint64, ok bool) {
	tat := at + ahead.ns
	if ahead.part == 0 {
		return uint64(tat) << fractionBits, tat < 1<<wordTime-2
	}
	if b.den > maxDen {
		return 0, false
	}
	return uint64(tat)<<fractionBits | uint64(fractionIndex[b.den][ahead.part]), tat < 1<<wordTime-2
}
