package measure

import (
	"math"
	"slices"
)

// Series is one figure from every repetition, in order.
type Series []float64

// Median returns the middle value, or the mean of the two middle values.
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

// Range returns the smallest and the largest value.
func (s Series) Range() (low, high float64) {
	if len(s) == 0 {
		return math.NaN(), math.NaN()
	}
	return slices.Min(s), slices.Max(s)
}

// Spread returns the largest distance from the median, as a share of the median.
func (s Series) Spread() float64 {
	low, high := s.Range()
	median := s.Median()
	return max(high-median, median-low) / median
}

// Over returns the ratio of two series, repetition by repetition.
func (s Series) Over(other Series) Series {
	ratios := make(Series, min(len(s), len(other)))
	for i := range ratios {
		ratios[i] = s[i] / other[i]
	}
	return ratios
}

// quantile returns the smallest value that is not below a share q of the sorted values.
func quantile[T any](sorted []T, q float64) T {
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}
