package weir_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

// The claims of docs/coming-from-x-time-rate.md about that library, one each.

func TestCostZeroIsAdmittedInDebtAndNegativeCostNeverIs(t *testing.T) {
	at := time.Unix(1700000000, 0)
	lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 10})
	lim.RecordAt(at, 11)
	if !lim.AllowAt(at, 0) {
		t.Error("AllowAt(0) of a limiter in debt is false, want true")
	}
	if lim.AllowAt(at, -5) || lim.AllowAt(at, 1) {
		t.Error("a negative cost was admitted or added tokens")
	}
}

func TestTimeThatRunsBackMintsNothing(t *testing.T) {
	at := time.Unix(1700000000, 0)
	lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 10})
	lim.AllowAt(at, 10)
	for range 5 {
		lim.AllowAt(at.Add(-10*time.Second), 0)
		if lim.AllowAt(at, 1) {
			t.Fatal("a decision ten seconds back gave tokens at the instant where there were none")
		}
	}
}

func TestSetLimitReschedulesWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1})
		lim.Allow()
		start := time.Now()
		time.AfterFunc(500*time.Millisecond, func() {
			_ = lim.SetLimit(weir.TokenBucket{Rate: weir.PerSecond(100), Burst: 1})
		})
		if err := lim.Wait(t.Context()); err != nil || time.Since(start) != 505*time.Millisecond {
			t.Errorf("released after %v, %v; want 505ms: half a unit was missing at the change", time.Since(start), err)
		}
	})
}

// Uber's limiter keeps up to slack (10 by default) unspent turns: a burst of slack + 1 after idleness, none at the
// start, and a steady pace under load.
func TestBucketSpentAtTheStartIsUbersLimiterWithSlack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 11})
		lim.AllowN(10)
		start := time.Now()
		var got []time.Duration
		take := func(n int) {
			for range n {
				if err := lim.Wait(t.Context()); err != nil {
					t.Error(err)
				}
				got = append(got, time.Since(start)/time.Millisecond)
			}
		}
		take(3)
		time.Sleep(5 * time.Second)
		take(13)
		want := []time.Duration{0, 100, 200, 5200, 5200, 5200, 5200, 5200, 5200, 5200, 5200, 5200, 5200, 5200, 5300, 5400}
		if !slices.Equal(got, want) {
			t.Errorf("turns at %d ms, want %d", got, want)
		}
	})
}

// Guava's "the next one pays": a cost of any size is admitted at once, and the next caller waits for it.
func TestBurstyLetsTheNextOnePay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.Bursty{Rate: weir.PerSecond(1), Over: time.Second})
		start := time.Now()
		if err := lim.WaitN(t.Context(), 100); err != nil || time.Since(start) != 0 {
			t.Errorf("a cost of 100: %v after %v, want at once", err, time.Since(start))
		}
		if err := lim.WaitMax(t.Context(), 1, 99*time.Second); !errors.Is(err, weir.ErrWait) || time.Since(start) != 0 {
			t.Errorf("tryAcquire of 99s: %v after %v, want ErrWait at once", err, time.Since(start))
		}
		if err := lim.Wait(context.Background()); err != nil || time.Since(start) != 100*time.Second {
			t.Errorf("the next: %v after %v, want 100s", err, time.Since(start))
		}
	})
}

// A leaky bucket without a queue is not a limiter that makes callers wait.
func TestLeakyBucketWithoutAQueueRefusesWhereABucketOfOneWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leaky := mustNew(t, weir.LeakyBucket{Rate: weir.PerSecond(10)})
		bucket := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 1})
		start := time.Now()
		if err := leaky.Wait(t.Context()); err != nil {
			t.Errorf("leaky bucket, first: %v, want it admitted", err)
		}
		if err := leaky.Wait(t.Context()); !errors.Is(err, weir.ErrQueueFull) || time.Since(start) != 0 {
			t.Errorf("leaky bucket, second: %v after %v, want ErrQueueFull at once", err, time.Since(start))
		}
		for range 2 {
			if err := bucket.Wait(t.Context()); err != nil {
				t.Errorf("token bucket: %v, want it admitted", err)
			}
		}
		if time.Since(start) != 100*time.Millisecond {
			t.Errorf("token bucket: two after %v, want 100ms", time.Since(start))
		}
	})
}
