package weir_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

// The modes of an interval timer differ in what happens after missed ticks (Tokio's MissedTickBehavior has the same
// three). Here the limit makes that choice. The caller below wants a tick every 100 ms. It is busy from 100 ms to 450
// ms, misses the ticks of 200, 300 and 400 ms, and then keeps up.

func ticksAfterThreeMissed(t *testing.T, limit func(start time.Time) weir.Limit) (at []time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(37 * time.Millisecond) // not at a round time
		start := time.Now()
		lim := mustNew(t, limit(start))
		// A bucket starts full; an interval starts with a single tick.
		lim.AllowN(lim.Peek(0).Limit - 1)
		for range 8 {
			if err := lim.Wait(t.Context()); err != nil {
				t.Error(err)
			}
			at = append(at, time.Since(start)/time.Millisecond)
			if len(at) == 2 {
				time.Sleep(350 * time.Millisecond)
			}
		}
	})
	return at
}

func TestMissedTicksAreMadeUpForByATokenBucket(t *testing.T) {
	got := ticksAfterThreeMissed(t, func(time.Time) weir.Limit {
		return weir.TokenBucket{Rate: weir.Per(1, 100*time.Millisecond), Burst: 10}
	})
	// Burst: the missed ones at once, and then as if nothing had happened.
	if want := []time.Duration{0, 100, 450, 450, 450, 500, 600, 700}; !slices.Equal(got, want) {
		t.Errorf("ticks at %d ms, want %d", got, want)
	}
}

func TestMissedTicksAreMadeUpForNoFurtherThanTheBurst(t *testing.T) {
	got := ticksAfterThreeMissed(t, func(time.Time) weir.Limit {
		return weir.TokenBucket{Rate: weir.Per(1, 100*time.Millisecond), Burst: 2}
	})
	if want := []time.Duration{0, 100, 450, 450, 550, 650, 750, 850}; !slices.Equal(got, want) {
		t.Errorf("ticks at %d ms, want %d", got, want)
	}
}

func TestMissedTicksDelayTheRestOfARateGate(t *testing.T) {
	got := ticksAfterThreeMissed(t, func(time.Time) weir.Limit {
		return weir.RateGate{Rate: weir.Per(1, 100*time.Millisecond)}
	})
	// Delay: one at once, and the next a whole period later.
	if want := []time.Duration{0, 100, 450, 550, 650, 750, 850, 950}; !slices.Equal(got, want) {
		t.Errorf("ticks at %d ms, want %d", got, want)
	}
}

func TestMissedTicksAreSkippedByACycle(t *testing.T) {
	got := ticksAfterThreeMissed(t, func(start time.Time) weir.Limit {
		return weir.Cycle{Rate: weir.Per(1, 100*time.Millisecond), Origin: time.Duration(start.UnixNano())}
	})
	// Skip: one at once, and then on the grid that began with the first.
	if want := []time.Duration{0, 100, 450, 500, 600, 700, 800, 900}; !slices.Equal(got, want) {
		t.Errorf("ticks at %d ms, want %d", got, want)
	}
}

func TestMissedTicksAreSkippedByAFixedWindow(t *testing.T) {
	got := ticksAfterThreeMissed(t, func(time.Time) weir.Limit {
		return weir.FixedWindow{Rate: weir.Per(1, 100*time.Millisecond)}
	})
	// As a cycle, on the grid of the clock: it was 37 ms past when this began.
	if want := []time.Duration{0, 63, 413, 463, 563, 663, 763, 863}; !slices.Equal(got, want) {
		t.Errorf("ticks at %d ms, want %d", got, want)
	}
}
