package redislimit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

func TestConcurrentCallersShareCallsAndGetExactTotals(t *testing.T) {
	engine := newEngine(t, dial(t, redistest.Start(t)), redislimit.Options{})
	const callers, each, capacity = 128, 100, 128 * 100 / 3
	one := newRule(t, "one", weir.FixedWindow{Rate: weir.Per(capacity, 366*24*time.Hour)})
	own := newRule(t, "own", weir.TokenBucket{Rate: weir.PerHour(each / 2)})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // every other caller has a context that can end
	defer cancel()
	shared, alone := make([]int, callers), make([]int, callers)
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			ctx := ctx
			if caller%2 == 0 {
				ctx = context.Background()
			}
			for range each {
				shared[caller] += admitted(t, engine, ctx, one.For("everybody", 1))
				alone[caller] += admitted(t, engine, ctx, own.For(fmt.Sprint("caller ", caller), 1))
			}
		})
	}
	all.Wait()
	total := 0
	for caller := range callers {
		total += shared[caller]
		if alone[caller] != each/2 {
			t.Errorf("caller %d with a key of its own: got %d admitted, want %d", caller, alone[caller], each/2)
		}
	}
	if total != capacity {
		t.Errorf("%d callers of one key: got %d admitted, want %d", callers, total, capacity)
	}
	stats := engine.Stats()
	if stats.Decisions != 2*callers*each || stats.Late != 0 {
		t.Errorf("got stats %+v, want %d decisions and none late", stats, 2*callers*each)
	}
	if stats.Calls > stats.Decisions/4 {
		t.Errorf("got %d calls for %d decisions of %d callers at once: they share none", stats.Calls, stats.Decisions, callers)
	}
}

// admitted returns 1 if all requests are admitted, and otherwise 0.
func admitted(t *testing.T, e weir.Engine, ctx context.Context, requests ...weir.Request) int {
	d, err := e.Take(ctx, requests...)
	if err != nil {
		t.Errorf("Take: %v", err)
	}
	if d.Allowed {
		return 1
	}
	return 0
}

func TestAKeyTwiceInABatchSeesItsOwnWrites(t *testing.T) {
	engine := newEngine(t, dial(t, redistest.Start(t)), redislimit.Options{})
	for _, limit := range []weir.Limit{
		weir.TokenBucket{Rate: weir.PerHour(5)}, weir.LeakyBucket{Rate: weir.PerHour(1), Queue: 4},
		weir.FixedWindow{Rate: weir.Per(5, 300*24*time.Hour)}, weir.SlidingWindow{Rate: weir.Per(5, 300*24*time.Hour)},
		weir.SlidingLog{Rate: weir.PerHour(5)},
		weir.RateGate{Rate: weir.PerHour(5)}, weir.Cycle{Rate: weir.Per(5, 300*24*time.Hour)}, weir.Concurrency{Slots: 5, Lease: time.Hour},
	} {
		rule := newRule(t, limit.String(), limit)
		before := engine.Stats().Calls
		requests := make([]weir.Request, 100)
		results := make([]weir.Result, len(requests))
		for i := range requests {
			requests[i] = rule.For("k", int64(i%3))
		}
		if err := engine.Each(t.Context(), enginekit.Calls(weir.OpTake, requests...), results); err != nil {
			t.Fatalf("%s: Each: %v", rule, err)
		}
		var spent int64
		for i, r := range results {
			cost := requests[i].Cost
			want := spent+cost <= 5 || cost == 0
			if r.Err != nil || r.Decision.Allowed != want {
				t.Errorf("%s: decision %d of cost %d after %d were spent: got %+v, want allowed %t", rule, i, cost, spent, r, want)
			}
			if r.Decision.Allowed {
				spent += cost
			}
		}
		if calls := engine.Stats().Calls - before; calls != 1 {
			t.Errorf("%s: %d decisions: got %d calls, want 1", rule, len(requests), calls)
		}
	}
}

