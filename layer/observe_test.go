package layer_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/layertest"
	"github.com/weirflow/weir/layer"
	"github.com/weirflow/weir/limittest"
)

// alertAt has near limits reported.
func alertAt(e weir.Engine, percent int, alert func(rule, key string)) (weir.Engine, error) {
	return layer.Observe(e, layer.ObserveOptions{Decided: func(_ context.Context, o layer.Observation) {
		if o.Threshold >= percent {
			alert(o.Rule, o.Key)
		}
	}})
}

func TestAThresholdIsReportedOnce(t *testing.T) {
	alerts := 0
	e, err := alertAt(weir.NewMemory(weir.MemoryOptions{}), 80, func(rule, key string) {
		if alerts++; rule != "r" || key != "k" {
			t.Errorf("got an alert for %s and %s", rule, key)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if takes(t, e, 9, mustRule(t, "r=fixed window 10/366d"), "k"); alerts != 1 {
		t.Errorf("got %d alerts for 9 of 10 units, want 1", alerts)
	}
}

func TestAnObservedEngineIsAsWithoutTheObserver(t *testing.T) {
	limittest.Run(t, func(clock func() int64) weir.Engine {
		e, err := layer.Observe(weir.NewMemory(weir.MemoryOptions{Clock: clock}), layer.ObserveOptions{Decided: func(context.Context, layer.Observation) { panic("a bug of the program") }})
		if err != nil {
			t.Fatal(err)
		}
		return e
	})
}

// A grant of a caller that waits counts, also in an Each that says so itself; a refusal does not, because the caller asks again.
func TestAnObserverSeesTheGrantsOfCallersThatWait(t *testing.T) {
	rule := mustRule(t, "r=fixed window 1/1d")
	var seen []layer.Observation
	e, err := layer.Observe(weir.NewMemory(weir.MemoryOptions{}), layer.ObserveOptions{Decided: func(_ context.Context, o layer.Observation) { seen = append(seen, o) }})
	if err != nil {
		t.Fatal(err)
	}
	calls := enginekit.Calls(weir.OpTake, rule.For("k", 1), rule.For("k", 1))
	calls[0].Waits, calls[1].Waits = true, true
	if _, err := e.Do(t.Context(), weir.Call{Op: weir.OpEach, Each: &weir.Batch{Calls: calls, Results: make([]weir.Result, 2)}, Waits: true}); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 1 || seen[0].Result() != "admitted" {
		t.Errorf("got %+v, want the grant alone", seen)
	}
}

func TestAnObserverSeesDecisionsRefusalsThresholdsAndErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "r=fixed window 10/1d and 100/1d")
		var seen []layer.Observation
		e, err := layer.Observe(r, layer.ObserveOptions{Decided: func(_ context.Context, o layer.Observation) { seen = append(seen, o) }})
		if err != nil {
			t.Fatal(err)
		}
		r.slow.Store(int64(time.Millisecond))
		q := func(cost int64) weir.Request { return rule.For("k", cost) }
		_, _ = e.Take(t.Context(), q(7))
		_, _, _ = weir.TakeUpTo(t.Context(), e, 1, q(1))
		_, _ = e.Peek(t.Context(), q(1))
		results := make([]weir.Result, 2)
		_ = e.Each(t.Context(), enginekit.Calls(weir.OpTake, q(2), q(1)), results)
		_, _ = e.Take(t.Context(), q(-1)) // the caller's mistake
		_, _ = e.Return(t.Context(), q(1))
		r.fails.Store(true)
		_, _ = e.Take(t.Context(), q(1))
		want := []struct {
			op        weir.Op
			result    string
			threshold int
			limit     string
		}{
			{weir.OpTake, "admitted", 0, ""}, {weir.OpTakeUpTo, "admitted", 80, ""}, {weir.OpPeek, "admitted", 0, ""},
			{weir.OpTake, "admitted", 100, ""}, {weir.OpTake, "refused", 100, "fixed window 10/d"}, {weir.OpTake, "away", 0, ""},
		}
		if len(seen) != len(want) {
			t.Fatalf("got %d observations, want %d: %+v", len(seen), len(want), seen)
		}
		for i, o := range seen {
			if o.Op != want[i].op || o.Result() != want[i].result || o.Threshold != want[i].threshold || o.Limit != want[i].limit {
				t.Errorf("observation %d: got %s %s, %d %%, limit %q; want %+v", i, o.Op, o.Result(), o.Threshold, o.Limit, want[i])
			}
			if o.Rule != "r" || o.Key != "k" || o.Took != time.Millisecond || o.Calls != 1 {
				t.Errorf("observation %d: got %+v, want rule r, key k, 1 ms and one call", i, o)
			}
		}
		if !errors.Is(seen[5].Err, errAway) {
			t.Errorf("got %v, want %v", seen[5].Err, errAway)
		}
	})
}

