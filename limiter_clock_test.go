package weir

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/clock"
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

// Once the clocks have met, a day's window ends at midnight of the wall clock again.
func TestDayWindowEndsAtMidnightAfterAJumpThatWasCorrected(t *testing.T) {
	m := &machine{}
	lim, err := New(FixedWindow{Rate: PerDay(1)})
	if err != nil {
		t.Fatal(err)
	}
	lim.clock = clock.NewOn(m.read)
	m.set(2 * time.Hour)
	m.pass(time.Second)
	lim.Allow()
	m.set(-2 * time.Hour)
	for range 3 * 24 {
		m.pass(time.Hour)
		lim.Allow()
	}
	untilMidnight := 24*time.Hour - time.Duration(m.wall())%(24*time.Hour)
	if got := lim.Peek(1).RetryAfter; got != untilMidnight {
		t.Errorf("the window ends in %v, want %v, at midnight", got, untilMidnight)
	}
}
