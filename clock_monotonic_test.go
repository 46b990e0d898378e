package weir_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/clock"
)

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
