package backtest

import (
	"cmp"
	"slices"
	"time"
)

// Decision is what a file decides on a request.
type Decision struct {
	Allowed, Sure, Open bool
}

// Widen lets every decision have been made up to d before its stamp.
func (t *Traffic) Widen(d time.Duration) {
	for i := range t.events {
		t.events[i].before = grains(int64(d))
	}
	t.exact = false
}

// Decisions returns the decisions of a file, in the order of the lines.
func (t *Traffic) Decisions(at int) ([]Decision, error) {
	all, place := make([]Decision, len(t.events)), make([]int, len(t.events))
	for i := range place {
		place[i] = i
	}
	slices.SortStableFunc(place, func(a, b int) int { return cmp.Compare(t.events[a].at, t.events[b].at) })
	t.sort()
	r, err := t.decide(at, func() {}, func(event int, o outcome, d decision) {
		all[place[event]] = Decision{d.Allowed, true, o.open}
	})
	if err == nil && !t.exact {
		err = t.unsure(r, func(event int, _ outcome) { all[place[event]].Sure = false })
	}
	return all, err
}
