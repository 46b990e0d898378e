package backtest

import (
	"github.com/weirflow/weir/internal/replay"
)

// addTimelines adds to the report of all rules of a file what they do to each of its worst clients over time. It decides once more,
// because only the report tells which clients these are.
func (t *Traffic) addTimelines(at int, all *replay.LimitReport, most int) error {
	tallies := map[uint32]*replay.Tally{}
	var order []*replay.Tally
	for _, k := range all.WorstKeys[:min(len(all.WorstKeys), most)] {
		client, ok := t.clients.find(k.Key)
		if !ok {
			break // a key of a recording that is not UTF-8 is quoted
		}
		tallies[client] = t.newTally()
		order = append(order, tallies[client])
	}
	if len(order) == 0 {
		return nil
	}
	_, err := t.decide(at, func() {}, func(event int, o outcome, d decision) {
		if tally, ok := tallies[t.events[event].client]; ok && !o.open {
			tally.Count(t.events[event].at, 0, d.Decision, 1)
		}
	})
	for _, tally := range order {
		all.Timelines = append(all.Timelines, tally.Report("", []string{""}, 0).Series)
	}
	return err
}
