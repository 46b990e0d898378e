package weir_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

// crowd is a number of callers of one class that come back as soon as they are released.
type crowd struct {
	callers int
	cost    int64
}

// shares runs crowds, one per class, and returns the units that each class took in d.
func shares(t *testing.T, lim *weir.Limiter, d time.Duration, crowds ...crowd) []int64 {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	units := make([]atomic.Int64, len(crowds))
	for class, c := range crowds {
		for range c.callers {
			go func() {
				for lim.WaitTurn(ctx, weir.Turn{Cost: c.cost, Class: class}) == nil {
					units[class].Add(c.cost)
				}
			}()
		}
	}
	time.Sleep(d)
	synctest.Wait()
	got := make([]int64, len(crowds))
	for i := range units {
		got[i] = units[i].Load()
	}
	cancel()
	synctest.Wait()
	return got
}

func TestBusyClassesShareByWeightInUnits(t *testing.T) {
	bucket := weir.TokenBucket{Rate: weir.PerSecond(1000), Burst: 20}
	leaky := weir.LeakyBucket{Rate: weir.PerSecond(1000), Queue: 1 << 20}
	for _, test := range []struct {
		limit   weir.Limit
		weights []int64
		crowds  []crowd
	}{
		{bucket, []int64{3, 1}, []crowd{{10, 1}, {10, 1}}},
		{bucket, []int64{3, 1}, []crowd{{1, 1}, {1, 1}}},
		{bucket, []int64{3, 1}, []crowd{{10, 7}, {10, 2}}},
		{bucket, []int64{3, 1}, []crowd{{2, 1}, {50, 20}}},
		{bucket, []int64{5, 3, 2}, []crowd{{3, 4}, {30, 1}, {1, 9}}},
		{bucket, []int64{100, 1}, []crowd{{3, 1}, {3, 1}}},
		{leaky, []int64{3, 1}, []crowd{{10, 7}, {10, 2}}},
		// These release many callers at one instant: a class is busy while it has more callers than that.
		{weir.SlidingLog{Rate: weir.Per(20, 20*time.Millisecond)}, []int64{3, 1}, []crowd{{40, 1}, {40, 1}}},
		{weir.FixedWindow{Rate: weir.Per(20, 20*time.Millisecond)}, []int64{3, 1}, []crowd{{40, 1}, {10, 5}}},
		{weir.RateGate{Rate: weir.Per(20, 20*time.Millisecond)}, []int64{1, 1, 2}, []crowd{{40, 1}, {40, 2}, {40, 1}}},
		{weir.Cycle{Rate: weir.Per(20, 20*time.Millisecond)}, []int64{3, 1}, []crowd{{40, 1}, {40, 2}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			lim := mustNew(t, test.limit, weir.Options{Weights: test.weights})
			lim.Take(min(20, lim.Peek(0).Remaining)) // free units go to the first caller
			got := shares(t, lim, 30*time.Second, test.crowds...)
			checkShares(t, fmt.Sprint(test), got, test.weights)
		})
	}
}

func checkShares(t *testing.T, name string, got, weights []int64) {
	t.Helper()
	var units, all int64
	for i := range got {
		units += got[i]
		all += weights[i]
	}
	if math.Abs(float64(units)-30_000) > 300 {
		t.Errorf("%s: %d units in 30s at 1000/s", name, units)
	}
	for i := range got {
		want := float64(units*weights[i]) / float64(all)
		if math.Abs(float64(got[i])-want) > 0.02*want {
			t.Errorf("%s: class %d took %d of %d units, want %.0f within 2 %%", name, i, got[i], units, want)
		}
	}
}

// Tenants are flows: each shares by its weight, however many callers it has.
func TestBusyFlowsShareByWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1000), Burst: 1})
		perKey := mustKeyed[string](t, weir.TokenBucket{Rate: weir.PerSecond(1000), Burst: 1}).For("k")
		for _, wait := range []func(context.Context, weir.Turn) error{lim.WaitTurn, perKey.WaitTurn} {
			ctx, cancel := context.WithCancel(t.Context())
			weights := []int64{1, 2, 7}
			units := make([]atomic.Int64, len(weights))
			for i, weight := range weights {
				for range 3 * (len(weights) - i) {
					go func() {
						for wait(ctx, weir.Turn{Cost: 1, Flow: fmt.Sprint("tenant ", i), Weight: weight}) == nil {
							units[i].Add(1)
						}
					}()
				}
			}
			time.Sleep(30 * time.Second)
			synctest.Wait()
			checkShares(t, "tenants", []int64{units[0].Load(), units[1].Load(), units[2].Load()}, weights)
			cancel()
			synctest.Wait()
		}
	})
}

// A tenant with one caller does not wait behind the thousand of another.
func TestAFlowThatComesLateGoesSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1})
		lim.Allow()
		for range 1000 {
			go lim.WaitTurn(t.Context(), weir.Turn{Cost: 1, Flow: "many"})
		}
		synctest.Wait()
		time.Sleep(10500 * time.Millisecond)
		start := time.Now()
		if err := lim.WaitTurn(t.Context(), weir.Turn{Cost: 1, Flow: "one"}); err != nil || time.Since(start) > 1500*time.Millisecond {
			t.Errorf("the only caller of a flow waited %v, %v; want at most two turns", time.Since(start), err)
		}
		lim.Close()
	})
}