func TestASampleStandsForAllCallsAndLosesNoRefusal(t *testing.T) {
	memory, rule := weir.NewMemory(weir.MemoryOptions{}), mustRule(t, "r=fixed window 100000/366d")
	calls, refusals := 0, 0
	e, err := layer.Observe(memory, layer.ObserveOptions{Sample: 10, Decided: func(_ context.Context, o layer.Observation) {
		if calls += o.Calls; o.Result() == "refused" {
			refusals++
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	takes(t, e, 50_000, rule, "k")
	if calls < 45_000 || calls > 55_000 {
		t.Errorf("50,000 calls are reported as %d", calls)
	}
	for range 7 {
		_, _ = e.Take(t.Context(), rule.For("k", 100_001))
	}
	if refusals != 7 {
		t.Errorf("%d of 7 refusals are reported", refusals)
	}
}

func TestWithoutAFunctionAnObservedEngineIsTheEngine(t *testing.T) {
	memory := weir.NewMemory(weir.MemoryOptions{})
	if e, err := layer.Observe(memory, layer.ObserveOptions{}); err != nil || e != weir.Engine(memory) {
		t.Errorf("got %v and %v, want the engine itself", e, err)
	}
}

func TestLayersAreRefusedInAnyOtherOrder(t *testing.T) {
	r := newRemote()
	around := map[string]func(e weir.Engine) (weir.Engine, error){
		"observe": func(e weir.Engine) (weir.Engine, error) {
			return layer.Observe(e, layer.ObserveOptions{Decided: func(context.Context, layer.Observation) {}})
		},
		"deny":  func(e weir.Engine) (weir.Engine, error) { return layer.DenyUntil(e, layer.DenyOptions{}) },
		"guard": func(e weir.Engine) (weir.Engine, error) { return layer.Guard(e, layer.GuardOptions{Logger: quiet}) },
	}
	for _, tt := range []struct {
		outer, inner string
		fine         bool
	}{
		{"observe", "deny", true}, {"observe", "guard", true}, {"deny", "guard", true},
		{"deny", "observe", false}, {"guard", "observe", false}, {"guard", "deny", false},
		{"guard", "guard", false}, {"deny", "deny", false}, {"observe", "observe", false},
	} {
		inner, err := around[tt.inner](r)
		if err != nil {
			t.Fatal(err)
		}
		_, err = around[tt.outer](layertest.Put(inner, 1))
		if option := new(weir.OptionError); tt.fine != (err == nil) || err != nil && !errors.As(err, &option) {
			t.Errorf("%s over %s: got %v, want it fine: %v", tt.outer, tt.inner, err, tt.fine)
		}
	}
	for name, over := range around {
		for layers := range 2 {
			if _, err := over(layertest.Put(weir.NewMemory(weir.MemoryOptions{}), layers)); (err == nil) != (name == "observe") {
				t.Errorf("%s over a memory engine below %d functions: got %v", name, layers, err)
			}
		}
		if _, err := over(nil); err == nil {
			t.Errorf("%s over nothing: got no error", name)
		}
	}
}

// Both limits have a capacity of 10, so the capacity in a decision does not tell them apart.
func TestAnObserverNamesTheLimitThatRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule, refused := mustRule(t, "r=fixed window 10/1s and fixed window 10/1d"), ""
		e, err := layer.Observe(weir.NewMemory(weir.MemoryOptions{}), layer.ObserveOptions{Decided: func(_ context.Context, o layer.Observation) { refused = o.Limit }})
		if err != nil {
			t.Fatal(err)
		}
		if takes(t, e, 11, rule, "k"); refused != rule.Limits()[1].String() {
			t.Errorf("%q refused, want %q", refused, rule.Limits()[1])
		}
	})
}

// A caller that leaves, or has no more time, is a result of its own. A context that bounds the engine is no caller.
func TestACallerThatLeavesIsAResultOfItsOwn(t *testing.T) {
	var seen []string
	e, err := layer.Observe(weir.NewMemory(weir.MemoryOptions{}), layer.ObserveOptions{Decided: func(_ context.Context, o layer.Observation) { seen = append(seen, o.Result()) }})
	if err != nil {
		t.Fatal(err)
	}
	q := mustRule(t, "r=10/m").For("k", 1)
	left, leave := context.WithCancel(t.Context())
	leave()
	late, end := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer end()
	bounded, end := context.WithDeadlineCause(t.Context(), time.Unix(0, 0), &layer.OutageError{})
	defer end()
	for _, ctx := range []context.Context{left, late, bounded} {
		_, _ = e.Take(ctx, q)
		_ = e.Each(ctx, []weir.Call{{Op: weir.OpTake, Requests: []weir.Request{q}}}, make([]weir.Result, 1))
	}
	if want := []string{"left", "left", "left", "left", "error", "error"}; !slices.Equal(seen, want) {
		t.Errorf("got %q, want %q", seen, want)
	}
}
