package measure

import (
	"math"
	"slices"
)

// Series is one figure of every repetition, in order.
type Series []float64

// Median is the middle of the series, or the mean of the two.
func (s Series) Median() float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Range is the smallest and the largest of the series.
func (s Series) Range() (low, high float64) {
	if len(s) == 0 {
		return math.NaN(), math.NaN()
	}
	return slices.Min(s), slices.Max(s)
}

// Spread is how far the farthest lies from the median, as a share of it.
func (s Series) Spread() float64 {
	low, high := s.Range()
	median := s.Median()
	return max(high-median, median-low) / median
}

// Over is the ratio of two series, repetition by repetition.
func (s Series) Over(other Series) Series {
	ratios := make(Series, min(len(s), len(other)))
	for i := range ratios {
		ratios[i] = s[i] / other[i]
	}
	return ratios
}

// quantile is the smallest value that a share q of the sorted ones do not
// exceed.
func quantile[T any](sorted []T, q float64) T {
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}
