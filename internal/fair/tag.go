package fair

import "math/bits"

// tag is a virtual time: units divided by the weight of their flow. The zero value is the beginning.
type tag struct{ units, weight int64 }

// before reports whether t is before u.
func (t tag) before(u tag) bool {
	tHi, tLo := bits.Mul64(uint64(t.units), uint64(u.weight))
	uHi, uLo := bits.Mul64(uint64(u.units), uint64(t.weight))
	return tHi < uHi || tHi == uHi && tLo < uLo
}

// in returns t in units of a flow with a weight, rounded up.
func (t tag) in(weight int64) int64 {
	if t.units == 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(t.units), uint64(weight))
	lo, carry := bits.Add64(lo, uint64(t.weight-1), 0)
	units, _ := bits.Div64(hi+carry, lo, uint64(t.weight))
	return int64(units)
}
