package algorithm

import "math"

// A TAT in a word is its whole ns from the base, and in the low 6 bits the
// fraction r/den, as an index into a table of all fractions with den to 10. So
// the word says by itself what instant it is, whatever the rate. Whole ns have
// index 0.
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

// AlignWords is the base itself.
func (b *TokenBucket) AlignWords(base int64) int64 { return base }

// Pack is the word of a TAT.
func (b *TokenBucket) Pack(s State, base int64) (uint64, bool) {
	if s.A == math.MinInt64 {
		return 0, true
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

// Unpack is the TAT of a word, in ticks of this bucket if the word's whole.
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
	return State{A: tat.hi, B: int64(tat.lo), C: den}
}

// IdleWord says that TAT is not ahead of now.
func (b *TokenBucket) IdleWord(word uint64, base, now int64) bool {
	now, ok := relative(now, base)
	return ok && word <= uint64(now)<<fractionBits
}

// TakeWord is DecideWord as a Worder has it.
func (b *TokenBucket) TakeWord(word uint64, base, now, n int64) (next uint64, a Answer, ok bool) {
	next, ok = b.DecideWord(word, base, now, n, &a)
	return next, a, ok
}

// DecideWord writes the answer to a, which is zero, so that it need not be moved
// around. It decides on whole ns where the rate allows it, else on ticks.
func (b *TokenBucket) DecideWord(word uint64, base, now, n int64, a *Answer) (next uint64, ok bool) {
	tat, at, ok := b.wholeWord(word, base, now, n)
	if !ok {
		next, *a, ok = takeWord(b, word, base, now, n)
		return next, ok
	}
	a.Limit = b.burst
	if next := tat + n*b.unit; next-at <= b.most {
		a.Allowed, a.Changed, tat = true, true, next
	} else {
		a.RetryAfter = next - at - b.most
	}
	a.ResetAfter = tat - at
	a.Remaining = int64(uint64(b.most-a.ResetAfter) / uint64(b.unit))
	return uint64(tat) << fractionBits, tat < 1<<wordTime-2
}

// AllowWord is TakeWord without the description.
func (b *TokenBucket) AllowWord(word uint64, base, now, n int64) (next uint64, allowed, ok bool) {
	tat, at, ok := b.wholeWord(word, base, now, n)
	if !ok {
		return allowWord(b, word, base, now, n)
	}
	if tat += n * b.unit; tat-at > b.most {
		return word, false, true
	}
	return uint64(tat) << fractionBits, true, tat < 1<<wordTime-2
}

// wholeWord is TAT, but not behind now, and now, both in ns from the base, if
// everything is whole ns: then n units and what lies ahead are far from
// overflow. A TAT that already is further ahead than the burst is left to the
// exact functions.
func (b *TokenBucket) wholeWord(word uint64, base, now, n int64) (tat, at int64, ok bool) {
	at = now - base
	tat = max(int64(word>>fractionBits), at)
	ok = b.whole && word&(1<<fractionBits-1) == 0 && uint64(at-1) < 1<<wordTime-3 && now >= base &&
		uint64(n-1) < uint64(b.burst) && tat-at <= b.most
	return tat, at, ok
}
