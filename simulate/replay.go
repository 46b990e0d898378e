package simulate

import (
	"fmt"
)

// Options configure a replay. The zero value is ready to use.
type Options struct {
	// Top is the number of worst keys and of worst minutes to report. Default: none.
	Top int
	// Progress, if not nil, receives the number of decisions made so far and the total, from time to time.
	Progress func(done, of int64)
}

// Replay tries each candidate alone on all the traffic. Every event is one Take, at the time of its line. A
// refused event does not change later events, because a log cannot tell how its client would have reacted.
func (t *Traffic) Replay(candidates []Candidate, options Options) (Report, error) {
	t.group()
	progress := progress{tell: options.Progress, of: int64(len(t.events)) * int64(len(candidates))}
	report := t.report()
	var outcomes []*outcome
	for _, c := range candidates {
		outcome, err := t.decide(c, &progress)
		if err != nil {
			return Report{}, fmt.Errorf("simulate: replay %q: %w", c.Text, err)
		}
		outcomes = append(outcomes, outcome)
		report.Limits = append(report.Limits, outcome.report(c.Text, t.keys, options.Top))
	}
	if len(outcomes) == 2 {
		report.Difference = difference(outcomes[0], outcomes[1], t.keys, options.Top)
	}
	return report, nil
}

// decide replays one candidate key by key, each key in order of time. Keys do not influence each other, so the
// answers equal those of a replay in order of time. This order needs the state of only one key at a time.
func (t *Traffic) decide(c Candidate, progress *progress) (*outcome, error) {
	var now int64
	judge, err := newJudge(c.Limits, &now)
	if err != nil {
		return nil, err
	}
	outcome := newOutcome(t.first, t.last)
	for id, key := range t.keys {
		for _, e := range t.of(id) {
			now = e.at
			d, err := judge.take(key, int64(e.cost))
			if err != nil {
				return nil, err
			}
			outcome.count(now, d)
			progress.step()
		}
		outcome.endKey(id)
		if err := judge.forget(key); err != nil {
			return nil, err
		}
	}
	return outcome, nil
}

// progress reports the progress of a replay at intervals.
type progress struct {
	tell     func(done, of int64)
	done, of int64
}

const progressEvery = 1 << 16

func (p *progress) step() {
	p.done++
	if p.tell != nil && (p.done%progressEvery == 0 || p.done == p.of) {
		p.tell(p.done, p.of)
	}
}
