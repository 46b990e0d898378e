package simulate

import (
	"context"

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
	_, err = newJudge(limits, new(int64))
	return c, err
}

// Rate returns the rate of the first limit that has one, or a rate of 0.
func (c Candidate) Rate() weir.Rate {
	for _, limit := range c.Limits {
		if rate := weir.Describe(limit).Rate; rate.Period > 0 {
			return rate
		}
	}
	return weir.Rate{}
}

// judge decides for a candidate at the current virtual time, with a state for each key. It uses a rule and the memory
// engine. For a single limit that rules refuse it uses one Limiter for each key.
type judge struct {
	rule     *weir.Rule
	engine   *weir.Memory
	limit    weir.Limit // alone
	options  weir.Options
	limiters map[string]*weir.Limiter // of limit
}

// newJudge returns a fresh judge that reads the time from *now.
func newJudge(limits []weir.Limit, now *int64) (*judge, error) {
	clock := func() int64 { return *now }
	rule, err := weir.NewRule("replay", limits...)
	if err == nil {
		return &judge{rule: rule, engine: weir.NewMemory(weir.MemoryOptions{Clock: clock, MaxKeys: maxClients})}, nil
	}
	if len(limits) != 1 {
		return nil, err
	}
	if _, err := weir.New(limits[0]); err != nil {
		return nil, err
	}
	return &judge{limit: limits[0], options: weir.Options{Clock: clock}, limiters: map[string]*weir.Limiter{}}, nil
}

func (j *judge) take(key string, cost int64) (weir.Decision, error) {
	if j.rule != nil {
		return j.engine.Take(context.Background(), j.rule.For(key, cost))
	}
	l, err := j.limiter(key)
	if err != nil {
		return weir.Decision{}, err
	}
	return l.Take(cost), nil
}

func (j *judge) peek(key string, cost int64) (weir.Decision, error) {
	if j.rule != nil {
		return j.engine.Peek(context.Background(), j.rule.For(key, cost))
	}
	l, err := j.limiter(key)
	if err != nil {
		return weir.Decision{}, err
	}
	return l.Peek(cost), nil
}

// forget discards the state of a key.
func (j *judge) forget(key string) error {
	if j.rule != nil {
		return j.engine.Reset(context.Background(), j.rule.For(key, 1))
	}
	delete(j.limiters, key)
	return nil
}

func (j *judge) limiter(key string) (l *weir.Limiter, err error) {
	l, ok := j.limiters[key]
	if !ok {
		l, err = weir.NewWith(j.limit, j.options)
		j.limiters[key] = l
	}
	return l, err
}
