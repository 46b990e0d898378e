package main

import (
	"cmp"
	"slices"

	"github.com/weirflow/weir/bench/internal/measure"
)

// change is a figure before and after, and the ratios of its windows.
type change struct {
	measure.Cell
	before, after            float64 // medians of all windows, in ns
	ratio, smallest, largest float64 // of the rounds; a round counts with the median ratio of neighbouring windows
}

// changes returns the change of each cell.
func changes(found map[measure.Cell][]windows) (list []change) {
	for cell, rounds := range found {
		list = append(list, changeOf(cell, rounds))
	}
	slices.SortFunc(list, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.Mix, b.Mix), cmp.Compare(a.Peer, b.Peer), cmp.Compare(columnOf(a.Cell), columnOf(b.Cell)))
	})
	return list
}

func changeOf(cell measure.Cell, rounds []windows) change {
	var before, after, ratios measure.Series
	for _, r := range rounds {
		before, after = append(before, r.before...), append(after, r.after...)
		ratios = append(ratios, measure.Series(r.after).Over(r.before).Median())
	}
	smallest, largest := ratios.Range()
	return change{cell, before.Median(), after.Median(), ratios.Median(), smallest, largest}
}
