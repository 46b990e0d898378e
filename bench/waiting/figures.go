package main

import (
	"slices"
	"time"
)

// grants returns the grants of the window, in order of time.
func (r *played) grants() (all []grant) {
	for _, t := range r.tallies {
		for _, g := range t.Grants {
			if !g.At.Before(r.from) && g.At.Before(r.to) {
				all = append(all, g)
			}
		}
	}
	slices.SortFunc(all, func(a, b grant) int { return a.At.Compare(b.At) })
	return all
}

func (r *played) perSecond() float64   { return float64(len(r.grants())) / r.to.Sub(r.from).Seconds() }
func (r *played) callsAGrant() float64 { return r.calls / float64(max(len(r.grants()), 1)) }

// waits returns how long the callers of the window waited, in ms.
func (r *played) waits() (all []float64) {
	for _, g := range r.grants() {
		all = append(all, milliseconds(g.Waited))
	}
	return all
}

// unserved returns how long those had waited that waited at the end, in ms.
func (r *played) unserved() (all []float64) {
	for _, t := range r.tallies {
		for _, d := range t.Unserved {
			all = append(all, milliseconds(d))
		}
	}
	return all
}

// smallestShare returns the fewest grants of a caller, as a part of the average.
func (r *played) smallestShare() float64 {
	var all []int
	sum := 0
	for _, t := range r.tallies {
		all = append(all, t.Callers...)
	}
	for _, n := range all {
		sum += n
	}
	return float64(slices.Min(all)) * float64(len(all)) / float64(max(sum, 1))
}

// longestGap returns the longest time between two grants of an interval, in ms.
func (r *played) longestGap(from, to time.Time) (longest float64) {
	last := from
	for _, g := range r.grants() {
		if g.At.After(from) && g.At.Before(to) {
			longest = max(longest, milliseconds(g.At.Sub(last)))
			last = g.At
		}
	}
	return max(longest, milliseconds(to.Sub(last)))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
