package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/bench/internal/peers"
	"github.com/weirflow/weir/bench/internal/workload"
)

const (
	clockless     = "without the clock, one core"
	givenKeyed    = "Keyed.AllowAt, one key"
	givenXRate    = "x/time/rate, AllowN"
	givenLoop     = "the loop alone"
	clocklessStep = time.Microsecond // from one call to the next
)

// clocklessRows are decisions at times that the caller gives. They tell what a decision costs beside the reading of the clock.
func clocklessRows() (list []measure.Row) {
	for _, l := range []struct {
		line    string
		ours    bool
		prepare func() (func(time.Time) bool, error)
	}{
		{givenLoop, false, func() (func(time.Time) bool, error) { return func(t time.Time) bool { return !t.IsZero() }, nil }},
		{given(weir.TokenBucket{}), true, givenLimiter(weir.TokenBucket{Rate: weir.PerSecond(weir.MaxRate), Burst: 10})},
		{given(weir.Bursty{}), true, givenLimiter(weir.Bursty{Rate: weir.PerSecond(1e6), Over: time.Second})},
		{given(weir.WarmUp{}), true, givenLimiter(weir.WarmUp{Rate: weir.PerSecond(1e7), Over: time.Microsecond, Cold: 3})},
		{given(weir.Cycle{}), true, givenLimiter(weir.Cycle{Rate: weir.Per(100, 50*time.Microsecond)})},
		{givenKeyed, true, func() (func(time.Time) bool, error) {
			k, err := weir.NewKeyed[string](weir.TokenBucket{Rate: weir.PerSecond(weir.MaxRate), Burst: 10})
			key := workload.Key(1)
			return func(t time.Time) bool { return k.AllowAt(t, key, 1) }, err
		}},
		{givenXRate, false, func() (func(time.Time) bool, error) {
			l := rate.NewLimiter(1e9, 10)
			return func(t time.Time) bool { return l.AllowN(t, 1) }, nil
		}},
	} {
		list = append(list, measure.Row{Group: clockless, Line: l.line, Ours: l.ours, Measure: func(_ context.Context, o *measure.Options) (measure.Figures, error) {
			take, err := l.prepare()
			if err != nil {
				return nil, err
			}
			return measureGiven(o, take)
		}})
	}
	return list
}

// given is the line of a limit.
func given(l weir.Limit) string { return fmt.Sprintf("Limiter.AllowAt, %T", l) }

func givenLimiter(limit weir.Limit) func() (func(time.Time) bool, error) {
	return func() (func(time.Time) bool, error) {
		l, err := weir.New(limit)
		return func(t time.Time) bool { return l.AllowAt(t, 1) }, err
	}
}

// measureGiven gives times that go on; the limits admit every call at such times.
func measureGiven(o *measure.Options, take func(time.Time) bool) (measure.Figures, error) {
	now := time.Now()
	ask := func(_ int, stop until) counts {
		return decide(stop, func() (bool, error) {
			now = now.Add(clocklessStep)
			return take(now), nil
		})
	}
	parallel(1, after(o.Window/4), ask)
	return parallel(1, after(o.Window), ask).figures(peers.Peer{Kind: peers.Ours}, false)
}

func clocklessTargets() []measure.Target {
	bucket := []string{given(weir.TokenBucket{}) + ", " + clockless}
	at := func(name string, bound float64, line string) measure.Target {
		return measure.Target{Name: name, Figure: "ns", Format: times, Bound: bound, Cases: []measure.Case{{Row: line + ", " + clockless, Over: bucket}}}
	}
	return []measure.Target{
		at("`Bursty` over a bucket, without the clock", 3, given(weir.Bursty{})),
		at("`WarmUp` over a bucket, without the clock", 3, given(weir.WarmUp{})),
		over("`Cycle` over a bucket, with the clock", 1.2, peers.OursLimiter+"cycle", []string{limiterBucket}, singleMix.Name),
	}
}
