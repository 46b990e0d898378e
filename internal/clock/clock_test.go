package clock

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// machine has clocks that the test sets: since is its monotonic clock, and step the change of its wall clock.
type machine struct{ since, step atomic.Int64 }

const machineStart = int64(1_700_000_000_123_456_789)

func (m *machine) read() (since, wall int64) {
	since = m.since.Load()
	return since, machineStart + since + m.step.Load()
}

func (m *machine) wall() int64 {
	_, wall := m.read()
	return wall
}

func (m *machine) pass(d time.Duration) { m.since.Add(int64(d)) }
func (m *machine) set(d time.Duration)  { m.step.Add(int64(d)) }

// ahead returns how far a clock is ahead of the wall of its machine.
func (m *machine) ahead(c *Clock) time.Duration { return time.Duration(c.now() - m.wall()) }

func wantAhead(t *testing.T, m *machine, c *Clock, want time.Duration, when string) {
	t.Helper()
	if got := m.ahead(c); got != want {
		t.Errorf("%s: the clock is ahead of the wall by %v, want %v", when, got, want)
	}
}

func TestClockMovesForwardToAWallClockThatIsAheadByMoreThanASecond(t *testing.T) {
	m := &machine{}
	c := NewOn(m.read)
	m.set(time.Second)
	m.pass(time.Second)
	wantAhead(t, m, c, -time.Second, "the wall is ahead by a second")
	m.set(1)
	m.pass(time.Second - 1)
	wantAhead(t, m, c, -time.Second-1, "before the next look")
	m.pass(1)
	wantAhead(t, m, c, 0, "after the next look")
	m.pass(time.Hour)
	wantAhead(t, m, c, 0, "an hour later")
}

// A corrected jump of two hours is over after sixteen hours, to the nanosecond, for any number of readings.
func TestClockAheadOfTheWallRunsAtSevenEighthsUntilTheyMeet(t *testing.T) {
	for _, every := range []time.Duration{time.Second / 3, time.Second, 7*time.Minute + 13, 5 * time.Hour} {
		m := &machine{}
		c := NewOn(m.read)
		m.set(2 * time.Hour)
		m.pass(time.Second)
		wantAhead(t, m, c, 0, "after the jump")
		m.set(-2 * time.Hour)
		wantAhead(t, m, c, 2*time.Hour, "corrected")
		m.pass(time.Second)
		wantAhead(t, m, c, 2*time.Hour, "at the look that sees it")
		for passed := every; passed < 16*time.Hour; passed += every {
			m.pass(every)
			if got, want := m.ahead(c), 2*time.Hour-passed/8; got != want {
				t.Fatalf("read every %v, %v after the look: ahead by %v, want %v", every, passed, got, want)
			}
		}
		m.pass(every)
		m.pass(time.Minute)
		wantAhead(t, m, c, 0, "after sixteen hours")
		m.pass(100 * time.Hour)
		wantAhead(t, m, c, 0, "long after")
	}
}

func TestSlowStretchLosesOneNanosecondInEightAndThenNone(t *testing.T) {
	s := newStretch(1000, 5003, 5000)
	for since, want := range map[int64]int64{
		-50: 5003, 1000: 5003, 1001: 5004, 1007: 5010, 1008: 5010, 1009: 5011, 1016: 5017,
		1023: 5024, 1024: 5024, 1025: 5025, 1_000_001_024: 1_000_005_024,
	} {
		if got := s.at(since); got != want {
			t.Errorf("at %d: got %d, want %d", since, got, want)
		}
	}
	for _, wall := range []int64{-1 << 62, 0} {
		if s := newStretch(0, 1<<62-1, wall); s.at(1<<62) < s.at(1<<61) || s.slow < 0 {
			t.Errorf("ahead by %d: slow for %d, which does not fit", 1<<62-1-wall, s.slow)
		}
	}
}

func TestClockStopsRunningSlowlyWhenTheWallIsSetForwardAgain(t *testing.T) {
	m := &machine{}
	c := NewOn(m.read)
	m.set(-time.Hour)
	m.pass(time.Second)
	wantAhead(t, m, c, time.Hour, "set back")
	m.pass(8 * time.Second)
	wantAhead(t, m, c, time.Hour-time.Second, "at 7/8 speed")
	m.set(time.Hour - 2*time.Second)
	m.pass(8 * time.Second)
	wantAhead(t, m, c, 0, "set forward, but still behind: slow until they meet")
	m.set(3 * time.Second)
	m.pass(time.Second)
	wantAhead(t, m, c, 0, "set far ahead")
}

// Goroutines read a clock whose wall is set back and forth all the time. It never runs back for any of them, and the
// fast path returns what the slow path returns.
func TestClockNeverRunsBackForAnyGoroutine(t *testing.T) {
	m := &machine{}
	c := NewOn(m.read)
	var readers, setter sync.WaitGroup
	stop := make(chan struct{})
	setter.Go(func() {
		random := rand.New(rand.NewPCG(1, 2))
		for {
			select {
			case <-stop:
				return
			default:
			}
			m.pass(time.Duration(random.Int64N(int64(400 * time.Millisecond))))
			if random.IntN(8) == 0 {
				m.set(time.Duration(random.Int64N(int64(20*time.Second)) - int64(10*time.Second)))
			}
		}
	})
	for range 4 {
		readers.Go(func() {
			last := int64(0)
			for range 200_000 {
				since, _ := m.read()
				at, ok := c.stretch.Load().atFullSpeed(since)
				if !ok {
					at = c.at(since)
				}
				if at < last {
					t.Errorf("the clock went back by %v, at %v since its start", time.Duration(last-at), time.Duration(since))
					return
				}
				last = at
			}
		})
	}
	readers.Wait()
	close(stop)
	setter.Wait()
}

func TestAMonotonicClockIsMovedByNoStepOfTheWallClock(t *testing.T) {
	m := &machine{}
	c := Monotonic(NewOn(m.read))
	for _, step := range []time.Duration{time.Hour, -3 * time.Hour, 1000 * time.Hour, -time.Second} {
		m.set(step)
		m.pass(time.Minute)
		if got, want := c.Now(), machineStart+m.since.Load(); got != want {
			t.Errorf("after a step of %v: ahead of the elapsed time by %v, want 0s", step, time.Duration(got-want))
		}
	}
}

func TestQuickReadingsAreThoseOfTheStretch(t *testing.T) {
	for _, wall := range []int64{0, 7000, 7001, 7001 + 2*checkEvery} {
		s := newStretch(500, 7000, wall)
		for _, since := range []int64{0, 499, 500, 501, 500 + checkEvery - 1, 500 + checkEvery, 500 + 2*checkEvery} {
			at, ok := s.atFullSpeed(since)
			if want := s.slow == 0 && since >= 500 && since < 500+checkEvery; ok != want || ok && at != s.at(since) {
				t.Errorf("wall %d, reading %d: got %d, %v, want %d, %v", wall, since, at, ok, s.at(since), want)
			}
		}
	}
}

func TestInjectedClockIsTakenAsItIs(t *testing.T) {
	at := int64(0)
	c := New(func() int64 { return at })
	for _, at = range []int64{5, math.MaxInt64, 3, -7} {
		if got := c.now(); got != at {
			t.Errorf("got %d, want %d", got, at)
		}
	}
}
