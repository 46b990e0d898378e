package weir_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/limittest"
)

const groups = 256

// cappedLimits admit two units at once, and nothing more for a long time. Their states are words and cells.
var cappedLimits = []weir.Limit{
	weir.TokenBucket{Rate: weir.PerDay(1), Burst: 2},
	weir.FixedWindow{Rate: weir.PerDay(2)},
	weir.SlidingLog{Rate: weir.PerDay(2)},
}

func still() int64 { return 1_700_000_000_000_000_000 }

// unitsOf asks for units of one key one by one, and returns the number admitted.
func unitsOf(t testing.TB, e weir.Engine, rule *weir.Rule, key string, units int) (n int) {
	t.Helper()
	for range units {
		d, err := e.Take(context.Background(), rule.For(key, 1))
		if err != nil {
			t.Fatal(err)
		}
		if d.Key != key {
			t.Fatalf("the decision on %q names %q", key, d.Key)
		}
		if d.Allowed {
			n++
		}
	}
	return n
}

func cappedRule(t testing.TB, limit weir.Limit) *weir.Rule {
	t.Helper()
	rule, err := weir.NewRule("r", limit)
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

func TestFloodOfFreshKeysStaysWithinItsBudgetsAndCostsKnownKeysNothing(t *testing.T) {
	const most, known = 2000, 500
	for _, limit := range cappedLimits {
		t.Run(limit.String(), func(t *testing.T) {
			rule := cappedRule(t, limit)
			engine := weir.NewMemory(weir.MemoryOptions{Clock: still, MaxKeys: most})
			for i := range known {
				if n := unitsOf(t, engine, rule, fmt.Sprint("known", i), 1); n != 1 {
					t.Fatalf("known key %d is refused before the flood", i)
				}
			}
			total := 0
			for i := range 10 * most {
				total += unitsOf(t, engine, rule, fmt.Sprint("flood", i), 3)
			}
			if bound := 2 * (most - known + groups); total > bound || total < 2*(most-known) {
				t.Errorf("the flood got %d units, want %d to %d", total, 2*(most-known), bound)
			}
			for i := range known {
				if n := unitsOf(t, engine, rule, fmt.Sprint("known", i), 3); n != 1 {
					t.Fatalf("known key %d got %d more units after the flood, want 1", i, n)
				}
			}
			stats := engine.Stats()
			if stats.Keys != most || stats.Shared == 0 || stats.Shared > groups || stats.Overflow < 9*3*most {
				t.Errorf("stats after the flood: %+v, want %d keys, up to %d shared states, and the overflow", stats, most, groups)
			}
		})
	}
}

func TestFloodByManyAtOnceIsWithinItsBudgetsToo(t *testing.T) {
	const most, callers = 300, 8
	for _, limit := range cappedLimits {
		t.Run(limit.String(), func(t *testing.T) {
			rule := cappedRule(t, limit)
			engine := weir.NewMemory(weir.MemoryOptions{Clock: still, MaxKeys: most})
			var wg sync.WaitGroup
			var total atomic.Int64
			for c := range callers {
				wg.Go(func() {
					for i := range 10 * most {
						total.Add(int64(unitsOf(t, engine, rule, fmt.Sprint((i+c*most)%(10*most)), 1)))
					}
				})
			}
			wg.Wait()
			if got, bound := total.Load(), int64(2*(most+groups)); got > bound || got < 2*most {
				t.Errorf("got %d units, want %d to %d", got, 2*most, bound)
			}
			if keys := engine.Stats().Keys; keys > most {
				t.Errorf("%d keys at a cap of %d", keys, most)
			}
		})
	}
}

// itself returns the key as its own parent.
func itself(key string) (string, bool) { return key, true }

// TestSharedStatesPassTheSuite gives every key a parent of its own, so that sharing changes no answer.
func TestSharedStatesPassTheSuite(t *testing.T) {
	limittest.Run(t, func(clock func() int64) weir.Engine {
		return weir.NewSharingMemory(weir.MemoryOptions{Clock: clock, Parent: itself})
	})
}

// network returns a.b.c as the parent of a.b.c.d, and a.b as the parent of a.b.c.
func network(key string) (string, bool) {
	at := strings.LastIndexByte(key, '.')
	if strings.Count(key, ".") < 2 {
		return "", false
	}
	return key[:at], true
}

func TestKeysWithoutRoomShareTheBudgetOfTheirParent(t *testing.T) {
	for _, limit := range cappedLimits {
		rule := cappedRule(t, limit)
		engine := weir.NewSharingMemory(weir.MemoryOptions{Clock: still, Parent: network})
		one, other := 0, 0
		for i := range 1000 {
			one += unitsOf(t, engine, rule, fmt.Sprintf("10.1.2.%d", i), 1)
			other += unitsOf(t, engine, rule, fmt.Sprintf("10.1.3.%d", i), 1)
		}
		if one != 2 || other != 2 {
			t.Errorf("%v: two networks got %d and %d units, want 2 each", limit, one, other)
		}
	}
}

func TestParentsWithoutRoomShareTheBudgetOfTheirs(t *testing.T) {
	const parents = 64 // at a cap of 1
	rule := cappedRule(t, cappedLimits[0])
	engine := weir.NewMemory(weir.MemoryOptions{Clock: still, MaxKeys: 1, Parent: network})
	total := 0
	for i := range 5000 {
		total += unitsOf(t, engine, rule, fmt.Sprintf("10.1.%d.1", i), 2)
	}
	// These are the one key, the parents, and the group of 10.1 if it has no room.
	if bound := 2 * (1 + parents + 1); total > bound || total < parents {
		t.Errorf("one network got %d units, want at most %d", total, bound)
	}
}

func TestRequestsThatShareABudgetInOneCallPayTogether(t *testing.T) {
	ctx := context.Background()
	everyone := func(key string) (string, bool) { return "everyone", key != "everyone" }
	for _, limit := range cappedLimits {
		small, large := cappedRule(t, limit), cappedRule(t, limit)
		engine := weir.NewSharingMemory(weir.MemoryOptions{Clock: still, Parent: everyone})
		if d, err := engine.Take(ctx, small.For("a", 1), large.For("b", 2)); err != nil || d.Allowed {
			t.Fatalf("%v: 3 of 2 shared units: got %+v and %v, want a refusal", limit, d, err)
		}
		if d, err := engine.Take(ctx, small.For("a", 1), large.For("b", 1)); err != nil || !d.Allowed || d.Remaining != 0 {
			t.Fatalf("%v: 2 of 2 shared units: got %+v and %v, want both", limit, d, err)
		}
		if n := unitsOf(t, engine, small, "c", 3); n != 0 {
			t.Errorf("%v: %d more units of a budget that is used up", limit, n)
		}
		if err := engine.Memory.Reset(ctx, small.For("a", 0)); err != nil {
			t.Fatal(err)
		}
		if n := unitsOf(t, engine, small, "a", 1); n != 0 {
			t.Errorf("%v: resetting a key gave back what others share", limit)
		}
		if _, err := engine.Return(ctx, small.For("a", 1)); err != nil {
			t.Fatal(err)
		}
		if n := unitsOf(t, engine, small, "b", 2); n != 1 {
			t.Errorf("%v: %d units after one came back, want 1", limit, n)
		}
	}
}

func TestRoomComesBackWhenKeysAreIdle(t *testing.T) {
	for _, limit := range cappedLimits {
		now := still()
		rule := cappedRule(t, limit)
		engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now }, MaxKeys: 640})
		for i := range 5000 {
			unitsOf(t, engine, rule, fmt.Sprint("old", i), 1)
		}
		now += 3 * 24 * int64(time.Hour)
		full := 0
		for i := range 20_000 {
			now += int64(time.Millisecond)
			if n := unitsOf(t, engine, rule, fmt.Sprint("new", i%320), 1); n == 1 {
				full++
			}
		}
		// Each of the 320 keys has two units of its own, except those whose shard is full of other keys: at least
		// nine of ten.
		if full < 2*320*9/10 {
			t.Errorf("%v: 320 keys got %d units where idle keys made room, want nearly %d", limit, full, 2*320)
		}
		if evicted := engine.Stats().Evicted; evicted < 320 {
			t.Errorf("%v: %d evicted, want some of the old keys", limit, evicted)
		}
	}
}

