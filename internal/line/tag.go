package line

import "math/bits"

// Tag is a virtual time of a line that flows share by weight: units divided by the weight of their flow.
type Tag struct{ Units, Weight int64 }

// Before reports whether t is before u.
func (t Tag) Before(u Tag) bool {
	tHi, tLo := bits.Mul64(uint64(t.Units), uint64(u.Weight))
	uHi, uLo := bits.Mul64(uint64(u.Units), uint64(t.Weight))
	return tHi < uHi || tHi == uHi && tLo < uLo
}

// In returns t in units of a flow with a weight, rounded up.
func (t Tag) In(weight int64) int64 {
	hi, lo := bits.Mul64(uint64(t.Units), uint64(weight))
	lo, carry := bits.Add64(lo, uint64(t.Weight-1), 0)
	units, _ := bits.Div64(hi+carry, lo, uint64(t.Weight))
	return int64(units)
}
