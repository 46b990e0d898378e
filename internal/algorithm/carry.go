package algorithm

import "math"

// converter is an Algorithm whose states mean something else under another rate. It decides on states of all rates, and
// converts them when it writes them.
type converter interface{ converts() }

// Converts reports whether the limit converts states of other rates when it writes them.
func Converts(a Algorithm) bool { return is[converter](a) }

// keepConverted is how long the instant of a conversion is kept: as long as an earlier take may be undone.
const keepConverted = int64(60e9)

// JustConverted reports whether the instant of the last conversion still matters.
func JustConverted(a Algorithm, s State, now int64) bool {
	return s.Converted != math.MinInt64 && Converts(a) && subSat(now, s.Converted) < keepConverted
}
