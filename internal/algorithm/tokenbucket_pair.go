package algorithm

import "math"

// A TAT in two words holds every fraction of a nanosecond. The first word is the time in steps of 32 ns, above one plus
// the number of the rate that wrote the state. It alone proves nearly every refusal under that rate. The second is the
// numerator of the fraction, whose denominator is that of the rate, above the rest of the whole ns.
const (
	rateBits = 11
	stepBits = 5
)

// MaxRates is the number of rates that pairs of words can name. With one more, a first word could be one of the three
// largest.
const MaxRates = 1<<rateBits - 4

// NeedsPair reports whether the fractions of the rate do not fit in one word.
func (r Rate) NeedsPair() bool { return r.Den > maxDen }

// Pairer is a Worder whose states fit in two words when they do not fit in one. number is that of the limit's own rate
// in the second word; ok is false for a state of another rate.
type Pairer interface {
	Worder
	// PackPair returns s as two words. ok is false for a state of another rate.
	PackPair(s State, number uint64, base int64) (first, second uint64, ok bool)
	// UnpackPair returns the state of two words that the limit's own rate wrote.
	UnpackPair(first, second uint64, base int64) State
}

// RateNumber returns the number of the rate in a first word, and 0 for a new key.
func RateNumber(first uint64) int { return max(int(first&(1<<rateBits-1))-1, 0) }

// hasRate reports whether the rate of a number wrote a first word.
func hasRate(first, number uint64) bool { return first&(1<<rateBits-1) == number+1 }

// PackPair returns the two words of a TAT.
func (b *TokenBucket) PackPair(s State, number uint64, base int64) (first, second uint64, ok bool) {
	if s.A == math.MinInt64 {
		return 0, 0, true
	}
	if !b.owns(&s) {
		return 0, 0, false
	}
	ahead := int128{s.A, uint64(s.B)}.sub(mul(base, s.C))
	if !ahead.positive() || ahead.hi >= s.C {
		return 0, 0, false
	}
	whole, part := ahead.divMod(s.C)
	if whole < 1 || whole >= 1<<wordTime-2 {
		return 0, 0, false
	}
	first, second = pair(whole, part, number)
	return first, second, true
}

func pair(whole, part int64, number uint64) (first, second uint64) {
	return uint64(whole)>>stepBits<<rateBits | (number + 1), uint64(part)<<stepBits | uint64(whole)&(1<<stepBits-1)
}

// unpair returns the time of two words. Both are 0 for a new key.
func unpair(first, second uint64) (whole, part int64) {
	return int64(first>>rateBits<<stepBits | second&(1<<stepBits-1)), int64(second >> stepBits)
}

// PairExpiry returns a word that is idle when two words are, and has their ResetWord.
func PairExpiry(first, second uint64) (word uint64) {
	whole, part := unpair(first, second)
	return uint64(whole)<<fractionBits | uint64(min(part, 1))
}

// UnpackPair returns the TAT of two words.
func (b *TokenBucket) UnpackPair(first, second uint64, base int64) State {
	if first == 0 {
		return b.Fresh()
	}
	whole, part := unpair(first, second)
	return b.state(b.Fresh(), mul(base, b.den).add(mul(whole, b.den)).add(int128{lo: uint64(part)}))
}

// WidenWord returns the two words of the TAT in one word. The rate of the bucket, with the number, wrote it.
func WidenWord(word, number uint64) (first, second uint64) {
	if word == 0 {
		return 0, 0
	}
	return pair(int64(word>>fractionBits), fractions[word&(1<<fractionBits-1)].r, number)
}

// DecidePair decides like [WordDecider.Decide] on two words of the limit's own rate.
func (d *WordDecider) DecidePair(first, second, number uint64, base, now, n int64, a *Answer) (nextFirst, nextSecond uint64, allowed, ok bool) {
	if first != 0 && !hasRate(first, number) || a == nil && n < 1 {
		return 0, 0, false, false
	}
	whole, part := unpair(first, second)
	ahead, at, ok := d.Bucket.aheadOf(whole, part, base, now, n)
	if ok {
		ahead, allowed, ok = d.Bucket.admit(ahead, n, a)
	}
	switch {
	case !ok:
		return d.decidePairState(first, second, number, base, now, n, a)
	case !allowed || n == 0:
		return first, second, allowed, true
	}
	nextFirst, nextSecond = pair(at+ahead.ns, ahead.part, number)
	return nextFirst, nextSecond, true, at+ahead.ns < 1<<wordTime-2
}

// decidePairState decides on the unpacked state of two words, the slow path.
func (d *WordDecider) decidePairState(first, second, number uint64, base, now, n int64, a *Answer) (nextFirst, nextSecond uint64, allowed, ok bool) {
	p := d.limit.(Pairer)
	s := p.UnpackPair(first, second, base)
	allowed, changed := decideOn(p, &s, now, n, a)
	if !changed {
		return first, second, allowed, true
	}
	nextFirst, nextSecond, ok = p.PackPair(s, number, base)
	return nextFirst, nextSecond, allowed, ok
}

// UnpackPair returns the state of two words, which also hold the newest release.
func (b *LeakyBucket) UnpackPair(first, second uint64, base int64) State {
	s := b.TokenBucket.UnpackPair(first, second, base)
	if first != 0 {
		s.Promised = b.release(&s)
	}
	return s
}
