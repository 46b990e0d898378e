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
// "and". A limit that rules refuse is tried on its own, one for each key. The
// error is that of [weir.ParseLimits], or of [weir.NewRule].
func ParseCandidate(text string) (Candidate, error) {
	limits, err := weir.ParseLimits(text)
	if err != nil {
		return Candidate{}, err
	}
	c := Candidate{Text: text, Limits: limits}
	_, err = c.decider(new(int64))
	return c, err
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
	var now int64
	decider, err := c.decider(&now)
	if err != nil {
		return nil, err
	}
	outcome := newOutcome()
	for id, key := range t.keys {
		events := t.events.of(id)
		now = events[0]
		take, err := decider(key)
		if err != nil {
			return nil, err
		}
		for _, now = range events {
			d, err := take()
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

// decider begins a key, one after another: what it returns decides on the next
// event of that key.
type decider func(key string) (take func() (weir.Decision, error), err error)

// decider decides at *now: by a rule over the memory engine, or by a Limiter for
// each key if rules refuse the limit and there is just one.
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
	return func(string) (func() (weir.Decision, error), error) {
		limiter, err := weir.NewWith(c.Limits[0], weir.Options{Clock: clock})
		return func() (weir.Decision, error) { return limiter.Take(1), nil }, err
	}, nil
}

// ruleDecider forgets a key when the next one begins.
func ruleDecider(rule *weir.Rule, engine *weir.Memory) decider {
	ctx := context.Background()
	request := []weir.Request{rule.For("", 1)}
	return func(key string) (func() (weir.Decision, error), error) {
		err := engine.Reset(ctx, request...)
		request[0].Key = key
		return func() (weir.Decision, error) { return engine.Take(ctx, request...) }, err
	}
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