// A reservation in line has a promised instant, which a caller of another flow must not take.
func TestFlowsDoNotOvertakeAReservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1})
		lim.Allow()
		go lim.WaitTurn(t.Context(), weir.Turn{Cost: 1, Flow: "a"})
		synctest.Wait()
		r, err := lim.Reserve(1, weir.Never)
		if err != nil || r.Decision.Delay != 2*time.Second {
			t.Fatalf("the reservation is for %v, %v; want 2 s", r.Decision.Delay, err)
		}
		start := time.Now()
		if err := lim.WaitTurn(t.Context(), weir.Turn{Cost: 1, Flow: "b", Weight: 1024}); err != nil || time.Since(start) != 3*time.Second {
			t.Errorf("a caller of another flow waited %v, %v; want 3 s, behind the reservation", time.Since(start), err)
		}
	})
}

func TestWeightsOutOfBoundsAreRefused(t *testing.T) {
	lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1})
	for _, weight := range []int64{-1, 1025} {
		if err := lim.WaitTurn(t.Context(), weir.Turn{Cost: 1, Flow: "a", Weight: weight}); !errors.Is(err, weir.ErrRequest) {
			t.Errorf("weight %d: %v, want ErrRequest", weight, err)
		}
	}
}

func TestIdleClassLeavesItsShareToTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1000), Burst: 1}, weir.Options{Weights: []int64{3, 1}})
		if got := shares(t, lim, 10*time.Second, crowd{0, 1}, crowd{5, 1}); got[1] != 10_001 {
			t.Errorf("the only busy class took %d in 10s, want 10001", got[1])
		}
		// A class gets no credit for what it did not use while it was idle.
		got := shares(t, lim, 10*time.Second, crowd{5, 1}, crowd{5, 1})
		if math.Abs(float64(got[0])-7500) > 150 {
			t.Errorf("both busy after one was idle: %v in 10s, want 7500 and 2500", got)
		}
	})
}

func TestCancelledHeadKeepsThePlaceOfItsClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1}, weir.Options{Weights: []int64{1, 1}})
		lim.Allow()
		start := time.Now()
		var mu sync.Mutex
		var order []string
		wait := func(ctx context.Context, name string, class int) {
			go func() {
				if lim.WaitTurn(ctx, weir.Turn{Cost: 1, Class: class}) == nil {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, fmt.Sprint(name, "@", time.Since(start)))
				}
			}()
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		wait(ctx, "left", 0)
		for _, name := range []string{"b1", "b2", "b3"} {
			wait(t.Context(), name, 1)
		}
		wait(t.Context(), "a1", 0)
		cancel()
		time.Sleep(10 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if got, want := fmt.Sprint(order), "[a1@1s b1@2s b2@3s b3@4s]"; got != want {
			t.Errorf("order: got %s, want %s: a1 takes the place of the caller that left", got, want)
		}
	})
}

// A cost of the whole burst passes a crowd of small costs, and delays them only while its own units refill.
func TestLargeCostNeitherStarvesNorBlocks(t *testing.T) {
	for _, weights := range [][]int64{nil, {1, 1}} {
		synctest.Test(t, func(t *testing.T) {
			lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(100), Burst: 100}, weir.Options{Weights: weights})
			var small atomic.Int64
			ctx, cancel := context.WithCancel(t.Context())
			for range 20 {
				go func() {
					for lim.Wait(ctx) == nil {
						small.Add(1)
					}
				}()
			}
			time.Sleep(10*time.Second + 1)
			before := small.Load()
			start := time.Now()
			if err := lim.WaitTurn(ctx, weir.Turn{Cost: 100, Class: max(0, len(weights)-1)}); err != nil {
				t.Fatal(err)
			}
			took, passed := time.Since(start), small.Load()-before
			if took > 1500*time.Millisecond {
				t.Errorf("weights %v: the large cost waited %v while %d small ones passed: starved", weights, took, passed)
			}
			time.Sleep(10 * time.Second)
			if after := small.Load() - before; after < 900 {
				t.Errorf("weights %v: %d small ones passed in 10s after the large one: blocked", weights, after)
			}
			cancel()
		})
	}
}

// Under a bound, the wait of a turn is that of its class: a turn that goes first is not refused because of the turns
// behind it.
func TestBoundOfATurnCountsOnlyEarlierTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1}, weir.Options{Weights: []int64{1, 1}})
		lim.Allow()
		for range 50 {
			go lim.WaitTurn(t.Context(), weir.Turn{Cost: 1, Class: 1})
		}
		synctest.Wait()
		start := time.Now()
		if err := lim.WaitTurn(t.Context(), weir.Turn{Cost: 1, Class: 0, Max: 2 * time.Second}); err != nil {
			t.Errorf("after %v: %v, want a turn within 2s", time.Since(start), err)
		}
		if err := lim.WaitTurn(t.Context(), weir.Turn{Cost: 1, Class: 1, Max: 45 * time.Second}); err == nil {
			t.Error("the last of a class of 49 was released within 45s")
		}
		lim.Close()
	})
}
