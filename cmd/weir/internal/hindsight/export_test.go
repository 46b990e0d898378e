package hindsight

import (
	"cmp"
	"slices"
)

// Decision is what a file decides on a request.
type Decision struct {
	Allowed, Sure, Open bool
}

// Decisions returns the decisions of a file, in the order of the lines.
func (t *Traffic) Decisions(at int) ([]Decision, error) {
	all, place := make([]Decision, len(t.events)), make([]int, len(t.events))
	for i := range place {
		place[i] = i
	}
	slices.SortStableFunc(place, func(a, b int) int { return cmp.Compare(t.events[a].at, t.events[b].at) })
	t.sort()
	r, err := t.decide(at, func() {}, func(event int, o *outcome, d decision) {
		all[place[event]] = Decision{d.Allowed, true, o.open}
	})
	if err == nil && !t.exact {
		err = t.unsure(r, func(event int, _ *outcome) { all[place[event]].Sure = false })
	}
	return all, err
}
