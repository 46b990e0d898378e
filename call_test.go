package weir_test

import (
	"context"
	"errors"
	"testing"
	"time"
	"unsafe"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/limittest"
)

// passing makes a call as it is.
func passing(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
	return next(ctx, call)
}

// layered puts empty functions around an engine.
func layered(e weir.Engine, layers int) weir.Engine {
	for range layers {
		e = weir.Wrap(e, passing)
	}
	return e
}

func TestAnEngineBelowEmptyFunctionsIsAsWithoutThem(t *testing.T) {
	for name, layers := range map[string]int{"one": 1, "five": 5} {
		t.Run(name, func(t *testing.T) {
			limittest.Run(t, func(clock func() int64) weir.Engine {
				return layered(weir.NewMemory(weir.MemoryOptions{Clock: clock}), layers)
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
	_ = engine.Each(ctx, weir.Calls(weir.OpTake, q, q), results)
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

func (keeper) Hold(time.Time, weir.Call) (<-chan struct{}, func()) { return nil, func() {} }
func (keeper) Drop(weir.Call)                                      {}

func TestAbilitiesAreFoundBelowFunctions(t *testing.T) {
	memory := weir.NewMemory(weir.MemoryOptions{})
	for layers := range 6 {
		if found, ok := weir.Find[*weir.Memory](layered(memory, layers)); !ok || found != memory {
			t.Errorf("below %d functions: found %v, want the memory engine", layers, found)
		}
		if _, ok := weir.Find[weir.Holder](layered(keeper{memory}, layers)); !ok {
			t.Errorf("below %d functions: no Holder", layers)
		}
		if _, ok := weir.Find[weir.LineKeeper](layered(memory, layers)); ok {
			t.Errorf("below %d functions: a LineKeeper, and there is none", layers)
		}
	}
	if _, ok := weir.Find[weir.Holder](nil); ok {
		t.Error("found a Holder in no engine")
	}
}

func TestARequestTakes48BytesAndALayerAllocatesNothing(t *testing.T) {
	if size := unsafe.Sizeof(weir.Request{}); size > 48 && unsafe.Sizeof(0) == 8 {
		t.Errorf("a Request takes %d bytes, want at most 48", size)
	}
	engine, rule := layered(weir.NewMemory(weir.MemoryOptions{}), 5), mustRule(t, "r", weir.TokenBucket{Rate: weir.PerSecond(1)})
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

// BenchmarkLayers measures a Take below functions that only pass it on.
func BenchmarkLayers(b *testing.B) {
	rule := mustRule(b, "r", weir.TokenBucket{Rate: weir.PerSecond(weir.MaxRate)})
	requests := []weir.Request{rule.For("k", 1)}
	for _, layers := range []int{0, 1, 5} {
		b.Run([]string{"none", "one", 5: "five"}[layers], func(b *testing.B) {
			engine := layered(weir.NewMemory(weir.MemoryOptions{}), layers)
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
