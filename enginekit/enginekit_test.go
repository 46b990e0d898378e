package enginekit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/limittest"
)

func TestTheExampleIsAWholeEngine(t *testing.T) { limittest.Run(t, newEngine) }

func newRule(t *testing.T, name string, limits ...weir.Limit) *weir.Rule {
	t.Helper()
	rule, err := weir.NewRule(name, limits...)
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

func TestMergedRequestsAreTheFirstOfEachKey(t *testing.T) {
	a := newRule(t, "a", weir.TokenBucket{Rate: weir.PerSecond(5)})
	b := newRule(t, "b", weir.TokenBucket{Rate: weir.PerSecond(5)})
	requests := []weir.Request{a.For("k", 1), b.For("k", 2), a.For("k", 3), a.For("l", 4), b.For("k", 5)}
	got, err := enginekit.Merge(weir.OpTake, requests)
	want := []weir.Request{a.For("k", 4), b.For("k", 7), a.For("l", 4)}
	if err != nil || len(got) != len(want) {
		t.Fatalf("got %v and error %v, want %v", got, err, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("request %d: got %v, want %v", i, got[i], want[i])
		}
	}
	if requests[0].Cost != 1 {
		t.Errorf("the caller's request has a cost of %d now, want 1", requests[0].Cost)
	}
}

func TestMergingWithNothingToMergeAllocatesNothing(t *testing.T) {
	requests := []weir.Request{newRule(t, "a", weir.TokenBucket{Rate: weir.PerSecond(5)}).For("k", 1)}
	if allocs := testing.AllocsPerRun(100, func() { enginekit.Merge(weir.OpTake, requests) }); allocs != 0 {
		t.Errorf("got %v allocations, want 0", allocs)
	}
}

func TestFunctionsInTicksAreThoseOfTheDatabase(t *testing.T) {
	second, err := enginekit.FunctionsOf(weir.TokenBucket{Rate: weir.PerSecond(4), Burst: 1}, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	state := second.Take(second.Fresh(), 1000, 1, 0)
	if wait := second.Wait(state, 1000, 1); wait != 250 {
		t.Errorf("the wait for the next of 4 a second is %d ms, want 250", wait)
	}
	for _, tt := range []struct {
		limit weir.Limit
		field string
	}{
		{weir.FixedWindow{Rate: weir.Per(5, 1500*time.Microsecond)}, "period"},
		{weir.SlidingLog{Rate: weir.PerSecond(5), Gap: 10 * time.Microsecond}, "gap"},
		{weir.Cycle{Rate: weir.PerSecond(5), Origin: 1}, "origin"},
		{weir.Concurrency{Slots: 5, Lease: time.Second + 1}, "lease"},
		{weir.TokenBucket{}, "rate"},
		{weir.Bursty{Rate: weir.PerSecond(5), Over: time.Second}, "rule"},
	} {
		var refused *weir.LimitError
		if _, err := enginekit.FunctionsOf(tt.limit, time.Millisecond); !errors.As(err, &refused) || refused.Field != tt.field {
			t.Errorf("functions of %s in ms: got error %v, want one about its %s", tt.limit, err, tt.field)
		}
	}
	if _, err := enginekit.FunctionsOf(nil, 1); err == nil {
		t.Error("functions of no limit: got no error")
	}
}

func TestARuleKeepsWhatAnEngineMadeOfIt(t *testing.T) {
	rule, made := newRule(t, "r", weir.RateGate{Rate: weir.PerSecond(1)}), 0
	count := func(*weir.Rule) *int { made++; return &made }
	enginekit.Keep(rule, count)
	enginekit.Keep(rule, count)
	if made != 1 {
		t.Errorf("it was made %d times, want once", made)
	}
	other := enginekit.Keep(rule, func(r *weir.Rule) *string { s := r.Name(); return &s })
	if *other != "r" {
		t.Errorf("another engine finds %q", *other)
	}
	if enginekit.Keep(rule, count); made != 1 {
		t.Errorf("beside another engine it was made %d times, want once", made)
	}
}

func TestAnEngineThatCannotDecideSaysThatNothingWasCounted(t *testing.T) {
	down := errors.New("down")
	engine := enginekit.New(func(context.Context, *enginekit.Merged) (weir.Decision, error) {
		return weir.Decision{}, enginekit.CannotDecide(weir.OpTake, down)
	}, nil)
	_, err := engine.Take(t.Context(), newRule(t, "r", weir.RateGate{Rate: weir.PerSecond(1)}).For("k", 1))
	if !errors.Is(err, down) || weir.WasCounted(err) != weir.CountedNo {
		t.Errorf("got error %v, which may have counted: %t", err, weir.WasCounted(err) != weir.CountedNo)
	}
}

func TestCheckReportsEveryRule(t *testing.T) {
	rule := newRule(t, "r", weir.RateGate{Rate: weir.PerSecond(1)})
	unheld := errors.New("unheld")
	err := enginekit.Check([]*weir.Rule{nil, rule, {}}, func(*weir.Rule) error { return unheld })
	if !errors.Is(err, unheld) || !errors.Is(err, weir.ErrRequest) {
		t.Errorf("got error %v", err)
	}
	if err := enginekit.Check([]*weir.Rule{rule}, nil); err != nil {
		t.Errorf("an engine that holds all: got error %v", err)
	}
}

func TestLimitsWithoutStateAreDecidedWithoutTheEngine(t *testing.T) {
	calls := 0
	engine := enginekit.New(func(_ context.Context, call *enginekit.Merged) (weir.Decision, error) {
		calls++
		d := call.Decide(0)
		for _, part := range call.Parts {
			if part.Changed == described(&part).Stateless {
				t.Errorf("%s of %s: changed is %t", call.Op, part.StateKey(), part.Changed)
			}
		}
		return d, nil
	}, nil)
	free, none := newRule(t, "free", weir.Unlimited{}), newRule(t, "none", weir.Unlimited{}, weir.DenyAll{})
	for rule, want := range map[*weir.Rule]int64{free: 7, none: 0} {
		times, d, err := weir.TakeUpTo(t.Context(), engine, 7, rule.For("k", 2))
		if times != want || d.Allowed != (want > 0) || err != nil || calls != 0 {
			t.Errorf("%s: %d times with %+v and error %v after %d calls, want %d times and no call", rule, times, d, err, calls, want)
		}
	}
	mixed := newRule(t, "mixed", weir.Unlimited{}, weir.RateGate{Rate: weir.PerSecond(1)})
	if d, err := engine.Take(t.Context(), mixed.For("k", 1)); !d.Allowed || err != nil || calls != 1 {
		t.Errorf("beside a limit with a state: %+v and error %v after %d calls, want 1", d, err, calls)
	}
	if err := engine.Reset(t.Context(), mixed.For("k", 0)); err != nil || calls != 2 {
		t.Errorf("reset beside a limit with a state: error %v after %d calls, want 2", err, calls)
	}
}

func TestAnEngineThatIgnoresMostTakesOnce(t *testing.T) {
	engine := enginekit.New(func(_ context.Context, call *enginekit.Merged) (weir.Decision, error) {
		return weir.Decision{Allowed: call.Parts[0].Request.Cost < 3}, nil
	}, nil)
	rule := newRule(t, "r", weir.RateGate{Rate: weir.PerSecond(9)})
	for _, tt := range []struct{ most, cost, want int64 }{{7, 2, 1}, {1, 2, 1}, {0, 2, 0}, {7, 3, 0}} {
		if times, _, err := weir.TakeUpTo(t.Context(), engine, tt.most, rule.For("k", tt.cost)); times != tt.want || err != nil {
			t.Errorf("%d up to %d times: %d times and error %v, want %d", tt.cost, tt.most, times, err, tt.want)
		}
	}
}
