package weir_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/clock"
)

func TestWrongOptionsAreNamed(t *testing.T) {
	limit := weir.TokenBucket{Rate: weir.PerSecond(1)}
	makers := map[string]func(weir.Options) error{
		"NewWith":      func(o weir.Options) error { _, err := weir.NewWith(limit, o); return err },
		"NewKeyedWith": func(o weir.Options) error { _, err := weir.NewKeyedWith[int](limit, o); return err },
		"NewKeyedFunc": func(o weir.Options) error {
			_, err := weir.NewKeyedFunc(func(int) weir.Limit { return limit }, o)
			return err
		},
	}
	for _, test := range []struct {
		options     weir.Options
		field, text string
	}{
		{weir.Options{Queue: -1}, "queue", "weir: new: options: queue -1 is negative"},
		{weir.Options{Weights: []int64{1, 0}}, "weights", "weir: new: options: weights 0 is not within 1 and 1024"},
		{weir.Options{Jitter: -time.Second}, "jitter", "weir: new: options: jitter -1s is negative"},
	} {
		for name, construct := range makers {
			err := construct(test.options)
			wrong, ok := errors.AsType[*weir.OptionError](err)
			if !ok || wrong.Op != "new" || wrong.Field != test.field || err.Error() != test.text {
				t.Errorf("%s(%+v): got %v, want %s", name, test.options, err, test.text)
			}
			if !isA[*weir.OptionError](err) || errors.Is(err, weir.ErrLimit) {
				t.Errorf("%s(%+v): %v is not only an OptionError", name, test.options, err)
			}
		}
	}
}

// As an argument zero means zero. In a Turn it means the default: no bound.
func TestZeroIsZeroAsAnArgumentAndTheDefaultInATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1}
		lim, keyed := mustNew(t, limit), mustKeyed[int](t, limit)
		lim.Allow()
		keyed.Allow(7)
		start := time.Now()
		refused := func(name string, err error) {
			t.Helper()
			tooLong, ok := errors.AsType[*weir.WaitError](err)
			if !ok || tooLong.Bound != 0 || time.Since(start) != 0 {
				t.Errorf("%s: got %v after %v, want a *WaitError with the bound 0 at once", name, err, time.Since(start))
			}
		}
		refused("Limiter.WaitMax", lim.WaitMax(t.Context(), 1, 0))
		refused("Keyed.WaitMax", keyed.WaitMax(t.Context(), 7, 1, 0))
		refused("Limiter.WaitTurn with a negative Max", lim.WaitTurn(t.Context(), weir.Turn{Cost: 1, Max: -1}))
		refused("Keyed.WaitTurn with a negative Max", keyed.WaitTurn(t.Context(), 7, weir.Turn{Cost: 1, Max: -1}))
		for name, reserve := range map[string]func(time.Duration) (weir.Decision, error){
			"Limiter": func(d time.Duration) (weir.Decision, error) { b, err := lim.Reserve(1, d); return b.Decision, err },
			"Keyed":   func(d time.Duration) (weir.Decision, error) { b, err := keyed.Reserve(7, 1, d); return b.Decision, err },
		} {
			if d, err := reserve(0); err != nil || d.Allowed || d.RetryAfter != time.Second {
				t.Errorf("%s.Reserve with a longest of 0: got %+v and %v, want a refusal for 1s", name, d, err)
			}
		}
		for name, err := range map[string]error{
			"Limiter": lim.WaitTurn(t.Context(), weir.Turn{Cost: 1}),
			"Keyed":   keyed.WaitTurn(t.Context(), 7, weir.Turn{Cost: 1}),
		} {
			if err != nil || time.Since(start) != time.Second {
				t.Errorf("%s.WaitTurn with no Max: got %v after %v, want a turn after 1s", name, err, time.Since(start))
			}
		}
	})
}

