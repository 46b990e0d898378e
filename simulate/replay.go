package simulate

import (
	"context"
	"fmt"

	"github.com/weirflow/weir"
)

// Candidate is a limit to try, or several that have to be held at once.
type Candidate struct {
	Text   string // as it was given
	Limits []weir.Limit
}

// ParseCandidate reads the text form of one limit, or of several joined by
// "and". The error is that of [weir.ParseLimits].
func ParseCandidate(text string) (Candidate, error) {
	limits, err := weir.ParseLimits(text)
	if err != nil {
		return Candidate{}, err
	}
	_, err = weir.NewRule(ruleName, limits...)
	return Candidate{Text: text, Limits: limits}, err
}

const ruleName = "replay"

// Options of a replay. The zero value is ready to use.
type Options struct {
	// Top is how many of the worst keys and minutes are reported. Default:
	// none.
	Top int
	// Progress, if not nil, is told from time to time how many decisions of
	// how many have been made.
	Progress func(done, of int64)
}

// Replay asks each candidate, on its own, about all the traffic: every event is
// one Take of cost 1, at the time of its line. A refused event changes nothing
// in those that follow, as a log cannot tell what its client would have done.
func (t *Traffic) Replay(candidates []Candidate, options Options) (Report, error) {
	t.events.group(len(t.keys))
	progress := progress{tell: options.Progress, of: int64(t.events.count) * int64(len(candidates))}
	report := t.report()
	for _, c := range candidates {
		outcome, err := t.decide(c, &progress)
		if err != nil {
			return Report{}, fmt.Errorf("simulate: replay %q: %w", c.Text, err)
		}
		report.Limits = append(report.Limits, outcome.report(c.Text, t.keys, options.Top))
	}
	return report, nil
}

// decide replays one candidate, key by key, each in order of time. One key's
// decisions have no part in another's, so this is what all keys in order of time
// would get; but a key's state stays at hand until it is needed no more.
func (t *Traffic) decide(c Candidate, progress *progress) (*outcome, error) {
	rule, err := weir.NewRule(ruleName, c.Limits...)
	if err != nil {
		return nil, err
	}
	var now int64
	engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now }})
	outcome := newOutcome()
	for id, key := range t.keys {
		request := []weir.Request{rule.For(key, 1)}
		for _, now = range t.events.of(id) {
			d, err := engine.Take(context.Background(), request...)
			if err != nil {
				return nil, err
			}
			outcome.count(now, d)
			progress.step()
		}
		outcome.endKey(id)
		if err := engine.Reset(context.Background(), request...); err != nil {
			return nil, err
		}
	}
	return outcome, nil
}

// progress tells how far the replay is, every so many decisions.
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
