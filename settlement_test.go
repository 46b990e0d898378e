package weir_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

// A reservation in process that is settled late gives nothing back to another window. A bucket gets all of it, up to full.
func TestALateSettlementInProcessGivesBackOnlyWhatStillCounts(t *testing.T) {
	rate := weir.Per(5, 100*time.Second)
	for limit, left := range map[weir.Limit]int64{
		weir.FixedWindow{Rate: rate}: 2, weir.SlidingWindow{Rate: rate}: 2, weir.Cycle{Rate: rate}: 2,
		weir.SlidingLog{Rate: rate}: 2, weir.RateGate{Rate: rate}: 2, weir.TokenBucket{Rate: rate}: 5,
	} {
		now := int64(1_700_000_000 * time.Second)
		clock := weir.Options{Clock: func() int64 { return now }}
		lim, keyed := mustLimiterWith(t, limit, clock), mustKeyedWith[string](t, limit, clock)
		early, other := fourOfFive(t, lim.Reserve), fourOfFive(t, func(n int64, d time.Duration) (*weir.Reservation, error) { return keyed.Reserve("k", n, d) })
		now += int64(150 * time.Second)
		lim.Take(3)
		keyed.Take("k", 3)
		if err := early.Cancel(t.Context()); err != nil {
			t.Error(err)
		}
		if err := other.Settle(t.Context(), 0); err != nil {
			t.Error(err)
		}
		if a, b := lim.Peek(0).Remaining, keyed.Peek("k", 0).Remaining; a != left || b != left {
			t.Errorf("%v: %d and %d left after a late settlement, want %d", limit, a, b, left)
		}
	}
}

func fourOfFive(t *testing.T, reserve func(n int64, longest time.Duration) (*weir.Reservation, error)) *weir.Reservation {
	t.Helper()
	r, err := reserve(4, 0)
	if err != nil || !r.Decision.Allowed {
		t.Fatalf("reserve 4 of 5: got %+v, %v", r, err)
	}
	return r
}

func mustLimiterWith(t *testing.T, limit weir.Limit, options weir.Options) *weir.Limiter {
	t.Helper()
	l, err := weir.NewWith(limit, options)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mustKeyedWith[K comparable](t *testing.T, limit weir.Limit, options weir.Options) *weir.Keyed[K] {
	t.Helper()
	k, err := weir.NewKeyedWith[K](limit, options)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// The newest reservation of a later instant is cancelled exactly, also if the limit has changed since: the limiter is then as
// if it had never been made.
func TestACancelAfterSetLimitLeavesNoTrace(t *testing.T) {
	kinds := map[string]func(r *rand.Rand) weir.Limit{
		"token bucket": func(r *rand.Rand) weir.Limit {
			return weir.TokenBucket{Rate: weir.Per(1+r.Int64N(20), time.Second), Burst: 1 + r.Int64N(5)}
		},
		"leaky bucket": func(r *rand.Rand) weir.Limit {
			return weir.LeakyBucket{Rate: weir.Per(1+r.Int64N(20), time.Second), Queue: 5 + r.Int64N(20)}
		},
		"rate gate": func(r *rand.Rand) weir.Limit { return weir.RateGate{Rate: weir.Per(1+r.Int64N(5), time.Second)} },
		"cycle":     func(r *rand.Rand) weir.Limit { return weir.Cycle{Rate: weir.Per(1+r.Int64N(5), time.Second)} },
	}
	for name, limit := range kinds {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 9))
			undone := 0
			for round := range 300 {
				now := int64(1_700_000_000 * time.Second)
				clock := weir.Options{Clock: func() int64 { return now }}
				first := limit(r)
				lim, twin := mustLimiterWith(t, first, clock), mustLimiterWith(t, first, clock)
				for range r.IntN(6) {
					n := 1 + r.Int64N(3)
					a, _ := lim.Reserve(n, weir.Never)
					b, _ := twin.Reserve(n, weir.Never)
					if a.Decision != b.Decision {
						t.Fatalf("%v: got %+v and %+v for the same reservation", first, a.Decision, b.Decision)
					}
				}
				newest, err := lim.Reserve(1, weir.Never)
				if err != nil || !newest.Decision.Allowed || newest.Decision.Delay == 0 {
					continue
				}
				for range 1 + r.IntN(2) {
					now += r.Int64N(int64(max(newest.Decision.Delay/3, 1)))
					next := limit(r)
					if err := lim.SetLimit(next); err != nil {
						t.Fatal(err)
					}
					if err := twin.SetLimit(next); err != nil {
						t.Fatal(err)
					}
				}
				if err := newest.Cancel(t.Context()); err != nil {
					t.Fatal(err)
				}
				undone++
				for _, n := range []int64{0, 1, 2} {
					if got, want := lim.Peek(n), twin.Peek(n); got != want {
						t.Fatalf("round %d: %v, now %v: after a cancelled reservation in %v:\ngot  %+v\nwant %+v", round, first, lim.Limit(), newest.Decision.Delay, got, want)
					}
				}
				if got, want := fmt.Sprint(lim.Limit()), fmt.Sprint(twin.Limit()); got != want {
					t.Fatal(got, want)
				}
			}
			if undone < 50 {
				t.Errorf("only %d reservations were undone", undone)
			}
		})
	}
}

// Part of the newest reservation comes back after a change of the limit, and its instant stays.
func TestASettlementAfterSetLimitKeepsTheInstant(t *testing.T) {
	now := int64(1_700_000_000 * time.Second)
	lim := mustLimiterWith(t, weir.TokenBucket{Rate: weir.PerSecond(5), Burst: 2}, weir.Options{Clock: func() int64 { return now }})
	lim.Take(2)
	r, err := lim.Reserve(2, weir.Never) // in 400 ms
	if err != nil || r.Decision.Delay != 400*time.Millisecond {
		t.Fatalf("got %+v, %v", r.Decision, err)
	}
	now += int64(200 * time.Millisecond)
	if err := lim.SetLimit(weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 2}); err != nil {
		t.Fatal(err)
	}
	if err := r.Settle(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	// The bucket lacked 1 unit at the change, and 2 with the one that is used.
	if d := lim.Peek(1); d.Allowed || d.RetryAfter != 200*time.Millisecond {
		t.Errorf("one unit: got %+v, want it at the reserved instant in 200ms", d)
	}
	now += int64(200 * time.Millisecond)
	if got := lim.Peek(0).Remaining; got != 2 {
		t.Errorf("at the instant %d units are left, want 2", got)
	}
}

// As docs/why/guarantees.md says: a booking stays where it is, so the returned unit goes ahead beside it.
func TestAReturnLeavesTheBookingThatLiesAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, err := weir.New(weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1})
		if err != nil {
			t.Fatal(err)
		}
		taken, booked := lim.Allow(), false
		r, err := lim.Reserve(1, weir.Never)
		if err == nil {
			booked = r.Decision.Allowed && r.Decision.Delay == time.Second
		}
		lim.Return(1)
		time.Sleep(time.Second)
		if beside := lim.Allow(); !taken || !booked || !beside || lim.Allow() {
			t.Errorf("taken %v, booked in a second %v, one beside the booking %v; want all, and no other", taken, booked, beside)
		}
	})
}
