package limittest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// RunTicks is [Run] for an engine that measures time in ticks and stores numbers up to most ticks. It checks that a
// retry one tick early is refused. It plays vectors in ticks: it reduces the start of a scenario modulo the least
// common multiple of the periods, and reads each nanosecond as one tick. It logs and skips a scenario that does not
// fit, or whose limits the engine refuses with a *weir.LimitError.
func RunTicks(t *testing.T, tick time.Duration, most int64, newEngine func(clock func() int64) weir.Engine) {
	t.Run("Vectors", func(t *testing.T) {
		binds := func(s Scenario) string {
			if reason := unbooked(s, newEngine); reason != "" {
				return reason
			}
			_, reason := s.inTicks(tick, most)
			return reason
		}
		RunVectors(t, binds, func(s Scenario) (Subject, error) {
			return newTicked(t, s, tick, most, newEngine)
		})
	})
	for _, piece := range pieces {
		t.Run(piece.promise, func(t *testing.T) {
			f := newFixture(t, newEngine)
			f.tick = tick
			piece.prove(f)
		})
	}
}

// ticked converts an engine's answers in ticks to nanoseconds of the vectors.
type ticked struct {
	*engineSubject
	shift int64 // ns that the start was reduced by
	tick  int64
}

func newTicked(t *testing.T, s Scenario, tick time.Duration, most int64, newEngine func(clock func() int64) weir.Engine) (Subject, error) {
	scaled, _ := s.inTicks(tick, most)
	k := &ticked{&engineSubject{f: newFixture(t, newEngine)}, s.T0 - scaled.T0/int64(tick), int64(tick)}
	for _, params := range slices.Backward(s.allParams()) { // a scenario that is refused is not played in part
		if err := k.ChangeTo(params); err != nil {
			return nil, refusedInTicks{err}
		}
	}
	return k, nil
}

// ChangeTo changes to limits in nanoseconds of the vectors.
func (k *ticked) ChangeTo(params Params) error {
	params, _ = params.inTicks(k.tick) // fits: see Scenario.inTicks
	return k.engineSubject.ChangeTo(params)
}

// refusedInTicks marks a refusal of limits that are out of bounds only because they are read in ticks.
type refusedInTicks struct{ error }

func (r refusedInTicks) Unwrap() error { return r.error }

func (k *ticked) Answer(now int64, op Op) Answer {
	switch {
	case op.MaxWait > math.MaxInt64/k.tick:
		op.MaxWait = -1
	case op.MaxWait > 0:
		op.MaxWait *= k.tick
	}
	a := k.engineSubject.Answer((now-k.shift)*k.tick, op)
	for _, d := range []*int64{&a.RetryAfter, &a.ResetAfter, &a.Delay} {
		if *d == math.MaxInt64 {
			continue
		}
		if *d%k.tick != 0 {
			a.Error = fmt.Sprintf("%d ns are not whole ticks", *d)
		}
		*d /= k.tick
	}
	return a
}

// inTicks returns the scenario with its start reduced and its limits in ticks, or the reason it does not fit.
func (s Scenario) inTicks(tick time.Duration, most int64) (_ Scenario, reason string) {
	common, ok := Params{Limits: s.allParams()}.commonPeriod()
	if ok {
		s.T0 = (s.T0%common + common) % common
	}
	longest := int64(0)
	for _, op := range s.Ops {
		at := s.T0 + op.T
		longest = max(longest, at, -at)
		for _, d := range []*int64{op.Want.RetryAfter, op.Want.ResetAfter, op.Want.Delay} {
			if d != nil {
				longest = max(longest, *d)
			}
		}
	}
	if longest > most || s.T0 > most {
		return s, fmt.Sprintf("instants or waits are above %d ticks", most)
	}
	if _, ok := (Params{Limits: s.allParams()}).inTicks(int64(tick)); !ok {
		return s, fmt.Sprintf("a period is above %v when a nanosecond is read as %v", weir.MaxPeriod, tick)
	}
	s.T0 *= int64(tick)
	return s, ""
}

// commonPeriod returns the least common multiple of the periods, or false if it exceeds 64 bits.
func (p Params) commonPeriod() (common int64, ok bool) {
	common = max(p.Period, 1)
	for _, part := range p.Limits {
		period, ok := part.commonPeriod()
		if !ok {
			return 0, false
		}
		a, b := common, period
		for b != 0 {
			a, b = b, a%b
		}
		if common/a > math.MaxInt64/period {
			return 0, false
		}
		common = common / a * period
	}
	return common, true
}

func (p Params) inTicks(tick int64) (Params, bool) {
	for _, d := range []*int64{&p.Period, &p.MinGap, &p.Origin} {
		if *d > int64(weir.MaxPeriod)/tick || *d < -int64(weir.MaxPeriod)/tick {
			return p, false
		}
		*d *= tick
	}
	limits := p.Limits
	p.Limits = nil
	for _, part := range limits {
		part, ok := part.inTicks(tick)
		if !ok {
			return p, false
		}
		p.Limits = append(p.Limits, part)
	}
	return p, true
}

// refusal returns the reason for which limits were refused, and whether that refusal is legal.
func (s Scenario) refusal(err error) (reason string, legal bool) {
	var limitError *weir.LimitError
	if !errors.As(err, &limitError) {
		return "", false
	}
	if in := (refusedInTicks{}); errors.As(err, &in) {
		return limitError.Field + " is out of the engine's bounds in ticks", true
	}
	reason = s.Params.outOfBounds()
	return reason, reason != ""
}
