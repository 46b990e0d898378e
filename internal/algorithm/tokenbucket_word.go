package algorithm

import "math"

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

// ResetWord returns how far TAT is ahead of now, with a fraction rounded up.
func (b *TokenBucket) ResetWord(word uint64, base, now int64) (reset int64, ok bool) {
	at, ok := relative(now, base)
	tat := int64(word >> fractionBits)
	if word&(1<<fractionBits-1) != 0 {
		tat++
	}
	return max(tat-at, 0), ok
}

// DecideWord decides like [WordDecider.Decide]. ok is false where 128 bits decide. Most rates and states are whole ns.
func (b *TokenBucket) DecideWord(word uint64, base, now, n int64, a *Answer) (next uint64, allowed, ok bool) {
	at := now - base
	tat := max(int64(word>>fractionBits), at)
	whole := tat-at <= b.whole && word&(1<<fractionBits-1) == 0 && uint64(at-1) < 1<<wordTime-3 && now >= base
	if !whole || uint64(n-1) >= uint64(b.burst) {
		return b.decideFraction(word, base, now, n, a)
	}
	over := tat + n*b.unit - at - b.whole
	if allowed = over <= 0; allowed {
		tat += n * b.unit
	}
	if a != nil {
		a.Limit, a.Allowed, a.Changed, a.RetryAfter = b.burst, allowed, allowed, max(over, 0)
		a.ResetAfter, a.LimitReset = tat-at, tat-at
		a.Remaining = (b.whole - a.ResetAfter) / b.unit
	}
	if !allowed {
		return word, false, true
	}
	return uint64(tat) << fractionBits, true, tat < 1<<wordTime-2
}

// decideFraction decides in fractions of a ns.
func (b *TokenBucket) decideFraction(word uint64, base, now, n int64, a *Answer) (next uint64, allowed, ok bool) {
	f := &fractions[word&(1<<fractionBits-1)]
	ahead, at, ok := b.aheadOf(int64(word>>fractionBits), f.r, base, now, n)
	if !ok || f.r != 0 && f.den != b.den {
		return 0, false, false
	}
	if ahead, allowed, ok = b.admit(ahead, n, a); !ok || !allowed || n == 0 {
		return word, allowed, ok
	}
	next, ok = b.word(at, ahead)
	return next, true, ok
}

// aheadOf returns how far a TAT lies ahead of now, and now relative to the base. The TAT is whole ns from the base and a
// fraction. ok is false if a time or the cost is out of range.
func (b *TokenBucket) aheadOf(whole, part, base, now, n int64) (ahead mixed, at int64, ok bool) {
	if at = now - base; whole >= at {
		ahead = mixed{whole - at, part}
	}
	return ahead, at, uint64(at-1) < 1<<wordTime-3 && now >= base && uint64(n) <= uint64(b.burst)
}

// admit admits or refuses n units when TAT lies ahead of now, and writes the answer to a. Without an a it refuses a cost
// that needs a delay. It returns how far TAT lies ahead afterwards. ok is false where 128 bits decide.
func (b *TokenBucket) admit(ahead mixed, n int64, a *Answer) (_ mixed, allowed, ok bool) {
	cost, fits := b.one, true
	if n != 1 {
		cost, fits = b.cost(n)
	}
	if !fits || b.burstTime.less(ahead) { // above the burst after a record
		return ahead, false, false
	}
	after := ahead.add(cost, b.den)
	if a == nil {
		return after, !b.free.less(after), true
	}
	a.Limit = b.burst
	if allowed = !b.burstTime.less(after); allowed {
		a.Allowed, a.Changed, ahead = true, n > 0, after
	} else {
		a.RetryAfter = after.sub(b.burstTime, b.den).ceil()
	}
	if a.Changed && b.free.less(ahead) { // in a leaky bucket
		a.Delay = ahead.sub(b.free, b.den).ceil()
	}
	a.ResetAfter = ahead.ceil()
	a.LimitReset = a.ResetAfter
	a.Remaining = b.burst - ahead.units(b.den, b.unit)
	return ahead, allowed, true
}

// cost returns the time of n units. ok is false if it is longer than any time of a word.
func (b *TokenBucket) cost(n int64) (_ mixed, ok bool) {
	cost := mixedOf(mul(n, b.unit), b.den)
	return cost, cost.ns < 1<<wordTime
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
