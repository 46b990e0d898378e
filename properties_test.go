package weir_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// admission is one admitted cost and its time.
type admission struct{ at, units int64 }

// hammer asks a limiter for random costs at random instants that never decrease, and gives some units back. It
// returns the admissions.
func hammer(t *testing.T, limit weir.Limit, seed uint64) (admitted []admission) {
	t.Helper()
	limiter := mustLimit(t, limit)
	random := rand.New(rand.NewPCG(seed, 0))
	now := int64(1_700_000_000_123_456_789)
	capacity := limiter.PeekAt(time.Unix(0, now), 0).Limit
	var last weir.Decision
	for range 3000 {
		waits := []int64{0, 0, 1, int64(last.RetryAfter), int64(last.RetryAfter) - 1, int64(last.ResetAfter) / 3, random.Int64N(int64(time.Second))}
		now += max(waits[random.IntN(len(waits))], 0)
		cost := 1 + random.Int64N(capacity)
		if random.IntN(2) == 0 {
			cost = 1
		}
		last = limiter.TakeAt(time.Unix(0, now), cost)
		if last.Allowed {
			admitted = append(admitted, admission{now, cost})
		}
	}
	if len(admitted) < 100 {
		t.Fatalf("%s, seed %d: only %d of 3000 admitted: it proves nothing", limit, seed, len(admitted))
	}
	return admitted
}

// mostWithin returns the most units admitted in any [a, a + d).
func mostWithin(admitted []admission, d int64) (most int64) {
	var first int
	var inside int64
	for _, x := range admitted {
		inside += x.units
		for admitted[first].at <= x.at-d {
			inside -= admitted[first].units
			first++
		}
		most = max(most, inside)
	}
	return most
}

func TestTokenBucketNeverAdmitsMoreThanBurstAndRate(t *testing.T) {
	for seed, l := range []weir.TokenBucket{
		{Rate: weir.PerSecond(3), Burst: 5}, {Rate: weir.PerMinute(7), Burst: 2}, {Rate: weir.PerSecond(999), Burst: 40}, {Rate: weir.Per(10, 3*time.Second), Burst: 1},
	} {
		admitted := hammer(t, l, uint64(seed))
		for from := range admitted {
			var units int64
			for _, x := range admitted[from:] {
				units += x.units
				// units <= B + N T/P, without a division
				span := x.at - admitted[from].at
				if (units-l.Burst)*int64(l.Rate.Period) > l.Rate.Count*span {
					t.Fatalf("%s, seed %d: %d units admitted in %v", l, seed, units, time.Duration(span))
				}
			}
		}
	}
}

func TestSlidingLogNeverAdmitsMoreInAnyPeriod(t *testing.T) {
	for seed, l := range []weir.SlidingLog{
		{Rate: weir.PerSecond(5)}, {Rate: weir.Per(20, 3*time.Second)}, {Rate: weir.PerSecond(3), Gap: 100 * time.Millisecond},
	} {
		if got := mostWithin(hammer(t, l, uint64(seed)), int64(l.Rate.Period)); got > l.Rate.Count {
			t.Errorf("%s, seed %d: %d units admitted within one period", l, seed, got)
		}
	}
}

func TestFixedWindowNeverAdmitsMorePerWindow(t *testing.T) {
	for seed, l := range []weir.FixedWindow{{Rate: weir.PerSecond(5)}, {Rate: weir.Per(20, 3*time.Second)}} {
		admitted := hammer(t, l, uint64(seed))
		byWindow := map[int64]int64{}
		for _, x := range admitted {
			byWindow[x.at/int64(l.Rate.Period)] += x.units
		}
		for window, units := range byWindow {
			if units > l.Rate.Count {
				t.Errorf("%s, seed %d: %d units admitted in window %d", l, seed, units, window)
			}
		}
		if got := mostWithin(admitted, int64(l.Rate.Period)); got > 2*l.Rate.Count {
			t.Errorf("%s, seed %d: %d units admitted within one period, want at most twice the count", l, seed, got)
		}
	}
}

