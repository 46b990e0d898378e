package notice

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/layer"
)

// told collects the percentages that are told, by rule and key.
type told struct {
	*Notices
	engine weir.Engine
	events map[string][]int64
}

// collect returns notices over an observed engine. Events arrive in the hook's queue, which nobody sends.
func collect(t testing.TB, below weir.Engine, o Options) *told {
	t.Helper()
	hook, err := NewHook("http://127.0.0.1:1", "whsec_"+strings.Repeat("AAAA", 10))
	if err != nil {
		t.Fatal(err)
	}
	o.Engine, o.Log, o.Hook, o.Keys = below, slog.New(slog.DiscardHandler), hook, true
	c := &told{Notices: New(o), events: map[string][]int64{}}
	c.engine, err = layer.Observe(below, layer.ObserveOptions{Decided: func(_ context.Context, seen layer.Observation) { c.Decided(&seen) }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// settle makes the looks that are queued, and returns what was told of a key.
func (c *told) settle(rule, key string) []int64 {
	for len(c.looks) > 0 {
		c.lookAt(context.Background(), c.batch(<-c.looks))
	}
	for len(c.options.Hook.queue) > 0 {
		e := <-c.options.Hook.queue
		c.events[e.Data.Rule+" "+e.key] = append(c.events[e.Data.Rule+" "+e.key], e.Data.Percent)
	}
	return c.events[rule+" "+key]
}

func rule(t testing.TB, text string) *weir.Rule {
	t.Helper()
	r, err := weir.ParseRule(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func check(t *testing.T, what string, got []int64, want ...int64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: told %v, want %v", what, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%s: told %v, want %v", what, got, want)
		}
	}
}

// Each threshold is told once a window, at the take that reaches it, and again in the next window.
func TestEachThresholdIsToldOnceAWindow(t *testing.T) {
	for _, text := range []string{"r=quota 100/day", "r=fixed window 100/h", "r=cycle 100/2h", "r=token bucket 7/s burst 7 and quota 100/day", "r=sliding log 100/h", "r=sliding window 100/h",
		"r=quota 100/day and quota 500/month", "r=first window 100/h"} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(90 * time.Minute) // into a window
			r, c, ctx := rule(t, text), (*told)(nil), t.Context()
			c = collect(t, weir.NewMemory(weir.MemoryOptions{}), Options{})
			for n := 1; n <= 103; n++ {
				time.Sleep(200 * time.Millisecond)
				if d, err := c.engine.Take(ctx, r.For("k", 1)); err != nil || d.Allowed != (n <= 100) && !strings.Contains(text, "sliding window") {
					t.Fatalf("%s: take %d: %+v, %v", text, n, d, err)
				}
				want := []int64{80, 95, 100}
				switch {
				case n < 80:
					want = nil
				case n < 95:
					want = want[:1]
				case n < 100:
					want = want[:2]
				}
				check(t, text, c.settle("r", "k"), want...)
			}
			time.Sleep(49 * time.Hour)
			if _, err := c.engine.Take(ctx, r.For("k", 85)); err == nil && !strings.Contains(text, "bucket") {
				check(t, text+" in the next window", c.settle("r", "k"), 80, 95, 100, 80)
			}
		})
	}
}

// Buckets, and windows that nobody could act within, have no thresholds.
func TestOtherLimitsTellNothing(t *testing.T) {
	for text, want := range map[string]bool{"r=100/h": false, "r=token bucket 1000/30d": false, "r=fixed window 100/m": false, "r=concurrency 5 lease 1h": false, "r=unlimited": false, "r=deny all": false,
		"r=leaky bucket 5/h": false, "r=fixed window 100/h": true, "r=quota 5/week": true, "r=5/s and sliding log 100/d": true, "r=first window 5/h": true, "r=fixed window 100/m and ban 1h after 5/10m": false, "r=fixed window 100/h and ban 1h after 5/10m": true} {
		if got := Has(rule(t, text)); got != want {
			t.Errorf("%s has thresholds: %v, want %v", text, got, want)
		}
	}
}

// Calls of several rules tell of each quota, whichever limit binds the call.
func TestAQuotaBesideATighterRuleIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := collect(t, weir.NewMemory(weir.MemoryOptions{}), Options{})
		tenant, user := rule(t, "tenant=quota 1000/month"), rule(t, "user=5/s and fixed window 100/d")
		for n := range 900 {
			time.Sleep(time.Second)
			key := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}[n%9]
			if _, err := c.engine.Take(t.Context(), tenant.For("acme", 1), user.For(key, 1)); err != nil {
				t.Fatal(err)
			}
			if at := n + 1; at == 799 || at == 800 {
				check(t, "the tenant", c.settle("tenant", "acme"), []int64{80}[:at-799]...)
			}
			c.settle("", "")
		}
		check(t, "a user", c.settle("user", "a"), 80, 95, 100)
	})
}