func TestOverflowIsLoggedAtMostOnceAMinute(t *testing.T) {
	now := still()
	var out bytes.Buffer
	rule := cappedRule(t, cappedLimits[0])
	engine := weir.NewMemory(weir.MemoryOptions{
		Clock: func() int64 { return now }, MaxKeys: 1,
		Logger: slog.New(slog.NewTextHandler(&out, nil)),
	})
	for i := range 6000 { // 100 a second, for a minute
		unitsOf(t, engine, rule, fmt.Sprint(i), 1)
		now += int64(10 * time.Millisecond)
	}
	now += int64(time.Second) // the first keys may have found room
	for i := range 100 {
		unitsOf(t, engine, rule, fmt.Sprint("later", i), 1)
	}
	if lines := strings.Count(out.String(), "\n"); lines != 2 || !strings.Contains(out.String(), "rule=r") {
		t.Errorf("got %d lines in a minute and a second, want 2 that name the rule:\n%s", lines, &out)
	}
}

func TestSharedStatesAreInTheSnapshot(t *testing.T) {
	for _, limit := range cappedLimits {
		rule := cappedRule(t, limit)
		options := weir.MemoryOptions{Clock: still, MaxKeys: 100}
		engine := weir.NewMemory(options)
		total := 0
		for i := range 5000 {
			total += unitsOf(t, engine, rule, fmt.Sprint(i), 2)
		}
		var file bytes.Buffer
		if err := engine.Save(&file); err != nil {
			t.Fatal(err)
		}
		loaded, err := weir.LoadMemory(&file, options)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := loaded.Stats(), engine.Stats(); got.Keys != want.Keys || got.Shared != want.Shared {
			t.Errorf("%v: loaded %d keys and %d shared, saved %d and %d", limit, got.Keys, got.Shared, want.Keys, want.Shared)
		}
		for i := range 5000 {
			total += unitsOf(t, loaded, rule, fmt.Sprint(i), 1)
		}
		if bound := 2 * (100 + groups); total > bound {
			t.Errorf("%v: %d units before and after a restart, want at most %d", limit, total, bound)
		}
	}
}

