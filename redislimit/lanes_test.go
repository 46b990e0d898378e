package redislimit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
)

// If a later lane fails, the first ones have counted, and the error says so. The units of a take are given back, even
// if a lane in between has refused.
func TestAFailureAfterALaneCountedMayHaveCountedAndIsGivenBack(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	engine := openFor(t, "redis-cluster://"+cluster.Nodes[0].Addr, Options{})
	rule, err := weir.ParseRule("r=fixed window 5/300d")
	if err != nil {
		t.Fatal(err)
	}
	first, middle, last := threeLanes(t, engine, rule)
	if d, err := engine.Take(t.Context(), rule.For(middle.key, 5)); err != nil || !d.Allowed {
		t.Fatalf("Take of all of %q: %+v, %v", middle.key, d, err)
	}
	damage := engine.client.Known().B().Set().Key(last.stored).Value("not a state").Build()
	if err := engine.client.Known().Do(t.Context(), damage).Error(); err != nil {
		t.Fatal(err)
	}
	take := func(most int64, keys ...string) error {
		var requests []weir.Request
		for _, key := range keys {
			requests = append(requests, rule.For(key, 2))
		}
		_, _, err := weir.TakeUpTo(t.Context(), engine, most, requests...)
		return err
	}
	for i, keys := range [][]string{{first.key, last.key}, {first.key, middle.key, last.key}, {first.key, last.key}, {first.key, middle.key, last.key}} {
		err := take(int64(1+i/2), keys...)
		if failed, ok := errors.AsType[*Error](err); !ok || failed.Reason != Damaged || failed.Counted == weir.CountedNo {
			t.Errorf("Take of %q: got %#v, want a damaged state that may have counted", keys, err)
		}
		eventually(t, fmt.Sprintf("the failed Take of %q is given back", keys), func() error {
			return wantRemaining(engine, rule.For(first.key, 0), 5)
		})
	}
	if failed, ok := errors.AsType[*Error](take(1, last.key)); !ok || failed.Counted != weir.CountedNo {
		t.Errorf("Take of a damaged state alone: got %#v, want an error that counted nothing", failed)
	}
}

// A caller may leave at any point of a take across lanes that has to give back a surplus. Either the caller has the
// answer, or the engine gives everything back.
func TestATakeUpToAcrossLanesThatIsCancelledIsGivenBackWhole(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	var calls atomic.Int64
	var leave atomic.Pointer[context.CancelFunc]
	engine := openFor(t, "redis-cluster://"+cluster.Nodes[0].Addr, Options{Observe: func(context.Context, ScriptCall) {
		if calls.Add(1) == 2 {
			(*leave.Load())()
		}
	}})
	rule, err := weir.ParseRule("r=fixed window 5/300d")
	if err != nil {
		t.Fatal(err)
	}
	first, later, _ := threeLanes(t, engine, rule)
	noCaller := context.CancelFunc(func() {})
	leave.Store(&noCaller)
	if d, err := engine.Take(t.Context(), rule.For(later.key, 3)); err != nil || !d.Allowed {
		t.Fatalf("Take of 3 of 5 of %q: %+v, %v", later.key, d, err)
	}
	for round := range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		leave.Store(&cancel)
		calls.Store(0)
		times, _, err := weir.TakeUpTo(ctx, engine, 9, rule.For(first.key, 1), rule.For(later.key, 1))
		cancel()
		if err == nil && times != 2 {
			t.Fatalf("round %d: taken %d times, want 2", round, times)
		}
		if failed, ok := errors.AsType[*Error](err); err != nil && (!ok || failed.Reason != Cancelled || failed.Counted == weir.CountedNo) {
			t.Fatalf("round %d: error %v, want one of a caller who left, that may have counted", round, err)
		}
		eventually(t, fmt.Sprintf("round %d: both lanes count %d takes (%v)", round, times, err), func() error {
			return cmp.Or(wantRemaining(engine, rule.For(first.key, 0), 5-times), wantRemaining(engine, rule.For(later.key, 0), 2-times))
		})
		if times > 0 {
			engine.Return(t.Context(), rule.For(first.key, times))
			engine.Return(t.Context(), rule.For(later.key, times))
		}
	}
}

// laneKey is a key and the place of its state.
type laneKey struct {
	key, stored string
	lane        int
}

// threeLanes finds keys of three lanes, lowest first.
func threeLanes(t *testing.T, engine *Engine, rule *weir.Rule) (first, middle, last laneKey) {
	t.Helper()
	var found []laneKey
	for i := 0; len(found) < 3; i++ {
		key := fmt.Sprint("key ", i)
		parts, _, err := engine.parts(nil, []weir.Request{rule.For(key, 1)}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if p := parts[0]; !slices.ContainsFunc(found, func(k laneKey) bool { return k.lane == p.Lane }) {
			found = append(found, laneKey{key, p.Key, p.Lane})
		}
	}
	slices.SortFunc(found, func(a, b laneKey) int { return cmp.Compare(a.lane, b.lane) })
	return found[0], found[1], found[2]
}
