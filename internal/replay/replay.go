package replay

import (
	"fmt"

	"github.com/weirflow/weir/internal/tape"
)

// Options configure a replay. The zero value is ready to use.
type Options struct {
	// Top is the number of worst keys and of worst minutes to report. Default: none.
	Top int
	// Timelines is the number of worst keys, of those reported, to show over time. Default: none.
	Timelines int
	// Progress, if not nil, receives the number of decisions made so far and the total, from time to time.
	Progress func(done, of int64)
}

// Replay tries each candidate alone on all the traffic. Every event is one Take, at the time of its line. A
// refused event does not change later events, because a log cannot tell how its client would have reacted.
func (t *Traffic) Replay(candidates []Candidate, options Options) (Report, error) {
	t.group()
	progress := tape.Progress{Tell: options.Progress, Of: int64(t.events.n) * int64(len(candidates))}
	report := t.report()
	report.Busiest = t.busiest(windowsOf(candidates))
	report.Unshown = t.unshown(&report, candidates)
	var outcomes []*outcome
	for _, c := range candidates {
		outcome, err := t.decide(c, &progress)
		if err != nil {
			return Report{}, fmt.Errorf("replay: replay %q: %w", c.Text, err)
		}
		outcomes = append(outcomes, outcome)
		limit := outcome.report(c.Text, t.keys, options.Top)
		for _, k := range outcome.refused[:min(len(limit.WorstKeys), max(options.Timelines, 0))] {
			timeline, err := t.timeline(c, k.id)
			if err != nil {
				return Report{}, fmt.Errorf("replay: replay %q: %w", c.Text, err)
			}
			limit.Timelines = append(limit.Timelines, timeline)
		}
		report.Limits = append(report.Limits, limit)
	}
	if len(outcomes) == 2 {
		report.Difference = difference(outcomes[0], outcomes[1], t.keys, options.Top)
	}
	return report, nil
}

// decide replays one candidate key by key, each key in order of time. Keys do not influence each other, so the
// answers equal those of a replay in order of time. This order needs the state of only one key at a time.
func (t *Traffic) decide(c Candidate, progress *tape.Progress) (*outcome, error) {
	limits, err := tape.Of(c.Limits...)
	if err != nil {
		return nil, err
	}
	outcome := newOutcome(t.first, t.last)
	outcome.after = StrikesOf(c.Limits)
	for id, key := range t.keys {
		for _, e := range t.of(id) {
			d, err := limits.Take(e.At, key, int64(e.Cost))
			if err != nil {
				return nil, err
			}
			outcome.count(e.At, id, d)
			progress.Step()
		}
		outcome.endKey(id)
		if err := limits.Forget(key); err != nil {
			return nil, err
		}
	}
	return outcome, nil
}

// timeline decides the events of one key again, and returns them over time.
func (t *Traffic) timeline(c Candidate, id int) (tape.Series, error) {
	limits, err := tape.Of(c.Limits...)
	if err != nil {
		return tape.Series{}, err
	}
	outcome := newOutcome(t.first, t.last)
	for _, e := range t.of(id) {
		d, err := limits.Take(e.At, t.keys[id], int64(e.Cost))
		if err != nil {
			return tape.Series{}, err
		}
		outcome.count(e.At, id, d)
	}
	return outcome.series, nil
}