func TestLeakyBucketReleasesOneUnitPerInterval(t *testing.T) {
	l := weir.LeakyBucket{Rate: weir.PerSecond(3), Queue: 7}
	limiter := mustLimit(t, l)
	random := rand.New(rand.NewPCG(1, 0))
	var released []admission
	var now int64
	for range 5000 {
		now += random.Int64N(int64(500 * time.Millisecond))
		if d := limiter.TakeAt(time.Unix(0, now), 1); d.Allowed {
			released = append(released, admission{now + int64(d.Delay), 1})
		}
	}
	// A release is rounded up to a nanosecond, so an interval may look 1 ns short.
	interval := int64(time.Second) / 3
	for i := range released[1:] {
		if got := released[i+1].at - released[i].at; got < interval {
			t.Fatalf("%s: released %d ns after the one before, want at least %d", l, got, interval)
		}
	}
	if len(released) < 1000 {
		t.Errorf("%s: only %d released: it proves nothing", l, len(released))
	}
}

// TestRatesNeverDrift takes each unit of a bucket at the instant that the bucket names, over a long virtual time, and
// compares every instant. A second unit is kept in reserve, so that rounding an instant up to a nanosecond wastes
// nothing.
func TestRatesNeverDrift(t *testing.T) {
	for _, c := range []struct {
		rate   weir.Rate
		rounds int64 // whole periods
	}{
		{weir.PerSecond(3), 40_000},
		{weir.PerMinute(7), 20_000},
		{weir.PerSecond(999), 150},
		{weir.PerSecond(weir.MaxRate), 1},
		{weir.Per(1, 30*24*time.Hour), 1500},
		{weir.Per(7, 13), 20_000},
	} {
		limiter := mustLimit(t, weir.TokenBucket{Rate: c.rate, Burst: 2})
		start := int64(-1_000_000_007)
		units := min(c.rate.Count*c.rounds, 150_000)
		now := start
		limiter.TakeAt(time.Unix(0, now), 1)
		for i := range units {
			d := limiter.TakeAt(time.Unix(0, now), 1)
			// Unit i is due i P/N after the start, rounded up.
			due := start + ceilOf(i, int64(c.rate.Period), c.rate.Count)
			if !d.Allowed || now != due {
				t.Fatalf("%v: unit %d of %d: at %d, want it admitted at %d (%+v)", c.rate, i, units, now, due, d)
			}
			now += int64(limiter.PeekAt(time.Unix(0, now), 1).RetryAfter)
		}
	}
}

// ceilOf returns i * period / count rounded up, in two steps that do not overflow.
func ceilOf(i, period, count int64) int64 {
	return i/count*period + (i%count*period+count-1)/count
}

// TestRatesNeverDriftWhenAskedRarely takes all units after long gaps: the totals over centuries are exact, too.
func TestRatesNeverDriftWhenAskedRarely(t *testing.T) {
	for _, rate := range []weir.Rate{weir.PerSecond(3), weir.PerMinute(7), weir.PerSecond(999), weir.PerSecond(weir.MaxRate), weir.Per(1, 30*24*time.Hour)} {
		burst := int64(weir.MaxCount)
		limiter := mustLimit(t, weir.TokenBucket{Rate: rate, Burst: burst})
		start := time.Unix(0, -9_000_000_000_000_000_000)
		limiter.TakeAt(start, burst)
		var taken, passed int64
		for i := range int64(2000) {
			passed += 9_000_000_000_000_000/2 + i*i // 52 days, and never evenly
			room := limiter.PeekAt(start.Add(time.Duration(passed)), 0).Remaining
			if room > 0 && !limiter.TakeAt(start.Add(time.Duration(passed)), room).Allowed {
				t.Fatalf("%v: %d remaining is refused", rate, room)
			}
			taken += room
		}
		if want := floorOf(passed, rate.Count, int64(rate.Period)); taken != want {
			t.Errorf("%v: got %d units in %v, want exactly %d", rate, taken, time.Duration(passed), want)
		}
	}
}

// floorOf returns passed * count / period rounded down, in two steps that do not overflow.
func floorOf(passed, count, period int64) int64 {
	return passed/period*count + passed%period*count/period
}
