package backtest

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/replay"
)

// unshown returns the limits of a file that a log from first to last cannot show, with the pace of their keys.
func (t *Traffic) unshown(at int, first, last time.Time) (all []replay.Unshown) {
	type place struct {
		row  int
		rule *weir.Rule
	}
	try, events := t.tries[at], map[uint32]int64{}
	for _, number := range t.numbers[at] {
		events[number]++
	}
	limits, units := map[place][]replay.Unshown{}, map[place]map[uint32]int64{}
	var places []place // in order of the outcomes
	for _, number := range slices.Sorted(maps.Keys(events)) {
		o := try.outcomes[number]
		for i, a := range o.asks {
			p := place{a.row, o.requests[i].Rule}
			if _, known := limits[p]; !known {
				limits[p] = replay.UnshownBy(p.rule.Limits(), first, last)
				units[p] = map[uint32]int64{}
				places = append(places, p)
			}
			if len(limits[p]) > 0 {
				units[p][a.key] = plus(units[p][a.key], times(max(o.requests[i].Cost, 0), events[number]))
			}
		}
	}
	for _, p := range places {
		for _, u := range limits[p] {
			u.Subject = try.subjectOf(try.rows[p.row])
			if u.Rule = try.rows[p.row].name; len(t.tries) > 1 {
				u.File = try.name
			}
			u.Pace(iter.Seq[int64](maps.Values(units[p])))
			all = append(all, u)
		}
	}
	return all
}
