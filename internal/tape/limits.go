package tape

import (
	"context"

	"github.com/weirflow/weir"
)

// Limits are limits without a name on a tape of their own, with a state for each key. A limit that rules refuse is alone, and
// each key has a Limiter of it.
type Limits struct {
	tape     *Tape
	rule     *weir.Rule
	alone    weir.Limit
	limiters map[string]*weir.Limiter // of alone
}

// Of returns limits with fresh states. The error is that of weir.NewRule, or of weir.New for a limit alone.
func Of(limits ...weir.Limit) (*Limits, error) {
	l := &Limits{tape: New()}
	rule, err := weir.NewRule("replay", limits...)
	switch {
	case err == nil:
		l.rule = rule
		return l, nil
	case len(limits) != 1:
		return nil, err
	}
	if _, err := weir.New(limits[0]); err != nil {
		return nil, err
	}
	l.alone, l.limiters = limits[0], map[string]*weir.Limiter{}
	return l, nil
}

// Take takes at an instant: see Tape.At.
func (l *Limits) Take(now int64, key string, cost int64) (weir.Decision, error) {
	l.tape.At(now)
	if l.rule != nil {
		return l.tape.Take(context.Background(), l.rule.For(key, cost))
	}
	limiter, err := l.limiter(key)
	if err != nil {
		return weir.Decision{}, err
	}
	return limiter.Take(cost), nil
}

// Peek works like Take and takes nothing.
func (l *Limits) Peek(now int64, key string, cost int64) (weir.Decision, error) {
	l.tape.At(now)
	if l.rule != nil {
		return l.tape.Peek(context.Background(), l.rule.For(key, cost))
	}
	limiter, err := l.limiter(key)
	if err != nil {
		return weir.Decision{}, err
	}
	return limiter.Peek(cost), nil
}

// Forget discards the state of a key: see Tape.Forget.
func (l *Limits) Forget(key string) error {
	if l.rule != nil {
		return l.tape.Forget(l.rule.For(key, 1))
	}
	l.tape.begun = false
	delete(l.limiters, key)
	return nil
}

func (l *Limits) limiter(key string) (limiter *weir.Limiter, err error) {
	limiter, ok := l.limiters[key]
	if !ok {
		limiter, err = weir.NewWith(l.alone, weir.Options{Clock: l.tape.Now})
		l.limiters[key] = limiter
	}
	return limiter, err
}
