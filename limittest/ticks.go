package limittest

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/vectors"
)

// RunTicks is [Run] for an engine that measures time in ticks and stores numbers up to most ticks. It checks that a
// retry one tick early is refused. It plays vectors in ticks: it reduces the start of a scenario modulo the least
// common multiple of the periods, and reads each nanosecond as one tick, except for windows of the calendar. It logs and skips a scenario that does not
// fit, or whose limits the engine refuses with a *weir.LimitError.
func RunTicks(t *testing.T, tick time.Duration, most int64, newEngine func(clock func() int64) weir.Engine) {
	t.Run("Vectors", func(t *testing.T) {
		binds := func(s vectors.Scenario) string {
			if reason := unbooked(s, newEngine); reason != "" {
				return reason
			}
			_, reason := s.InTicks(tick, most)
			return reason
		}
		vectors.Run(t, binds, func(s vectors.Scenario) (vectors.Subject, error) {
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

func newTicked(t *testing.T, s vectors.Scenario, tick time.Duration, most int64, newEngine func(clock func() int64) weir.Engine) (vectors.Subject, error) {
	if s.OfCalendar() {
		k := &floored{&engineSubject{f: newFixture(t, newEngine)}, int64(tick)}
		return k, k.ChangeTo(s.Params)
	}
	scaled, _ := s.InTicks(tick, most)
	k := &ticked{&engineSubject{f: newFixture(t, newEngine)}, s.T0 - scaled.T0/int64(tick), int64(tick)}
	for _, params := range slices.Backward(s.AllParams()) { // a scenario that is refused is not played in part
		if err := k.ChangeTo(params); err != nil {
			return nil, vectors.RefusedInTicks{Err: err}
		}
	}
	return k, nil
}

// floored asks in nanoseconds, which the engine rounds down to ticks. It then measures durations from an earlier instant.
type floored struct {
	*engineSubject
	tick int64
}

func (k *floored) Answer(now int64, op vectors.Op) vectors.Answer {
	a := k.engineSubject.Answer(now, op)
	for _, d := range []*int64{&a.RetryAfter, &a.ResetAfter} {
		if *d > 0 && *d < math.MaxInt64 {
			*d -= now % k.tick
		}
	}
	return a
}

// ChangeTo changes to limits in nanoseconds of the vectors.
func (k *ticked) ChangeTo(params vectors.Params) error {
	params, _ = params.InTicks(k.tick) // fits: see vectors.Scenario.InTicks
	return k.engineSubject.ChangeTo(params)
}

func (k *ticked) Answer(now int64, op vectors.Op) vectors.Answer {
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
