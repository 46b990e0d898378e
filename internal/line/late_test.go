package line

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/clock"
)

// The periods of limits.
const (
	second = int64(time.Second)
	hour   = int64(time.Hour)
	day    = 24 * hour
)

// late is a line under a clock of its own, whose timer the test fires.
type late struct {
	t       testing.TB
	mu      sync.Mutex
	now     int64
	lines   Lines
	subject Subject
}

func newLate(t testing.TB, a algorithm.Algorithm) *late {
	l := &late{t: t, now: int64(time.Hour), subject: NewSubject(a, int64(time.Hour))}
	l.lines = Lines{Lock: &l.mu, Clock: clock.New(func() int64 { return l.now }), Capacity: 1 << 16}
	return l
}

// come adds waiting callers, and counts those that are released at once.
func (l *late) come(callers int) (gone int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for range callers {
		w, err := l.lines.Join(l.t.Context(), &l.subject, l.now, Turn{Cost: 1, Longest: algorithm.Never})
		if err != nil {
			l.t.Fatal(err)
		}
		if w == nil || !w.Queued() {
			gone++
		}
	}
	return gone
}

// fire returns the timer after d; it counts the callers that it releases.
func (l *late) fire(d time.Duration) (gone int) {
	l.now += int64(d)
	before := l.subject.line.length()
	l.subject.line.fire()
	if l.subject.line == nil {
		return before
	}
	return before - l.subject.line.length()
}

// Callers that come back as soon as they are released keep up the rate although the timer is late each time. Any
// stretch of time from the start has exactly the rate.
func TestLateTimerCostsNoThroughput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const unit, callers = time.Millisecond / 10, 10
		l := newLate(t, algorithm.NewTokenBucket(1, int64(unit), 1))
		gone := l.come(callers)
		for round := range int64(1000) {
			returned := l.fire(callers * unit) // the head was due after one unit
			gone += returned
			for returned > 0 {
				l.now++ // a little time to come back
				returned = l.come(returned)
				gone += returned
			}
			passed := (round + 1) * int64(callers*unit)
			if most := 1 + int(l.now-int64(time.Hour))/int(unit); gone > most {
				t.Fatalf("after %v: %d released, above the %d of the rate", time.Duration(passed), gone, most)
			}
		}
		if want := 1000 * callers * 99 / 100; gone < want {
			t.Errorf("%d released in the time of %d", gone, 1000*callers)
		}
	})
}

// The credit is no larger than the lateness, is spent once and soon ends.
func TestLateTimerIsNoBurst(t *testing.T) {
	const unit = time.Millisecond
	for name, test := range map[string]struct {
		late, after time.Duration
		want        int
	}{
		"on time":              {0, 1, 0},
		"late by three":        {3 * unit, 1, 3},
		"late by an hour":      {time.Hour, 1, 1 + 10}, // the burst, and at most 10ms
		"back after the end":   {3 * unit, 3 * unit, 1},
		"back before the end":  {3 * unit, 3*unit - 1, 1 + 3},
		"back much later":      {3 * unit, time.Hour, 1},
		"not late, back later": {0, 5 * unit, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLate(t, algorithm.NewTokenBucket(1, int64(unit), 1))
			l.come(2)
			if gone := l.fire(unit + test.late); gone != 1 {
				t.Fatalf("%s: %d of one released", name, gone)
			}
			l.now += int64(test.after)
			if gone := l.come(100); gone != test.want {
				t.Errorf("%s: %d go at once, want %d", name, gone, test.want)
			}
		})
	}
}

// A strict limit owes nothing for a late release: it counts from the actual release.
func TestLateTimerOfAStrictLimitOwesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLate(t, algorithm.NewRateGate(1, second))
		l.come(3)
		for range 2 {
			if gone := l.fire(1800 * time.Millisecond); gone != 1 {
				t.Errorf("%d released 1.8s after the one before, want 1", gone)
			}
			if gone := l.come(1); gone != 0 {
				t.Errorf("%d went right after another", gone)
			}
		}
	})
}

// A caller waits for tomorrow's window, and the wall clock jumps to tomorrow: the machine was suspended.
func TestACallerGoesWithinAMinuteOfAJumpOfTheWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var jump atomic.Int64
		own := clock.NewOn(func() (since, wall int64) { return int64(time.Since(start)), time.Now().UnixNano() + jump.Load() })
		var mu sync.Mutex
		lines, subject := Lines{Lock: &mu, Clock: own, Capacity: 1}, NewSubject(algorithm.NewFixedWindow(1, day), own.Now())
		mu.Lock()
		subject.Take(own.Now(), 1)
		w, err := lines.Join(t.Context(), &subject, own.Now(), Turn{Cost: 1, Longest: algorithm.Never})
		mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Hour, func() { jump.Store(day) })
		if err := lines.Await(t.Context(), w, algorithm.Never); err != nil || time.Since(start) > time.Hour+time.Minute {
			t.Errorf("the caller went after %v (%v), want within a minute of the jump after an hour", time.Since(start), err)
		}
	})
}
