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

// with combines two series, repetition by repetition.
func (s Series) with(other Series, combine func(a, b float64) float64) Series {
	all := make(Series, min(len(s), len(other)))
	for i := range all {
		all[i] = combine(s[i], other[i])
	}
	return all
}

// Over returns the ratio of two series, repetition by repetition.
func (s Series) Over(other Series) Series {
	return s.with(other, func(a, b float64) float64 { return a / b })
}

// Results are the figures of a run.
type Results struct {
	Rows   []Row
	series map[string]map[string]Series // by row and figure
}

// NewResults returns results without figures.
func NewResults(rows []Row) *Results { return &Results{rows, map[string]map[string]Series{}} }

// Add adds the figures of one measurement.
func (r *Results) Add(row Row, figures Figures) {
	of := r.series[row.Name()]
	if of == nil {
		of = map[string]Series{}
		r.series[row.Name()] = of
	}
	for name, value := range figures {
		of[name] = append(of[name], value)
	}
}

// Series returns a figure of a row, by repetition.
func (r *Results) Series(row, figure string) Series { return r.series[row][figure] }

// Name identifies a row.
func (r Row) Name() string {
	if r.Column == "" {
		return r.Line + ", " + r.Group
	}
	return r.Line + ", " + r.Group + ", " + r.Column
}
