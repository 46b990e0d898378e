package simulate

import (
	"math"
	"time"
)

// since returns the time from one instant to a later one. A time.Duration cannot hold it, because logs span up to 584
// years.
func since(first, t int64) uint64 { return uint64(t) - uint64(first) }

// later returns the instant after a time that is not negative, or the last instant.
func later(t, after int64) int64 {
	if t > math.MaxInt64-after {
		return math.MaxInt64
	}
	return t + after
}

// secondOf returns the second of the clock, which begins before the instant, before 1970 too.
func secondOf(t int64) int64 {
	second := t / int64(time.Second)
	if t%int64(time.Second) < 0 {
		second--
	}
	return second
}
