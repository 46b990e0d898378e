package algorithm

import (
	"math"
	"math/bits"
)

// int128 is a signed integer of 128 bits in two's complement. An instant
// (2^63 ns) times a count (2^53) needs 116 bits, a burst (2^53) times a period
// (2^55 ns) 108: sums and differences of such products always fit.
type int128 struct {
	hi int64
	lo uint64
}

func mul(a, b int64) int128 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	// The unsigned product of two's complements is too large by the other factor times 2^64 for each negative factor.
	if a < 0 {
		hi -= uint64(b)
	}
	if b < 0 {
		hi -= uint64(a)
	}
	return int128{int64(hi), lo}
}

func (a int128) add(b int128) int128 {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	return int128{int64(uint64(a.hi) + uint64(b.hi) + carry), lo}
}

func (a int128) sub(b int128) int128 {
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	return int128{int64(uint64(a.hi) - uint64(b.hi) - borrow), lo}
}

func (a int128) less(b int128) bool {
	return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo
}

func (a int128) positive() bool { return a.hi > 0 || a.hi == 0 && a.lo > 0 }

func maxInt128(a, b int128) int128 {
	if a.less(b) {
		return b
	}
	return a
}

func minInt128(a, b int128) int128 {
	if b.less(a) {
		return b
	}
	return a
}

// divMod divides a, at least 0, by b > 0, rounding down. A quotient above 2^63-1 saturates, and then rest means
// nothing.
func (a int128) divMod(b int64) (quotient, rest int64) {
	if uint64(a.hi) >= uint64(b) {
		return math.MaxInt64, 0
	}
	q, r := bits.Div64(uint64(a.hi), a.lo, uint64(b))
	return int64(min(q, math.MaxInt64)), int64(r)
}

// ceilDiv divides a by b > 0, rounding up, and saturates at 2^63-1. It returns 0 for an a of at most 0.
func (a int128) ceilDiv(b int64) int64 {
	if !a.positive() {
		return 0
	}
	q, r := a.divMod(b)
	if r > 0 && q < math.MaxInt64 {
		q++
	}
	return q
}

// floorDiv divides a by b > 0, rounding down. It returns 0 for an a of at most 0.
func (a int128) floorDiv(b int64) int64 {
	if !a.positive() {
		return 0
	}
	q, _ := a.divMod(b)
	return q
}

// AddSaturating returns a + b, saturated at the ends of int64.
func AddSaturating(a, b int64) int64 {
	sum := a + b
	if (sum > a) == (b > 0) || b == 0 {
		return sum
	}
	return saturated(b > 0)
}

// subSat returns a - b, saturated at the ends of int64.
func subSat(a, b int64) int64 {
	diff := a - b
	if (diff < a) == (b > 0) || b == 0 {
		return diff
	}
	return saturated(b < 0)
}

func saturated(up bool) int64 {
	if up {
		return math.MaxInt64
	}
	return math.MinInt64
}

// floorDivMod divides an instant by a period > 0, rounding down.
func floorDivMod(t, period int64) (quotient, rest int64) {
	quotient, rest = t/period, t%period
	if rest < 0 {
		quotient--
		rest += period
	}
	return quotient, rest
}
