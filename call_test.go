package weir_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/layertest"
	"github.com/weirflow/weir/limittest"
)

func TestAnEngineBelowEmptyFunctionsIsAsWithoutThem(t *testing.T) {
	for name, layers := range map[string]int{"one": 1, "five": 5} {
		t.Run(name, func(t *testing.T) {
			limittest.Run(t, func(clock func() int64) weir.Engine {
				return layertest.Put(weir.NewMemory(weir.MemoryOptions{Clock: clock}), layers)
			})
		})
	}
}

// Every call passes the function, with all that it names.
func TestAWrapperSeesEveryCall(t *testing.T) {
	var seen []weir.Call
	ctx, rule := t.Context(), mustRule(t, "r", weir.TokenBucket{Rate: weir.PerDay(100)})
	engine := weir.Wrap(weir.NewMemory(weir.MemoryOptions{}), func(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
		seen = append(seen, call)
		return next(ctx, call)
	})
	q := rule.For("k", 1)
	_, _ = engine.Take(ctx, q)
	_, _, _ = weir.TakeUpTo(ctx, engine, 7, q)
	_, _ = engine.Reserve(ctx, q)
	_, _ = weir.ReserveAhead(ctx, engine, time.Hour, q)
	_, _ = engine.Peek(ctx, q)
	_, _ = engine.Record(ctx, q)
	_ = engine.Reset(ctx, q)
	results := make([]weir.Result, 2)
	_ = engine.Each(ctx, enginekit.Calls(weir.OpTake, q, q), results)
	for i, want := range []weir.Call{
		{Op: weir.OpTake}, {Op: weir.OpTakeUpTo, Most: 7}, {Op: weir.OpReserve}, {Op: weir.OpReserveAhead, Longest: time.Hour},
		{Op: weir.OpPeek}, {Op: weir.OpRecord}, {Op: weir.OpReset}, {Op: weir.OpEach},
	} {
		got := seen[i]
		if got.Op != want.Op || got.Most != want.Most || got.Longest != want.Longest || (len(got.Requests) == 1) == (got.Op == weir.OpEach) {
			t.Errorf("call %d: the function sees %+v, want %s", i, got, want.Op)
		}
	}
	if len(seen) != 8 || len(seen[7].Each.Calls) != 2 || !results[1].Decision.Allowed {
		t.Errorf("the function sees %d calls, the last of %d, which got %+v; want 8, the last of 2", len(seen), len(seen[7].Each.Calls), results)
	}
}

// A function may answer in place of the engine.
func TestAWrapperCanRefuse(t *testing.T) {
	closed := errors.New("closed for the night")
	engine := weir.Wrap(weir.NewMemory(weir.MemoryOptions{}), func(context.Context, weir.Call, weir.Next) (weir.Answer, error) {
		return weir.Answer{}, closed
	})
	if _, err := engine.Take(t.Context(), mustRule(t, "r", weir.Unlimited{}).For("k", 1)); err != closed {
		t.Errorf("got error %v, want that of the function", err)
	}
}

type keeper struct{ weir.Engine }

func (keeper) KeepSlots(time.Time, weir.Call) (<-chan struct{}, func()) { return nil, func() {} }
func (keeper) Drop(weir.Call)                                           {}

func TestAbilitiesAreFoundBelowFunctions(t *testing.T) {
	memory := weir.NewMemory(weir.MemoryOptions{})
	for layers := range 6 {
		if found, ok := weir.Find[*weir.Memory](layertest.Put(memory, layers)); !ok || found != memory {
			t.Errorf("below %d functions: found %v, want the memory engine", layers, found)
		}
		if _, ok := weir.Find[weir.SlotKeeper](layertest.Put(keeper{memory}, layers)); !ok {
			t.Errorf("below %d functions: no SlotKeeper", layers)
		}
	}
	if _, ok := weir.Find[weir.SlotKeeper](nil); ok {
		t.Error("found a SlotKeeper in no engine")
	}
}

