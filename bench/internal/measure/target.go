package measure

import (
	"fmt"
	"slices"
)

// Target is an aim: a bound on a figure, or on its ratio to that of other rows. The worst case counts.
type Target struct {
	Name, Figure, Format string
	Bound                float64
	AtLeast              bool // the bound is the least, otherwise the most
	More                 bool // more of the figure is better, so the best of several rows has most
	Minus                bool // a difference instead of a ratio
	Cases                []Case
}

// Case is a row, and the rows beside the best of which it is judged. Without others, its figure itself is judged.
type Case struct {
	Row  string
	Over []string
}

// judged returns the series of the worst case.
func (t Target) judged(r *Results) (worst Series, at Case) {
	for _, c := range t.Cases {
		s := t.of(r, c)
		if len(s) > 0 && (worst == nil || t.better(worst.Median(), s.Median())) {
			worst, at = s, c
		}
	}
	return worst, at
}

// better reports whether one judged value is better than another.
func (t Target) better(a, b float64) bool { return a > b == t.AtLeast && a != b }

func (t Target) of(r *Results, c Case) Series {
	s := r.Series(c.Row, t.Figure)
	if len(c.Over) == 0 {
		return s
	}
	var best Series
	for _, name := range c.Over {
		other := r.Series(name, t.Figure)
		if len(other) > 0 && (best == nil || other.Median() > best.Median() == t.More) {
			best = other
		}
	}
	if t.Minus {
		return s.with(best, func(a, b float64) float64 { return a - b })
	}
	return s.Over(best)
}

// Verdict judges a target. It is missed only if no repetition reached the aim.
func (t Target) Verdict(r *Results) (measured, verdict string) {
	s, at := t.judged(r)
	if len(s) == 0 {
		return "-", "not measured"
	}
	low, high := s.Range()
	measured = t.text(s.Median())
	if low != high {
		measured += fmt.Sprintf(" (%s to %s)", t.text(low), t.text(high))
	}
	if len(t.Cases) > 1 {
		measured += ", at worst: " + at.Row
	}
	reached := func(n float64) bool { return n == t.Bound || t.better(n, t.Bound) }
	switch {
	case reached(s.Median()):
		return measured, "reached"
	case slices.ContainsFunc(s, reached):
		return measured, "within the spread"
	}
	return measured, "**missed**"
}

func (t Target) text(n float64) string { return fmt.Sprintf(t.Format, n) }

func (t Target) aim() string {
	if t.AtLeast {
		return "≥ " + t.text(t.Bound)
	}
	return "≤ " + t.text(t.Bound)
}
