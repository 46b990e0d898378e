package weir_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

func mustNew(t testing.TB, limit weir.Limit, options ...weir.Options) *weir.Limiter {
	t.Helper()
	lim, err := weir.NewWith(limit, append(options, weir.Options{})[0])
	if err != nil {
		t.Fatal(err)
	}
	return lim
}

// release is one released waiter, and how long after the start.
type release struct {
	id int
	at time.Duration
}

// releases runs a wait for each cost, in order of arrival, and returns when each was released.
func releases(t *testing.T, lim *weir.Limiter, costs ...int64) []release {
	t.Helper()
	var mu sync.Mutex
	var out []release
	start := time.Now()
	for id, n := range costs {
		go func() {
			if err := lim.WaitN(t.Context(), n); err != nil {
				t.Errorf("waiter %d: %v", id, err)
			}
			mu.Lock()
			defer mu.Unlock()
			out = append(out, release{id, time.Since(start)})
		}()
		synctest.Wait()
	}
	time.Sleep(time.Hour) // virtual
	mu.Lock()
	defer mu.Unlock()
	return out
}

func TestWaitIsGrantedInArrivalOrderToTheNanosecond(t *testing.T) {
	for _, test := range []struct {
		limit weir.Limit
		costs []int64
		want  []time.Duration
	}{
		{weir.TokenBucket{Rate: weir.PerSecond(3), Burst: 1}, []int64{1, 1, 1, 1}, []time.Duration{0, 333333334, 666666667, 1e9}},
		{weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 5}, []int64{4, 3, 1, 5}, []time.Duration{0, 2e8, 3e8, 8e8}},
		{weir.LeakyBucket{Rate: weir.PerSecond(10), Queue: 5, NoDelay: 1}, []int64{1, 1, 1, 1}, []time.Duration{0, 0, 1e8, 2e8}},
		{weir.FixedWindow{Rate: weir.PerMinute(2)}, []int64{1, 1, 1, 2}, []time.Duration{0, 0, 60e9, 120e9}},
		{weir.SlidingLog{Rate: weir.PerSecond(2)}, []int64{1, 1, 1, 2}, []time.Duration{0, 0, 1e9, 2e9}},
		{weir.SlidingLog{Rate: weir.PerSecond(10), Gap: 100 * time.Millisecond}, []int64{1, 1, 1}, []time.Duration{0, 1e8, 2e8}},
	} {
		synctest.Test(t, func(t *testing.T) {
			got := releases(t, mustNew(t, test.limit), test.costs...)
			if len(got) != len(test.want) {
				t.Fatalf("%v: %d released, want %d", test.limit, len(got), len(test.want))
			}
			for i, r := range got {
				if r.at != test.want[i] {
					t.Errorf("%v, costs %v: release %d after %v, want %v", test.limit, test.costs, i, r.at, test.want[i])
				}
			}
			if !slices.IsSortedFunc(got, func(a, b release) int { return cmp.Compare(a.at, b.at) }) {
				t.Errorf("%v: released out of order: %v", test.limit, got)
			}
		})
	}
}

func TestWaitThatCannotBeOutlastedIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1})
		lim.Allow()
		ctx, cancel := context.WithTimeout(t.Context(), 999*time.Millisecond)
		defer cancel()
		start := time.Now()
		err := lim.Wait(ctx)
		var wait *weir.WaitError
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &wait) || wait.Need != time.Second || time.Since(start) != 0 {
			t.Errorf("Wait under a deadline of 999ms: %v after %v, want a WaitError of 1s at once", err, time.Since(start))
		}
		err = lim.WaitMax(t.Context(), 1, 999*time.Millisecond)
		if !errors.As(err, &wait) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("WaitMax of 999ms: %v, want a WaitError that is no DeadlineExceeded", err)
		}
		if err := lim.WaitMax(t.Context(), 1, time.Second); err != nil {
			t.Errorf("WaitMax of exactly the wait: %v", err)
		}
		if err := lim.WaitN(t.Context(), 2); !errors.Is(err, weir.ErrNever) {
			t.Errorf("WaitN(2) of a burst of 1: %v, want ErrNever", err)
		}
	})
}

func TestCancelledWaiterLeavesNoDebtAndThoseBehindMoveForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1})
		lim.Allow()
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() { first <- lim.Wait(ctx) }()
		synctest.Wait()
		start := time.Now()
		second := make(chan time.Duration, 1)
		go func() {
			if err := lim.Wait(t.Context()); err != nil {
				t.Error(err)
			}
			second <- time.Since(start)
		}()
		synctest.Wait()
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled wait: %v, want context.Canceled", err)
		}
		if at := <-second; at != time.Second {
			t.Errorf("the second was released after %v, want 1s: the place of the first", at)
		}
	})
}

func TestAllowDoesNotOvertakeWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 10})
		lim.AllowN(5)
		go lim.WaitN(t.Context(), 8)
		synctest.Wait()
		if lim.Allow() {
			t.Error("Allow took a unit while a cost of 8 waits for 8 of 5 tokens")
		}
		if d := lim.Take(1); d.Allowed || d.RetryAfter != 4*time.Second || d.Remaining != 0 {
			t.Errorf("Take(1) behind a waiter: %+v, want to come back in 4s", d)
		}
		time.Sleep(4 * time.Second)
		if d := lim.Take(1); !d.Allowed {
			t.Errorf("Take(1) after its RetryAfter: %+v", d)
		}
	})
}

func TestARefusedWaitAllocatesItsErrorAlone(t *testing.T) {
	limit := weir.TokenBucket{Rate: weir.Per(1, time.Hour), Burst: 1}
	lim, keyed := mustNew(t, limit), mustKeyed[string](t, limit)
	lim.Allow()
	keyed.Allow("a")
	for name, wait := range map[string]func() error{
		"Limiter": func() error { return lim.WaitMax(t.Context(), 1, time.Minute) },
		"Keyed":   func() error { return keyed.WaitMax(t.Context(), "a", 1, time.Minute) },
	} {
		var refused *weir.WaitError
		if err := wait(); !errors.As(err, &refused) || refused.Need <= time.Minute || refused.Need > time.Hour || refused.Bound != time.Minute {
			t.Errorf("%s: got %v, want a wait of an hour above the bound of a minute", name, err)
		}
		if n := testing.AllocsPerRun(100, func() { _ = wait() }); n > 1 {
			t.Errorf("%s: a refused wait makes %v allocations, want 1", name, n)
		}
	}
}
