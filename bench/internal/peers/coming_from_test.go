package peers

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"go.uber.org/ratelimit"
	"golang.org/x/time/rate"
)

// These tests check what docs/from/x-time-rate.md and docs/from/uber.md say about those limiters.

var at = time.Unix(1_700_000_000, 0)

func TestATokenBucketAdmitsWhatXTimeRateAdmits(t *testing.T) {
	theirs := rate.NewLimiter(10, 3)
	ours, err := weir.New(weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 3})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 0))
	admitted := 0
	for now, ask := at, 0; ask < 10_000; ask++ {
		now = now.Add(time.Duration(random.Int64N(int64(300 * time.Millisecond))))
		n := 1 + random.Int64N(4)
		got, want := ours.AllowAt(now, n), theirs.AllowN(now, int(n))
		if got != want {
			t.Fatalf("ask %d: %d units: got %v, want %v", ask, n, got, want)
		}
		if got {
			admitted++
		}
	}
	if admitted < 1000 || admitted > 9000 {
		t.Errorf("%d of 10000 admitted: it proves nothing", admitted)
	}
}

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

// sleeper is a clock that sleeps at once.
type sleeper struct{ now time.Time }

func (s *sleeper) Now() time.Time        { return s.now }
func (s *sleeper) Sleep(d time.Duration) { s.now = s.now.Add(d) }

// The bucket is spent but for one unit just before the first turn.
func TestABucketGivesTheTurnsOfUbersLimiter(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	for _, slack := range []int{0, 3, 10} {
		clock := &sleeper{at}
		theirs := ratelimit.New(100, ratelimit.WithSlack(slack), ratelimit.WithClock(clock))
		ours, err := weir.New(weir.TokenBucket{Rate: weir.PerSecond(100), Burst: int64(slack) + 1})
		if err != nil {
			t.Fatal(err)
		}
		waited, free := 0, 0
		for turn := range 1000 {
			if random.IntN(20) == 0 {
				clock.Sleep(time.Duration(random.Int64N(int64(200 * time.Millisecond))))
			} else {
				clock.Sleep(time.Duration(random.Int64N(int64(12 * time.Millisecond))))
			}
			asked := clock.now
			if turn == 0 {
				ours.AllowAt(asked, int64(slack))
			}
			r, err := ours.ReserveAt(asked, 1, weir.Never)
			if got, want := asked.Add(r.Decision.Delay), theirs.Take(); err != nil || !got.Equal(want) {
				t.Fatalf("slack %d, turn %d: got %v and error %v, want %v", slack, turn, got.Sub(at), err, want.Sub(at))
			}
			if r.Decision.Delay > 0 {
				waited++
			} else {
				free++
			}
		}
		if waited < 100 || free < 100 {
			t.Errorf("slack %d: %d turns waited and %d did not: it proves nothing", slack, waited, free)
		}
	}
}

func TestUbersIntervalIsWholeNanoseconds(t *testing.T) {
	clock := &sleeper{at}
	lim := ratelimit.New(3, ratelimit.WithoutSlack, ratelimit.WithClock(clock))
	first := lim.Take()
	lim.Take()
	lim.Take()
	if took := lim.Take().Sub(first); took != 999_999_999 {
		t.Errorf("three turns of 3/s took %v, want 999999999ns", took)
	}
	lim = ratelimit.New(2_000_000_000, ratelimit.WithoutSlack, ratelimit.WithClock(clock))
	first = lim.Take()
	for range 1000 {
		lim.Take()
	}
	if took := clock.now.Sub(first); took != 0 {
		t.Errorf("a thousand turns of 2e9/s took %v, want none", took)
	}
}