func TestARequestTakes56BytesAndALayerAllocatesNothing(t *testing.T) {
	if size := unsafe.Sizeof(weir.Request{}); size > 56 && unsafe.Sizeof(0) == 8 {
		t.Errorf("a Request takes %d bytes, want at most 56", size)
	}
	engine, rule := layertest.Put(weir.NewMemory(weir.MemoryOptions{}), 5), mustRule(t, "r", weir.TokenBucket{Rate: weir.PerSecond(1)})
	requests := []weir.Request{rule.For("k", 1)}
	if n := testing.AllocsPerRun(1000, func() { _, _ = engine.Take(t.Context(), requests...) }); n != 0 {
		t.Errorf("a Take below five functions makes %v allocations, want none", n)
	}
}

// A lease or identity that an engine cannot honour is an error.
func TestMemoryRefusesWhatItCannotDo(t *testing.T) {
	memory, rule := weir.NewMemory(weir.MemoryOptions{}), mustRule(t, "r", weir.TokenBucket{Rate: weir.PerSecond(1)})
	for what, call := range map[string]weir.Call{
		"an identity":          {Op: weir.OpTake, Identity: "x"},
		"an unknown operation": {Op: 99},
	} {
		call.Requests = []weir.Request{rule.For("k", 1)}
		if _, err := memory.Do(t.Context(), call); !errors.Is(err, weir.ErrRequest) {
			t.Errorf("%s: got error %v, want a *weir.RequestError", what, err)
		}
	}
	if _, err := memory.Do(t.Context(), weir.Call{Op: 99}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("an unknown operation: got error %v, want errors.ErrUnsupported", err)
	}
}

// BenchmarkWrap measures a Take below functions that only pass it on.
func BenchmarkWrap(b *testing.B) {
	rule := mustRule(b, "r", weir.TokenBucket{Rate: weir.PerSecond(weir.MaxRate)})
	requests := []weir.Request{rule.For("k", 1)}
	for _, layers := range []int{0, 1, 5} {
		b.Run([]string{"none", "one", 5: "five"}[layers], func(b *testing.B) {
			engine := layertest.Put(weir.NewMemory(weir.MemoryOptions{}), layers)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = engine.Take(b.Context(), requests...)
			}
		})
	}
}

// Each of some engines finds the states of a rule as fast as if it were the only one.
func TestARuleUsedOnTwoEnginesAllocatesNothing(t *testing.T) {
	one, other := weir.NewMemory(weir.MemoryOptions{}), weir.NewMemory(weir.MemoryOptions{})
	rate := weir.PerSecond(weir.MaxRate)
	for _, rule := range []*weir.Rule{mustRule(t, "a", weir.TokenBucket{Rate: rate}), mustRule(t, "b", weir.TokenBucket{Rate: rate}, weir.FixedWindow{Rate: rate})} {
		take := func() {
			for _, e := range []*weir.Memory{one, other} {
				if d, err := e.Take(t.Context(), rule.For("k", 1)); err != nil || !d.Allowed {
					t.Errorf("%s: got %+v and error %v", rule, d, err)
				}
			}
		}
		if n := testing.AllocsPerRun(1000, take); n != 0 {
			t.Errorf("%s: a Take on each of two engines makes %v allocations, want none", rule, n)
		}
	}
}

// BenchmarkTwoEngines measures a Take under a rule that one engine uses, and one that two use in turn.
func BenchmarkTwoEngines(b *testing.B) {
	rate := weir.PerSecond(weir.MaxRate)
	for name, limits := range map[string][]weir.Limit{"one limit": {weir.TokenBucket{Rate: rate}}, "two limits": {weir.TokenBucket{Rate: rate}, weir.FixedWindow{Rate: rate}}} {
		for _, used := range []int{1, 2} {
			b.Run(name+[]string{1: ", one engine", 2: ", two engines"}[used], func(b *testing.B) {
				rule := mustRule(b, "r", limits...)
				engines := []*weir.Memory{weir.NewMemory(weir.MemoryOptions{}), weir.NewMemory(weir.MemoryOptions{})}[:used]
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					_, _ = engines[i%used].Take(b.Context(), rule.For("k", 1))
				}
			})
		}
	}
}

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

