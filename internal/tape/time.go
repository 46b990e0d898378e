package tape

import (
	"math"
	"math/bits"
	"time"

	"github.com/weirflow/weir"
)

// Start is the first instant of made-up traffic: the start of a second, a minute, an hour and a day.
const Start = int64(20_000 * 24 * time.Hour)

// Since returns the time from one instant to a later one. A time.Duration cannot hold it, because logs span up to 584
// years.
func Since(first, t int64) uint64 { return uint64(t) - uint64(first) }

// Later returns the instant after a time that is not negative, or the last instant.
func Later(t, after int64) int64 {
	if t > math.MaxInt64-after {
		return math.MaxInt64
	}
	return t + after
}

// WindowOf returns the number of the window of the clock that holds the instant, before 1970 too.
func WindowOf(t, length int64) int64 {
	window := t / length
	if t%length < 0 {
		window--
	}
	return window
}

// InstantOf returns i / rate, rounded down.
func InstantOf(r weir.Rate, i int64) time.Duration {
	return time.Duration(mulDiv(i, int64(r.Period), r.Count))
}

// UnitsIn returns the whole units of a time at the rate.
func UnitsIn(r weir.Rate, d time.Duration) int64 { return mulDiv(int64(d), r.Count, int64(r.Period)) }

// mulDiv returns a × b / c, rounded down, or the largest number. None is negative, and c is not 0.
func mulDiv(a, b, c int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if high >= uint64(c) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(high, low, uint64(c))
	return int64(min(q, math.MaxInt64))
}

func PerNano(r weir.Rate) float64 { return float64(r.Count) / float64(r.Period) }

// Nanoseconds rounds down.
func Nanoseconds(at float64) time.Duration {
	if at >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(at)
}
