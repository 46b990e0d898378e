package pace_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

func since(start time.Time) func(context.Context) (time.Duration, error) {
	return func(context.Context) (time.Duration, error) { return time.Since(start), nil }
}

func TestDoReturnsTheValueOfACallThatHadItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(2), Burst: 1})
		start := time.Now()
		for i := range 5 {
			at, err := pace.Do(t.Context(), lim, since(start))
			if want := time.Duration(i) * time.Second / 2; at != want || err != nil {
				t.Errorf("call %d ran at %v, %v; want %v", i, at, err, want)
			}
		}
	})
}

func TestDoOfAKeyWaitsForThatKeyOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		perHost := mustKeyed[string](t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1})
		start := time.Now()
		for _, call := range []struct {
			host string
			want time.Duration
		}{{"a", 0}, {"b", 0}, {"a", time.Second}, {"c", time.Second}, {"b", time.Second}, {"b", 2 * time.Second}} {
			at, err := pace.Do(t.Context(), perHost.For(call.host), since(start))
			if at != call.want || err != nil {
				t.Errorf("call for %s ran at %v, %v; want %v", call.host, at, err, call.want)
			}
		}
	})
}

func TestDoRunsNothingThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1})
		lim.Allow()
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := pace.Do(ctx, lim, func(context.Context) (int, error) {
			t.Error("fn ran although its turn comes after the deadline")
			return 0, nil
		})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 0 {
			t.Errorf("Do: %v after %v, want DeadlineExceeded at once", err, time.Since(start))
		}
		time.Sleep(time.Second)
		if !lim.Allow() {
			t.Error("the refused call took a unit")
		}
	})
}

func TestDoPassesErrorsAndPanicsOfTheCallThrough(t *testing.T) {
	lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 2})
	broken := errors.New("broken")
	if _, err := pace.Do(t.Context(), lim, func(context.Context) (int, error) { return 0, broken }); err != broken {
		t.Errorf("Do: %v, want the error of the call itself", err)
	}
	defer func() {
		if r := recover(); r != "ouch" {
			t.Errorf("recovered %v, want the panic of the call", r)
		}
		if lim.Allow() {
			t.Error("a call that panicked cost nothing, want the unit spent")
		}
	}()
	_, _ = pace.Do(t.Context(), lim, func(context.Context) (int, error) { panic("ouch") })
}

func TestClassOfAPacerIsThatOfItsTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1}, weir.Options{Weights: []int64{3, 1}})
		lim.Allow()
		var counts [2]atomic.Int64
		for class := range counts {
			for range 40 {
				go func() {
					if _, err := pace.Do(t.Context(), pace.InClass(lim, class), since(time.Now())); err == nil {
						counts[class].Add(1)
					}
				}()
			}
		}
		time.Sleep(40*time.Second + time.Millisecond)
		if heavy, light := counts[0].Load(), counts[1].Load(); heavy != 30 || light != 10 {
			t.Errorf("of 40 turns the classes of weight 3 and 1 had %d and %d, want 30 and 10", heavy, light)
		}
		if err := pace.InClass(lim, 2).WaitTurn(t.Context(), weir.Turn{Cost: 1}); !errors.Is(err, weir.ErrRequest) {
			t.Errorf("class 2 of 2: %v, want ErrRequest", err)
		}
		lim.Close()
	})
}