// oftenAskedLimits have room for all takes of a test.
var oftenAskedLimits = []weir.Limit{
	weir.TokenBucket{Rate: weir.PerHour(1 << 30)},
	weir.TokenBucket{Rate: weir.PerHour(3), Burst: 1},
	weir.LeakyBucket{Rate: weir.PerHour(7), Queue: 1 << 30, NoDelay: 1 << 30},
	weir.FixedWindow{Rate: weir.PerDay(1 << 30)},
	weir.SlidingWindow{Rate: weir.PerDay(1 << 30)},
	weir.SlidingLog{Rate: weir.PerDay(50)},
	weir.SlidingLog{Rate: weir.PerDay(50), CountDenied: true},
}

func wantNoAllocations(t *testing.T, what string, ask func()) {
	t.Helper()
	for range 200 { // a log grows to its full length first
		ask()
	}
	if got := testing.AllocsPerRun(500, ask); got != 0 {
		t.Errorf("%s: got %v allocations, want 0", what, got)
	}
}

func TestLimiterAllocatesNothing(t *testing.T) {
	for _, limit := range oftenAskedLimits {
		limiter := mustLimit(t, limit)
		wantNoAllocations(t, limit.String()+": Allow", func() { limiter.Allow() })
		wantNoAllocations(t, limit.String()+": Take", func() { limiter.Take(1) })
		wantNoAllocations(t, limit.String()+": Peek", func() { limiter.Peek(1) })
		at := time.Now()
		wantNoAllocations(t, limit.String()+": TakeAt", func() {
			at = at.Add(time.Second)
			limiter.TakeAt(at, 1)
		})
	}
}

func TestMemoryTakeOfAKnownKeyAllocatesNothing(t *testing.T) {
	ctx := context.Background()
	engine := weir.NewMemory(weir.MemoryOptions{})
	for _, limit := range oftenAskedLimits {
		rule, err := weir.NewRule("r "+limit.String(), limit)
		if err != nil {
			t.Fatal(err)
		}
		wantNoAllocations(t, limit.String()+": Memory.Take", func() {
			if _, err := engine.Take(ctx, rule.For("alice", 1)); err != nil {
				t.Fatal(err)
			}
		})
		wantNoAllocations(t, limit.String()+": Memory.Peek", func() {
			if _, err := engine.Peek(ctx, rule.For("alice", 1)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestMemoryTakeOfASmallCallAllocatesNothing(t *testing.T) {
	ctx := context.Background()
	engine := weir.NewMemory(weir.MemoryOptions{})
	two, err := weir.NewRule("two", weir.TokenBucket{Rate: weir.PerHour(1 << 30)}, weir.SlidingLog{Rate: weir.PerDay(50)})
	if err != nil {
		t.Fatal(err)
	}
	one, err := weir.NewRule("one", weir.FixedWindow{Rate: weir.PerDay(1 << 30)})
	if err != nil {
		t.Fatal(err)
	}
	wantNoAllocations(t, "Memory.Take of two rules, one of them twice", func() {
		if _, err := engine.Take(ctx, two.For("alice", 1), one.For("bob", 1), two.For("alice", 1)); err != nil {
			t.Fatal(err)
		}
	})
}

// TestFloodOfDeniedAttemptsCostsNoMemory hammers a small log, in both modes,
// and measures the heap.
func TestFloodOfDeniedAttemptsCostsNoMemory(t *testing.T) {
	for _, counts := range []bool{false, true} {
		limit := weir.SlidingLog{Rate: weir.PerHour(100), CountDenied: counts}
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			limiter := mustLimit(t, limit)
			now := int64(0)
			flood := func(attempts int) (denied int) {
				for range attempts {
					now++
					if !limiter.TakeAt(time.Unix(0, now), 1).Allowed {
						denied++
					}
				}
				return denied
			}
			flood(1000)
			before := heapInUse()
			if denied := flood(100_000); denied != 100_000 {
				t.Fatalf("%d of 100000 were denied, want all", denied)
			}
			// Without a bound it would be 16 bytes an attempt: 1.6 MB.
			if grown := heapInUse() - before; grown > 64<<10 {
				t.Errorf("the heap grew by %d bytes under 100000 denied attempts, want under 64 KiB", grown)
			}
			runtime.KeepAlive(limiter)
		})
	}
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