func TestLimitsRunOnAnInjectedClock(t *testing.T) {
	now := int64(1_700_000_000_000_000_000)
	clock := func() int64 { return now }
	lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1)}, weir.Options{Clock: clock})
	keyed, err := weir.NewKeyedWith[string](weir.TokenBucket{Rate: weir.PerSecond(1)}, weir.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	for name, allow := range map[string]func() bool{"Limiter": lim.Allow, "Keyed": func() bool { return keyed.Allow("a") }} {
		if !allow() || allow() {
			t.Errorf("%s: want one unit at one instant", name)
		}
		now += int64(time.Second)
		if !allow() {
			t.Errorf("%s: want another unit a second later", name)
		}
	}
}

// A wall clock that is set forward by a day, and back, opens no gate: not that of a Limiter, a Keyed or a Memory.
func TestNoStepOfTheWallClockOpensAGateOnAMonotonicClock(t *testing.T) {
	var since, step time.Duration
	monotonic := clock.Monotonic(clock.NewOn(func() (int64, int64) { return int64(since), int64(since + step) })).Now
	gate := weir.RateGate{Rate: weir.PerHour(2)}
	lim := mustNew(t, gate, weir.Options{Clock: monotonic})
	keyed, err := weir.NewKeyedWith[string](gate, weir.Options{Clock: monotonic})
	if err != nil {
		t.Fatal(err)
	}
	memory, rule := weir.NewMemory(weir.MemoryOptions{Clock: monotonic}), mustRule(t, "r", gate)
	for name, allow := range map[string]func() bool{
		"Limiter": lim.Allow,
		"Keyed":   func() bool { return keyed.Allow("a") },
		"Memory": func() bool {
			d, err := memory.Take(t.Context(), rule.For("a", 1))
			return err == nil && d.Allowed
		},
	} {
		for range 2 {
			if !allow() {
				t.Errorf("%s: want two units at once", name)
			}
		}
		for _, step = range []time.Duration{24 * time.Hour, -24 * time.Hour, 0} {
			since += 15 * time.Minute
			if allow() {
				t.Errorf("%s: admitted after a step of %v, with 2 units in the hour", name, step)
			}
		}
		since += 15 * time.Minute
		if !allow() {
			t.Errorf("%s: want another unit an hour later", name)
		}
		since += time.Hour
	}
}

func TestMonotonicClockBeginsAtTheWallClockAndRunsWithTheMachine(t *testing.T) {
	wall, since := time.Now(), weir.MonotonicClock()
	if ahead := time.Duration(since - wall.UnixNano()); ahead.Abs() > time.Minute {
		t.Errorf("the clock is ahead of the wall clock by %v, want less than a minute", ahead)
	}
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.RateGate{Rate: weir.PerMinute(1)}, weir.Options{Clock: weir.MonotonicClock})
		began := time.Now()
		for range 5 {
			if err := lim.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 4*time.Minute {
			t.Errorf("five callers went in %v, want 4m", took)
		}
	})
}

// The process that loads a snapshot has a monotonic clock of its own, which begins at the wall clock. If that was set
// back since, keys wait longer and get no unit twice.
func TestASnapshotOfAMonotonicClockAheadOfTheNextGivesNoUnitTwice(t *testing.T) {
	const start = int64(1_700_000_000_000_000_000)
	now := start
	clock := func() int64 { return now }
	rule := mustRule(t, "r", weir.RateGate{Rate: weir.PerMinute(1)})
	m := weir.NewMemory(weir.MemoryOptions{Clock: clock})
	spend(t, m, rule.For("k", 1))
	file := saved(t, m)
	now = start - int64(time.Hour) // another process, after the wall clock was set back
	m = loaded(t, file, clock)
	for _, passed := range []time.Duration{0, time.Hour, time.Hour + 59*time.Second} {
		now = start - int64(time.Hour) + int64(passed)
		if d, err := m.Take(t.Context(), rule.For("k", 1)); err != nil || d.Allowed {
			t.Errorf("%v after the load: got %+v and error %v, want a refusal", passed, d, err)
		}
	}
	now = start + int64(time.Minute)
	if d, err := m.Take(t.Context(), rule.For("k", 1)); err != nil || !d.Allowed {
		t.Errorf("a minute after the unit: got %+v and error %v, want an admission", d, err)
	}
}
