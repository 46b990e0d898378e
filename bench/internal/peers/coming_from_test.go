package peers

import (
	"testing"
	"time"

	"go.uber.org/ratelimit"
	"golang.org/x/time/rate"
)

// These tests check what docs/from/x-time-rate.md says about other limiters.

var at = time.Unix(1_700_000_000, 0)

func TestXTimeRateCreditsTheSameTimeAgainWhenTimeRunsBack(t *testing.T) {
	lim := rate.NewLimiter(1, 10)
	if !lim.AllowN(at, 10) || lim.AllowN(at, 1) {
		t.Fatal("the limiter is not drained")
	}
	more := 0
	for range 5 {
		lim.AllowN(at.Add(-10*time.Second), 0)
		for lim.AllowN(at, 1) {
			more++
		}
	}
	if more != 50 {
		t.Errorf("%d more units at the instant at which it was drained, want 50", more)
	}
}

func TestXTimeRateTakesCostsOfZeroAndBelowAsItSays(t *testing.T) {
	lim := rate.NewLimiter(1, 10)
	lim.AllowN(at, 10)
	lim.ReserveN(at, 1)
	if lim.AllowN(at, 0) {
		t.Error("AllowN(0) is true while a reservation lies ahead, want false")
	}
	if lim.AllowN(at, -100); lim.TokensAt(at) != 10 {
		t.Errorf("%v tokens after a cost of -100, want the burst of 10", lim.TokensAt(at))
	}
	var zero rate.Limiter
	if zero.AllowN(at, 1) || !zero.AllowN(at, 0) {
		t.Error("the zero limiter: want every cost refused but 0")
	}
}

func TestXTimeRateKeepsTheTokensWhenTheBurstIsRaised(t *testing.T) {
	lim := rate.NewLimiter(1, 10)
	lim.AllowN(at, 3)
	lim.SetBurstAt(at, 20)
	if got := lim.TokensAt(at); got != 7 {
		t.Errorf("%v tokens, want 7", got)
	}
}

// Uber's limiter makes every caller wait. A leaky bucket without a queue refuses.
func TestUbersLimiterWithoutSlackMakesACallerWait(t *testing.T) {
	lim := ratelimit.New(100, ratelimit.WithoutSlack)
	first, second := lim.Take(), lim.Take()
	if gap := second.Sub(first); gap < 10*time.Millisecond {
		t.Errorf("the second came %v after the first, want 10ms at least", gap)
	}
}
