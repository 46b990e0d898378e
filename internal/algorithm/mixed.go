package algorithm

import "math/bits"

// mixed is a duration of ns + part/den nanoseconds, where den is that of a bucket and 0 <= part < den. It is an exact
// fraction in two machine words. Adding and comparing needs neither division nor 128 bits.
type mixed struct{ ns, part int64 }

// add returns a + b. The ns must not overflow.
func (a mixed) add(b mixed, den int64) mixed {
	a.ns += b.ns
	if a.part += b.part; a.part >= den {
		a.part -= den
		a.ns++
	}
	return a
}

// sub returns a - b, which must not be negative.
func (a mixed) sub(b mixed, den int64) mixed {
	a.ns -= b.ns
	if a.part -= b.part; a.part < 0 {
		a.part += den
		a.ns--
	}
	return a
}

func (a mixed) less(b mixed) bool {
	return a.ns < b.ns || a.ns == b.ns && a.part < b.part
}

// ceil returns a in whole ns, rounded up.
func (a mixed) ceil() int64 {
	if a.part > 0 {
		return a.ns + 1
	}
	return a.ns
}

// mixedOf returns ticks/den, or longest if that is less.
func mixedOf(ticks int128, den int64) mixed {
	if ticks.hi >= den {
		return longest
	}
	ns, part := ticks.divMod(den)
	if ns >= longest.ns {
		return longest
	}
	return mixed{ns, part}
}

// longest is longer than the sum of any two times of words.
var longest = mixed{ns: 1 << (wordTime + 2)}

// units returns the number of units of unit ticks in a, rounded up. The number must fit 64 bits.
func (a mixed) units(den, unit int64) int64 {
	hi, lo := bits.Mul64(uint64(a.ns), uint64(den))
	lo, carry := bits.Add64(lo, uint64(a.part)+uint64(unit)-1, 0)
	if hi += carry; hi == 0 {
		return int64(lo / uint64(unit))
	}
	q, _ := bits.Div64(hi, lo, uint64(unit))
	return int64(q)
}