func TestACancelledCallerDoesNotAffectOthers(t *testing.T) {
	server := redistest.Start(t)
	engine := newEngine(t, dial(t, server), redislimit.Options{})
	rule := newRule(t, "r", weir.FixedWindow{Rate: weir.Per(1000, 300*24*time.Hour)})
	if _, err := engine.Take(t.Context(), rule.For("k", 1)); err != nil {
		t.Fatalf("Take: %v", err)
	}
	server.Stop()
	const impatient, patient = 12, 12 // fewer than are worth a second call
	leave := func(ctx context.Context) {
		d, err := engine.Take(ctx, rule.For("k", 1))
		var failed *redislimit.Error
		if !errors.As(err, &failed) || failed.Reason != redislimit.Cancelled || !errors.Is(err, context.Canceled) || d.Allowed {
			t.Errorf("Take while the server hangs: got %+v and %v, want an Error that wraps Canceled", d, err)
		}
	}
	var left, stayed sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	left.Go(func() { leave(ctx) }) // nothing is under way: this one is sent, and the others wait for it
	await(t, engine, func(s redislimit.Stats) bool { return s.InFlight == 1 })
	cancel()
	left.Wait()
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	for range impatient {
		left.Go(func() { leave(ctx) })
	}
	for range patient {
		stayed.Go(func() {
			if d, err := engine.Take(context.Background(), rule.For("k", 1)); err != nil || !d.Allowed {
				t.Errorf("Take of a waiting caller: got %+v and %v, want it admitted", d, err)
			}
		})
	}
	await(t, engine, func(s redislimit.Stats) bool { return s.Queued == impatient+patient })
	cancel()
	left.Wait()
	server.Cont()
	stayed.Wait()
	// A caller that left before its request was sent took nothing. The engine gives back what was sent when its answer
	// comes.
	eventually(t, "what the impatient took is given back", func() string {
		d, err := engine.Peek(t.Context(), rule.For("k", 0))
		if err != nil || d.Remaining != 1000-1-patient {
			return fmt.Sprintf("got %d remaining and error %v, want %d", d.Remaining, err, 1000-1-patient)
		}
		return ""
	})
	if s := engine.Stats(); s.Late != 1 || s.GivenBack != 1 {
		t.Errorf("got stats %+v, want the first of the impatient late and given back, and no other sent", s)
	}
}

// await waits for a state of an engine.
func await(t *testing.T, engine *redislimit.Engine, reached func(redislimit.Stats) bool) {
	t.Helper()
	eventually(t, "the engine", func() string {
		if s := engine.Stats(); !reached(s) {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})
}

// eventually asks until no error is left.
func eventually(t *testing.T, what string, wrong func() string) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		problem := wrong()
		if problem == "" {
			return
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("%s: not within a minute: %s", what, problem)
		}
	}
}

func TestScriptFlushUnderLoadLosesNothing(t *testing.T) {
	client := dial(t, redistest.Start(t))
	engine := newEngine(t, client, redislimit.Options{})
	const callers, each, capacity, least = 16, 200, 1000, 10
	rule := newRule(t, "r", weir.FixedWindow{Rate: weir.Per(capacity, 300*24*time.Hour)})
	counts := make([]int, callers)
	done := make(chan struct{})
	var flushes atomic.Int64
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for call := 0; call < each || flushes.Load() < least; call++ {
				counts[caller] += admitted(t, engine, context.Background(), rule.For("k", 1))
			}
		})
	}
	go func() {
		all.Wait()
		close(done)
	}()
	for open := true; open; {
		select {
		case <-done:
			open = false
		default:
			if err := client.Do(context.Background(), client.B().ScriptFlush().Build()).Error(); err != nil {
				t.Fatalf("SCRIPT FLUSH: %v", err)
			}
			flushes.Add(1)
		}
	}
	total := 0
	for _, n := range counts {
		total += n
	}
	if total != capacity {
		t.Errorf("through %d flushes: got %d admitted, want %d", flushes.Load(), total, capacity)
	}
}

// The script appends to a log, unless a later request of the same batch uses its key.
func TestALogOfOneKeyIsWholeAfterEveryBatch(t *testing.T) {
	engine := newEngine(t, dial(t, redistest.Start(t)), redislimit.Options{})
	for _, limits := range [][]weir.Limit{
		{weir.SlidingLog{Rate: weir.PerHour(100)}}, {weir.RateGate{Rate: weir.PerHour(100)}},
		{weir.SlidingLog{Rate: weir.PerHour(100)}, weir.RateGate{Rate: weir.PerHour(200)}},
	} {
		rule := newRule(t, fmt.Sprint(limits), limits...)
		var spent int64
		for _, costs := range [][]int64{{1}, {2}, {3, 200}, {4, 5}, {200, 6}, {7, 0, 8}, {200}, {9, 200, 10, 200}} {
			requests := make([]weir.Request, len(costs))
			results := make([]weir.Result, len(costs))
			for i, cost := range costs {
				requests[i] = rule.For("k", cost)
			}
			if err := engine.Each(t.Context(), enginekit.Calls(weir.OpTake, requests...), results); err != nil {
				t.Fatalf("%s: Each: %v", rule, err)
			}
			for i, cost := range costs {
				if cost <= 100 {
					spent += cost
				}
				if d := results[i].Decision; results[i].Err != nil || d.Allowed != (cost <= 100) || d.Remaining != 100-spent {
					t.Errorf("%s: decision %d of %v: got %+v, want %d remaining", rule, i, costs, results[i], 100-spent)
				}
			}
		}
	}
}
