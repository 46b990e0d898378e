package redislimit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
)

// If a later lane fails, the first ones have counted: the error says so, and
// what a take took is given back, also if a lane in between had refused.
func TestAFailureAfterALaneCountedMayHaveCountedAndIsGivenBack(t *testing.T) {
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
	damage := engine.client.B().Set().Key(last.stored).Value("not a state").Build()
	if err := engine.client.Do(t.Context(), damage).Error(); err != nil {
		t.Fatal(err)
	}
	take := func(keys ...string) error {
		var requests []weir.Request
		for _, key := range keys {
			requests = append(requests, rule.For(key, 2))
		}
		_, err := engine.Take(t.Context(), requests...)
		return err
	}
	for _, keys := range [][]string{{first.key, last.key}, {first.key, middle.key, last.key}} {
		err := take(keys...)
		if failed, ok := errors.AsType[*Error](err); !ok || failed.Reason != Damaged || !failed.Counted {
			t.Errorf("Take of %q: got %#v, want a damaged state that may have counted", keys, err)
		}
		for began := time.Now(); ; time.Sleep(time.Millisecond) { // until it was given back
			d, err := engine.Peek(t.Context(), rule.For(first.key, 0))
			if err == nil && d.Remaining == 5 {
				break
			}
			if time.Since(began) > 10*time.Second {
				t.Fatalf("after the failed Take of %q: %+v and %v, want 5 remaining", keys, d, err)
			}
		}
	}
	if failed, ok := errors.AsType[*Error](take(last.key)); !ok || failed.Counted {
		t.Errorf("Take of a damaged state alone: got %#v, want an error that counted nothing", failed)
	}
}

// laneKey is a key and where its state is.
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
		parts, _, err := engine.parts(nil, []weir.Request{rule.For(key, 1)})
		if err != nil {
			t.Fatal(err)
		}
		if p := parts[0]; !slices.ContainsFunc(found, func(k laneKey) bool { return k.lane == p.lane }) {
			found = append(found, laneKey{key, p.key, p.lane})
		}
	}
	slices.SortFunc(found, func(a, b laneKey) int { return cmp.Compare(a.lane, b.lane) })
	return found[0], found[1], found[2]
}