func TestTheLogOfASharedBudgetIsWrittenOnce(t *testing.T) {
	rule := cappedRule(t, weir.SlidingLog{Rate: weir.PerDay(10)})
	everyone := func(key string) (string, bool) { return "everyone", key != "everyone" }
	engine := weir.NewSharingMemory(weir.MemoryOptions{Clock: still, Parent: everyone})
	d, err := engine.Take(context.Background(), rule.For("a", 2), rule.For("b", 3))
	if err != nil || !d.Allowed || d.Remaining != 5 {
		t.Fatalf("2 and 3 of 10 shared units: got %+v and %v, want 5 remaining", d, err)
	}
	if n := unitsOf(t, engine, rule, "c", 10); n != 5 {
		t.Errorf("got %d more units, want 5", n)
	}
}

func TestWhatWritesNothingTakesNoRoomFromLogs(t *testing.T) {
	ctx := context.Background()
	rule := cappedRule(t, weir.SlidingLog{Rate: weir.PerDay(2)})
	engine := weir.NewMemory(weir.MemoryOptions{Clock: still, MaxKeys: 64})
	for i := range 1000 {
		if _, err := engine.Peek(ctx, rule.For(fmt.Sprint("peek", i), 1)); err != nil {
			t.Fatal(err)
		}
		if _, err := engine.Take(ctx, rule.For(fmt.Sprint("too much", i), 3)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 500 {
		unitsOf(t, engine, rule, fmt.Sprint("reset", i), 1)
		if err := engine.Reset(ctx, rule.For(fmt.Sprint("reset", i), 0)); err != nil {
			t.Fatal(err)
		}
	}
	if stats := engine.Stats(); stats.Keys != 0 || stats.Overflow != 0 {
		t.Errorf("%d keys and %d without room after nothing was kept", stats.Keys, stats.Overflow)
	}
}
