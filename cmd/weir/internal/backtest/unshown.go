package backtest

import (
	"iter"
	"maps"
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
	try := t.tries[at]
	events := make([]int64, len(try.outcomes.kept)) // with this outcome
	for _, number := range t.numbers[at] {
		events[number]++
	}
	limits, units := map[place][]replay.Unshown{}, map[place]map[uint32]int64{}
	var places []place // in order of the outcomes
	for number, n := range events {
		if n == 0 {
			continue
		}
		o := try.outcomes.of(uint32(number))
		for i, a := range o.asks {
			a = o.ask(a)
			p := place{a.row, o.requests[i].Rule}
			if _, known := limits[p]; !known {
				limits[p] = replay.UnshownBy(p.rule.Limits(), first, last)
				units[p] = map[uint32]int64{}
				places = append(places, p)
			}
			if len(limits[p]) > 0 {
				units[p][a.key] = plus(units[p][a.key], times(max(o.requests[i].Cost, 0), n))
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
