package simulate

import (
	"context"
	"fmt"

	"github.com/weirflow/weir"
)

// Candidate is a limit to try, or several limits that one decision combines.
type Candidate struct {
	Text   string // as given
	Limits []weir.Limit
}

// ParseCandidate reads the text form of one limit, or of several joined by "and". It accepts a limit that rules
// refuse, which must stand alone; the replay then uses one limiter for each key. The error is that of
// [weir.ParseLimits] or of [weir.NewRule].
func ParseCandidate(text string) (Candidate, error) {
	limits, err := weir.ParseLimits(text)
	if err != nil {
		return Candidate{}, err
	}
	c := Candidate{Text: text, Limits: limits}
	_, err = c.decider(new(int64))
	return c, err
}

// Rate returns the rate of the first limit that has one, or a rate of 0.
func (c Candidate) Rate() weir.Rate {
	for _, limit := range c.Limits {
		if rate := rateOf(limit); rate.Period > 0 {
			return rate
		}
	}
	return weir.Rate{}
}

const ruleName = "replay"

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
	t.events.group(len(t.keys))
	progress := progress{tell: options.Progress, of: int64(t.events.count) * int64(len(candidates))}
	report := t.report()
	var outcomes []*outcome
	for _, c := range candidates {
		outcome, err := t.decide(c, report.First.UnixNano(), report.Last.UnixNano(), &progress)
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
func (t *Traffic) decide(c Candidate, first, last int64, progress *progress) (*outcome, error) {
	var now int64
	decider, err := c.decider(&now)
	if err != nil {
		return nil, err
	}
	outcome := newOutcome(first, last)
	for id, key := range t.keys {
		events := t.events.of(id)
		now = events[0]
		take, err := decider(key)
		if err != nil {
			return nil, err
		}
		for i, at := range events {
			now = at
			d, err := take(t.events.costOf(id, i))
			if err != nil {
				return nil, err
			}
			outcome.count(now, d)
			progress.step()
		}
		outcome.endKey(id)
	}
	return outcome, nil
}

// decider begins the next key. The function that it returns decides on the next event of that key.
type decider func(key string) (take func(cost int64) (weir.Decision, error), err error)

// decider returns a decider that reads the time from *now. It uses a rule and the memory engine. For a single limit
// that rules refuse it uses one Limiter for each key.
func (c Candidate) decider(now *int64) (decider, error) {
	clock := func() int64 { return *now }
	rule, err := weir.NewRule(ruleName, c.Limits...)
	if err == nil {
		return ruleDecider(rule, weir.NewMemory(weir.MemoryOptions{Clock: clock})), nil
	}
	if len(c.Limits) != 1 {
		return nil, err
	}
	if _, err := weir.New(c.Limits[0]); err != nil {
		return nil, err
	}
	return func(string) (func(int64) (weir.Decision, error), error) {
		limiter, err := weir.NewWith(c.Limits[0], weir.Options{Clock: clock})
		return func(cost int64) (weir.Decision, error) { return limiter.Take(cost), nil }, err
	}, nil
}

// ruleDecider resets a key when the next key begins.
func ruleDecider(rule *weir.Rule, engine *weir.Memory) decider {
	ctx := context.Background()
	request := []weir.Request{rule.For("", 1)}
	return func(key string) (func(int64) (weir.Decision, error), error) {
		err := engine.Reset(ctx, request...)
		request[0].Key = key
		return func(cost int64) (weir.Decision, error) {
			request[0].Cost = cost
			return engine.Take(ctx, request...)
		}, err
	}
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
