package weir_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// Every verb of every type gives the same answer, before and after all other verbs.
func TestUnlimitedAdmitsEverythingAndDenyAllNothing(t *testing.T) {
	for _, tt := range []struct {
		limit   weir.Limit
		allowed bool
	}{{weir.Unlimited{}, true}, {weir.DenyAll{}, false}} {
		one, keyed := mustLimit(t, tt.limit), mustKeyed[string](t, tt.limit)
		engine, rule := weir.NewMemory(weir.MemoryOptions{}), mustRule(t, "r", tt.limit)
		want := weir.Decision{Allowed: tt.allowed, Limit: weir.MaxCount, Remaining: weir.MaxCount}
		if !tt.allowed {
			want = weir.Decision{RetryAfter: weir.Never}
		}
		for range 3 {
			for _, n := range []int64{1, weir.MaxCount} {
				ofEngine, err := engine.Take(t.Context(), rule.For("a", n))
				ofEngine.Rule, ofEngine.Key = "", ""
				for name, got := range map[string]weir.Decision{
					"Limiter.Take": one.Take(n), "Limiter.Peek": one.Peek(n), "Keyed.Take": keyed.Take("a", n), "Memory.Take": ofEngine,
				} {
					if got != want || err != nil {
						t.Errorf("%s: %s(%d) = %+v and error %v, want %+v", tt.limit, name, n, got, err, want)
					}
				}
				if one.AllowN(n) != tt.allowed || keyed.AllowN("a", n) != tt.allowed {
					t.Errorf("%s: AllowN(%d) is not %v", tt.limit, n, tt.allowed)
				}
			}
			one.Record(7)
		}
		err := one.Wait(t.Context())
		if tt.allowed != (err == nil) || !tt.allowed && !errors.Is(err, weir.ErrNever) {
			t.Errorf("%s: Wait: got %v", tt.limit, err)
		}
		if one.TakeAt(time.Time{}, 0).Allowed != true {
			t.Errorf("%s: a cost of 0 is refused", tt.limit)
		}
	}
}

// A plan can change between a limit, no limit and no access.
func TestPlansCanBeUnlimitedOrDenied(t *testing.T) {
	plans := map[string]weir.Limit{"free": weir.TokenBucket{Rate: weir.PerDay(1)}, "gold": weir.Unlimited{}, "blocked": weir.DenyAll{}}
	keyed, err := weir.NewKeyedFunc(func(plan string) weir.Limit { return plans[plan] }, weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		keyed.Allow("free")
		if !keyed.Allow("gold") || keyed.Allow("blocked") || keyed.Allow("free") {
			t.Fatal("a plan got another one's answer")
		}
	}
	plans["blocked"], plans["gold"] = plans["gold"], plans["blocked"]
	if keyed.Allow("gold") || !keyed.Allow("blocked") {
		t.Error("a changed plan is not obeyed")
	}
}

// Beside other limits Unlimited changes no answer, and DenyAll takes nothing.
func TestUnlimitedAndDenyAllBesideOtherLimits(t *testing.T) {
	bucket := weir.TokenBucket{Rate: weir.PerDay(3)}
	engine := weir.NewMemory(weir.MemoryOptions{})
	free, err := weir.ParseRule("r=unlimited and token bucket 3/d")
	if err != nil {
		t.Fatal(err)
	}
	denied := mustRule(t, "r", bucket, weir.DenyAll{})
	ctx := context.Background()
	for range 5 {
		if d, err := engine.Take(ctx, denied.For("a", 1)); err != nil || d.Allowed || d.RetryAfter != weir.Never {
			t.Errorf("denied: got %+v and error %v", d, err)
		}
	}
	if d, err := engine.Take(ctx, free.For("a", 1)); err != nil || !d.Allowed || d.Limit != 3 || d.Remaining != 2 {
		t.Errorf("unlimited and 3/d: got %+v and error %v, want 2 of 3 left", d, err)
	}
}
