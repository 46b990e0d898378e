package weir_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

// These tests check the claims of the limits' comments about edges, one each.

func TestBookedCycleMayUseOneLessThanTwiceItsPermits(t *testing.T) {
	start := time.Unix(1_700_000_000, 0) // a cycle of 10 s begins
	lim := mustNew(t, weir.Cycle{Rate: weir.Per(10, 10*time.Second)})
	lim.TakeAt(start, 1)
	b, err := lim.ReserveAt(start, 10, weir.Never)
	if err != nil || b.Decision.Delay != 10*time.Second {
		t.Fatalf("booking of 10 with 9 left: %+v, %v; want it in the next cycle", b.Decision, err)
	}
	next := start.Add(10 * time.Second)
	if !lim.AllowAt(next, 9) || lim.AllowAt(next, 1) {
		t.Error("beside the 10 booked, want 9 more in the next cycle and not 10")
	}
}

func TestGapCountsFromDeniedAttemptsThatAreLogged(t *testing.T) {
	for _, countDenied := range []bool{false, true} {
		start := time.Unix(1_700_000_000, 0)
		lim := mustNew(t, weir.SlidingLog{Rate: weir.Per(5, 10*time.Second), Gap: time.Second, CountDenied: countDenied})
		lim.AllowAt(start, 1)
		if lim.AllowAt(start.Add(500*time.Millisecond), 1) {
			t.Error("an attempt within the gap was admitted")
		}
		if got := lim.AllowAt(start.Add(1200*time.Millisecond), 1); got == countDenied {
			t.Errorf("count denied %v: an attempt 1.2s after the admitted and 0.7s after the denied one: admitted %v", countDenied, got)
		}
	}
}

func TestARecordOverALimitCountsInFull(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	for _, test := range []struct {
		limit weir.Limit
		want  int64 // left after 15 were recorded and 5 came back
	}{
		{weir.SlidingLog{Rate: weir.Per(10, 10*time.Second)}, 0},
		{weir.RateGate{Rate: weir.Per(10, 10*time.Second)}, 0},
		{weir.FixedWindow{Rate: weir.Per(10, 10*time.Second)}, 0},
		{weir.TokenBucket{Rate: weir.Per(10, 10*time.Second)}, 0},
	} {
		lim := mustNew(t, test.limit)
		lim.RecordAt(start, 15)
		if d := lim.ReturnAt(start, 5); d.Remaining != test.want {
			t.Errorf("%v: %d left, want %d", test.limit, d.Remaining, test.want)
		}
	}
}

func TestJitterHoldsBackWaitingCallersOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1}, weir.Options{Jitter: time.Hour})
		start := time.Now()
		if err := lim.Wait(t.Context()); err != nil || time.Since(start) != 0 {
			t.Errorf("a turn that need not be waited for: %v after %v, want it at once", err, time.Since(start))
		}
		if err := lim.Wait(t.Context()); err != nil || time.Since(start) <= time.Second || time.Since(start) >= time.Hour+time.Second {
			t.Errorf("a turn after a second: %v after %v, want a random time below an hour more", err, time.Since(start))
		}
	})
}

func TestRuleReadsBackWithoutWhiteSpaceAroundItsName(t *testing.T) {
	for name, want := range map[string]string{"log in": "log in", " login ": "login"} {
		rule := mustRule(t, name, weir.FixedWindow{Rate: weir.PerDay(1)})
		if again, err := weir.ParseRule(rule.String()); err != nil || again.Name() != want {
			t.Errorf("%q reads back as %v, %v; want the name %q", rule, again, err, want)
		}
	}
}