// Overrides are looked at as they are in force.
func TestAnOverrideHasThresholdsOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base, more := rule(t, "r=quota 10/month"), rule(t, "r=quota 100/month")
		memory := weir.NewMemory(weir.MemoryOptions{})
		replace := func(requests []weir.Request) []weir.Request {
			var changed []weir.Request
			for _, q := range requests {
				changed = append(changed, more.For(q.Key, q.Cost))
			}
			return changed
		}
		c := collect(t, memory, Options{Overridden: replace})
		for range 79 {
			d, err := memory.Take(t.Context(), more.For("k", 1))
			c.Decided(&layer.Observation{Op: weir.OpTake, Rule: "r", Key: "k", Cost: 1, Decision: d, Err: err, Requests: []weir.Request{base.For("k", 1)}, Began: time.Now()})
		}
		check(t, "79 of 100", c.settle("r", "k"))
		d, _ := memory.Take(t.Context(), more.For("k", 1))
		c.Decided(&layer.Observation{Op: weir.OpTake, Rule: "r", Key: "k", Cost: 1, Decision: d, Requests: []weir.Request{base.For("k", 1)}, Began: time.Now()})
		check(t, "80 of 100", c.settle("r", "k"), 80)
	})
}

// Random takes, records and returns tell what a slow count says: each threshold that the used units have reached, once.
func TestRandomCallsTellWhatACountSays(t *testing.T) {
	for seed := range randtest.Seeds(t, 60, 20) {
		synctest.Test(t, func(t *testing.T) {
			r := randtest.New(seed)
			quotaOf := int64(1 + r.IntN(200))
			texts := []string{"r=quota %/month", "r=1000/s and quota %/month", "r=quota %/month and quota 100000/year"}
			limit := rule(t, strings.ReplaceAll(texts[seed%3], "%", strconv.FormatInt(quotaOf, 10)))
			c := collect(t, weir.NewMemory(weir.MemoryOptions{}), Options{Shared: r.IntN(2) == 0})
			used, want := int64(0), []int64(nil)
			for range 400 {
				cost := r.Int64N(max(quotaOf/20, 2))
				switch r.IntN(6) {
				case 0:
					_, _ = c.engine.Record(t.Context(), limit.For("k", cost))
					used += cost
				case 1:
					_, _ = c.engine.Return(t.Context(), limit.For("k", cost))
					used = max(used-cost, 0)
				default:
					if d, _ := c.engine.Take(t.Context(), limit.For("k", cost)); d.Allowed {
						used += cost
					}
				}
				for _, percent := range thresholds[len(want):] {
					if used*100 >= quotaOf*percent {
						want = append(want, percent)
					}
				}
				check(t, limit.String(), c.settle("r", "k"), want...)
			}
		})
	}
}

func BenchmarkDecided(b *testing.B) {
	for _, text := range []string{"r=100/s", "r=quota 1000000/month", "r=1000/s and quota 1000000000/month"} {
		b.Run(text, func(b *testing.B) {
			n := New(Options{Engine: weir.NewMemory(weir.MemoryOptions{}), Log: slog.New(slog.DiscardHandler)})
			o := layer.Observation{Op: weir.OpTake, Rule: "r", Key: "alice", Cost: 1, Began: time.Now(), Requests: []weir.Request{rule(b, text).For("alice", 1)},
				Decision: weir.Decision{Allowed: true, Rule: "r", Key: "alice", Limit: 1000, Remaining: 900}}
			n.Decided(&o)
			for len(n.looks) > 0 {
				n.lookAt(b.Context(), n.batch(<-n.looks))
			}
			b.ReportAllocs()
			for b.Loop() {
				n.Decided(&o)
			}
		})
	}
}

// Where keys have no room in the memory engine, marks share states, and one refuses another. Each threshold is told once all the same.
func TestMarksThatShareStatesRefuseNoEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := weir.NewMemory(weir.MemoryOptions{MaxKeys: 600})
		c, r := collect(t, memory, Options{}), rule(t, "r=fixed window 10/d")
		take := func(key string) (shared bool) {
			before := memory.Stats().Rules[0].Overflow
			if _, err := c.engine.Take(t.Context(), r.For(key, 1)); err != nil {
				t.Fatal(err)
			}
			return memory.Stats().Rules[0].Overflow != before
		}
		_, _ = c.engine.Take(t.Context(), r.For("first", 1)) // so that the rule has statistics
		var keys []string                                    // that have room, so that the marks have none
		for k := range 700 {
			if key := strconv.Itoa(k); !take(key) {
				keys = append(keys, key)
			}
		}
		if len(keys) < 500 {
			t.Fatalf("%d keys have room, want 500 at least", len(keys))
		}
		want := map[int][]int64{8: {80}, 9: {80}, 10: {80, 95, 100}}
		for n := 2; n <= 10; n++ {
			for _, key := range keys {
				if take(key) {
					t.Fatalf("key %s has no room", key)
				}
				c.settle("", "")
			}
			for _, key := range keys {
				check(t, "key "+key, c.settle("r", key), want[n]...)
			}
		}
	})
}
