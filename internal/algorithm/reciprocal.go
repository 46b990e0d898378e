package algorithm

import "math/bits"

// reciprocal divides a time of a word exactly by a constant, with a multiplication. That takes less time than a division.
type reciprocal struct {
	factor uint64
	shift  uint8
}

// newReciprocal returns that of a divisor from 1 to 2^wordTime.
//
// Let s be the least shift with divisor <= 2^s, and factor the quotient 2^(wordTime+s)/divisor, rounded up. Then
// factor * divisor is less than 2^s above 2^(wordTime+s). A time below 2^wordTime, times factor, divided by
// 2^(wordTime+s), is therefore less than 1/divisor above the true quotient, and has the same whole part.
func newReciprocal(divisor int64) (r reciprocal) {
	r.shift = uint8(bits.Len64(uint64(divisor - 1)))
	factor, rest := bits.Div64(1<<r.shift>>fractionBits, 1<<wordTime<<r.shift, uint64(divisor))
	if rest > 0 {
		factor++
	}
	r.factor = factor << 1
	return r
}

// quotient returns a time from 0 to 2^wordTime-1, divided and rounded down.
func (r reciprocal) quotient(time int64) int64 {
	high, _ := bits.Mul64(uint64(time)<<(fractionBits-1), r.factor)
	return int64(high >> (r.shift & 63))
}
