package main

import (
	"cmp"
	"slices"

	"github.com/weirflow/weir/bench/internal/measure"
)

// change is the change of a cell's time of a decision, in ns.
type change struct {
	measure.Cell
	measure.Change
}

// changes returns the change of each cell.
func changes(found map[measure.Cell][]measure.Paired) (list []change) {
	for cell, rounds := range found {
		list = append(list, change{cell, measure.ChangeOf(rounds)})
	}
	slices.SortFunc(list, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.Mix, b.Mix), cmp.Compare(a.Peer, b.Peer), cmp.Compare(columnOf(a.Cell), columnOf(b.Cell)))
	})
	return list
}
