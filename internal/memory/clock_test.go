package memory

import (
	"bytes"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/clock"
)

// machine has clocks that the test sets: since is its monotonic clock, and step the change of its wall clock.
type machine struct{ since, step int64 }

func (m *machine) read() (since, wall int64) {
	return m.since, 1_700_000_000_123_456_789 + m.since + m.step
}

func (m *machine) pass(d time.Duration) { m.since += int64(d) }
func (m *machine) set(d time.Duration)  { m.step += int64(d) }

func wantAhead(t *testing.T, m *machine, c *clock.Clock, want time.Duration, when string) {
	t.Helper()
	_, wall := m.read()
	if got := time.Duration(c.Now() - wall); got != want {
		t.Errorf("%s: the clock is ahead of the wall by %v, want %v", when, got, want)
	}
}

// A snapshot that was taken ahead of the wall clock continues ahead of it, by the time that has passed on the wall
// clock, and runs slowly from the start.
func TestEngineLoadedAheadOfTheWallMeetsItAgain(t *testing.T) {
	for _, tt := range []struct {
		name            string
		set, away, back time.Duration // before the save, until the load, meanwhile
		want            time.Duration // ahead after the load
	}{
		{"corrected before the save", -2 * time.Hour, time.Minute, 0, 2 * time.Hour},
		{"corrected while it was away", 0, time.Minute, -2 * time.Hour, 2*time.Hour - time.Minute},
		{"set back twice", -2 * time.Hour, time.Minute, -time.Hour, 3*time.Hour - time.Minute},
		{"never corrected", 0, time.Minute, 0, 0},
	} {
		m := &machine{}
		before := New(Options{Clock: clock.NewOn(m.read)})
		m.set(2 * time.Hour)
		m.pass(time.Second)
		wantAhead(t, m, before.clock, 0, tt.name+": after the jump")
		m.set(tt.set)
		var file bytes.Buffer
		if err := before.Save(&file); err != nil {
			t.Fatal(err)
		}
		m.set(tt.back)
		m.pass(tt.away)
		after, err := Load(&file, Options{Clock: clock.NewOn(m.read)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		wantAhead(t, m, after.clock, tt.want, tt.name+": after the load")
		m.pass(tt.want)
		wantAhead(t, m, after.clock, tt.want-tt.want/8, tt.name+": at 7/8 speed")
		m.pass(8*tt.want + time.Second)
		wantAhead(t, m, after.clock, 0, tt.name+": when they have met")
	}
}
