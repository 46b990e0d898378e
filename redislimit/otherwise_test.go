package redislimit_test

import (
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/otherwisetest"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/layer"
	"github.com/weirflow/weir/redislimit"
)

func TestOtherwiseOnRedisIsTryReplaceTry(t *testing.T) {
	client := dial(t, redistest.Start(t))
	otherwisetest.Duel(t, randtest.Rounds(t, 80, 25), func(clock func() int64) weir.Engine {
		return newEngine(t, client, redislimit.Options{Prefix: fresh(), Clock: clock})
	})
}

func TestARepeatedCallWithOtherwiseIsPaidOnce(t *testing.T) {
	otherwisetest.PaidOnce(t, newEngine(t, dial(t, redistest.Start(t)), redislimit.Options{}))
}

// The floor and the pool may be on different machines.
func TestOtherwiseOnAClusterIsTryReplaceTry(t *testing.T) {
	client := dialCluster(t, redistest.StartCluster(t))
	otherwisetest.DuelOnLanes(t, randtest.Rounds(t, 40, 16), func(clock func() int64) weir.Engine {
		return newEngine(t, client, redislimit.Options{Prefix: fresh(), Clock: clock})
	})
	otherwisetest.PaidOnce(t, newEngine(t, client, redislimit.Options{Prefix: fresh()}))
}

// A repeated Reserve has the slots of the first one, whichever layers it passes.
func TestARepeatedReserveHasItsSlotsThroughAnyLayer(t *testing.T) {
	engine := newEngine(t, dial(t, redistest.Start(t)), redislimit.Options{})
	rule, err := weir.ParseRule("r=concurrency 5 lease 1h and 9/300d")
	if err != nil {
		t.Fatal(err)
	}
	for name, over := range map[string]func() (weir.Engine, error){
		"guard":      func() (weir.Engine, error) { return layer.Guard(engine, layer.GuardOptions{Deadline: time.Second}) },
		"prefetch":   func() (weir.Engine, error) { return layer.Prefetch(engine, layer.PrefetchOptions{}) },
		"deny until": func() (weir.Engine, error) { return layer.DenyUntil(engine, layer.DenyOptions{}) },
		"otherwise":  func() (weir.Engine, error) { return layer.Otherwise(engine) },
		"shadow": func() (weir.Engine, error) {
			return layer.Shadow(engine, layer.ShadowOptions{Candidates: map[string]*weir.Rule{"other": rule}})
		},
	} {
		e, err := over()
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			a, err := e.Do(t.Context(), weir.Call{Op: weir.OpReserve, Requests: []weir.Request{rule.For(name, 2)}, Identity: name})
			if err != nil || !a.Decision.Allowed {
				t.Errorf("%s: got %+v and %v, want the slots of the first answer", name, a.Decision, err)
			}
		}
		if d, err := engine.Peek(t.Context(), rule.For(name, 0)); err != nil || d.Remaining != 3 {
			t.Errorf("%s: %d slots are free (%v), want 3", name, d.Remaining, err)
		}
	}
}
