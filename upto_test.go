package weir_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

// plain is an engine without optional abilities.
type plain struct{ weir.Engine }

func TestTakeUpToTakesWhatFits(t *testing.T) {
	bucket := weir.TokenBucket{Rate: weir.PerHour(1), Burst: 10}
	one, keyed := mustLimit(t, bucket), mustKeyed[string](t, bucket)
	rule, narrow := mustRule(t, "wide", bucket), mustRule(t, "narrow", weir.FixedWindow{Rate: weir.PerDay(8)})
	takers := map[string]func(most int64) (int64, weir.Decision){
		"Limiter": one.TakeUpTo,
		"Keyed":   func(most int64) (int64, weir.Decision) { return keyed.TakeUpTo("a", most) },
	}
	engines := map[string]weir.Engine{
		"Memory":                     weir.NewMemory(weir.MemoryOptions{}),
		"an engine without TakeUpTo": plain{weir.NewMemory(weir.MemoryOptions{})},
	}
	for name, engine := range engines {
		takers[name] = func(most int64) (int64, weir.Decision) {
			taken, d, err := weir.TakeUpTo(t.Context(), engine, most, rule.For("a", 1))
			if err != nil {
				t.Fatal(err)
			}
			return taken, d
		}
	}
	for name, take := range takers {
		for _, step := range []struct{ most, want, left int64 }{{4, 4, 6}, {0, 0, 6}, {9, 6, 0}, {9, 0, 0}} {
			taken, d := take(step.most)
			if taken != step.want || d.Remaining != step.left || d.Allowed != (taken > 0 || step.most == 0) {
				t.Errorf("%s: up to %d took %d, %+v; want %d with %d left", name, step.most, taken, d, step.want, step.left)
			}
			if !d.Allowed && d.RetryAfter > time.Hour {
				t.Errorf("%s: refused for %v, want the wait for one unit, an hour at most", name, d.RetryAfter)
			}
		}
	}
	for name, engine := range engines {
		taken, d, err := weir.TakeUpTo(t.Context(), engine, 99, rule.For("b", 1), narrow.For("b", 1))
		if taken != 8 || d.Rule != "narrow" || err != nil {
			t.Errorf("%s: took %d under two rules, %+v and error %v, want the 8 of the narrow one", name, taken, d, err)
		}
		if d, err := engine.Peek(t.Context(), rule.For("b", 1)); d.Remaining != 2 || err != nil {
			t.Errorf("%s: %d are left of the wide rule, error %v; want 2: all parts give the same number", name, d.Remaining, err)
		}
	}
}

// Requests with a larger cost, and requests of the same rule and key, are taken whole or not at all.
func TestTakeUpToTakesRequestsWhole(t *testing.T) {
	rule := mustRule(t, "r", weir.TokenBucket{Rate: weir.PerHour(1), Burst: 17})
	for name, engine := range map[string]weir.Engine{
		"Memory": weir.NewMemory(weir.MemoryOptions{}), "an engine without TakeUpTo": plain{weir.NewMemory(weir.MemoryOptions{})},
	} {
		times, d, err := weir.TakeUpTo(t.Context(), engine, 99, rule.For("a", 2), rule.For("a", 3))
		if times != 3 || d.Remaining != 2 || err != nil {
			t.Errorf("%s: 2 and 3 units %d times, %+v and error %v; want 3 times with 2 left", name, times, d, err)
		}
		times, d, err = weir.TakeUpTo(t.Context(), engine, 99, rule.For("a", 3))
		if times != 0 || d.Allowed || d.Remaining != 2 || d.RetryAfter > time.Hour || err != nil {
			t.Errorf("%s: 3 units %d times, %+v and error %v; want a refusal for an hour at most", name, times, d, err)
		}
	}
}

func TestTakeUpToLessThanNothingIsAnError(t *testing.T) {
	rule := mustRule(t, "r", weir.TokenBucket{Rate: weir.PerHour(1)})
	memory := weir.NewMemory(weir.MemoryOptions{})
	for _, engine := range []weir.Engine{memory, plain{memory}} {
		if times, _, err := weir.TakeUpTo(t.Context(), engine, -1, rule.For("a", 1)); times != 0 || !errors.Is(err, weir.ErrRequest) {
			t.Errorf("%T: up to -1: took %d, error %v; want a RequestError", engine, times, err)
		}
	}
	if taken, d := mustLimit(t, weir.TokenBucket{Rate: weir.PerHour(1)}).TakeUpTo(-1); taken != 0 || d.Allowed {
		t.Errorf("a Limiter took %d of -1: %+v", taken, d)
	}
}

func TestTakeUpToTakesNothingWhileCallersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 5})
		lim.Take(5)
		go lim.WaitN(t.Context(), 3)
		synctest.Wait()
		time.Sleep(2 * time.Second)
		if taken, d := lim.TakeUpTo(2); taken != 0 || d.Allowed {
			t.Errorf("took %d ahead of a waiting caller: %+v", taken, d)
		}
		time.Sleep(time.Second)
	})
}

// Concurrent callers never take more units than there are, and leave none.
func TestTakersUpToShareWhatThereIs(t *testing.T) {
	const units = 1000
	rule := mustRule(t, "r", weir.FixedWindow{Rate: weir.Per(units, 366*24*time.Hour)})
	for name, engine := range map[string]weir.Engine{
		"Memory": weir.NewMemory(weir.MemoryOptions{}), "an engine without TakeUpTo": plain{weir.NewMemory(weir.MemoryOptions{})},
	} {
		var total atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for {
					taken, _, err := weir.TakeUpTo(context.Background(), engine, 7, rule.For("a", 1))
					if err != nil || taken == 0 {
						return
					}
					total.Add(taken)
				}
			})
		}
		wg.Wait()
		if got := total.Load(); got != units {
			t.Errorf("%s: %d units were taken, want all %d", name, got, units)
		}
	}
}
