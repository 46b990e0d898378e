package weir_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/limittest"
)

func TestStatsCountEveryDecisionOfEveryRule(t *testing.T) {
	const callers, each = 8, 3000
	ctx := context.Background()
	login, _ := weir.NewRule("login", weir.TokenBucket{Rate: weir.PerDay(1), Burst: 100}, weir.FixedWindow{Rate: weir.PerDay(1000)})
	tenant, _ := weir.NewRule("tenant", weir.SlidingLog{Rate: weir.PerDay(callers * each)})
	engine := weir.NewMemory(weir.MemoryOptions{})
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				_, _ = engine.Take(ctx, login.For("alice", 1))
				_, _ = engine.Take(ctx, login.For("bob", 0), tenant.For("acme", 1))
				_, _ = engine.Peek(ctx, login.For("alice", 1))
			}
		})
	}
	wg.Wait()
	stats := engine.Stats()
	want := []weir.RuleStats{
		{Rule: "login", Decisions: 2 * callers * each, Refusals: callers*each - 100},
		{Rule: "tenant", Decisions: callers * each},
	}
	if fmt.Sprint(stats.Rules) != fmt.Sprint(want) {
		t.Errorf("got  %+v\nwant %+v", stats.Rules, want)
	}
	// alice and bob under two limits, acme under one.
	if stats.Keys != 5 || stats.Bytes <= 0 || stats.Overflow != 0 || stats.MaxKeys != 10_000_000 {
		t.Errorf("got %+v, want 5 keys, some bytes, no overflow and the default cap", stats)
	}
}

func TestARefusedCallIsARefusalOfTheRuleItNames(t *testing.T) {
	ctx := context.Background()
	one, _ := weir.NewRule("one", weir.TokenBucket{Rate: weir.PerDay(1)})
	two, _ := weir.NewRule("two", weir.TokenBucket{Rate: weir.PerDay(2)})
	engine := weir.NewMemory(weir.MemoryOptions{})
	for range 3 {
		_, _ = engine.Take(ctx, two.For("a", 1), one.For("a", 1))
	}
	if got, want := fmt.Sprint(engine.Stats().Rules), "[{one 3 2 0 0 0} {two 3 0 0 0 0}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// slotsForever are released only by their holders.
var slotsForever = weir.Concurrency{Slots: 2}

// flood asks for a slot of each of n new keys, and returns the keys that got one. The engine refuses all others for
// want of room.
func flood(t *testing.T, e weir.Engine, rule *weir.Rule, name string, n int) (held []string) {
	t.Helper()
	for i := range n {
		key := fmt.Sprint(name, i)
		d, err := e.Take(t.Context(), rule.For(key, 1))
		switch {
		case err == nil && d.Allowed:
			held = append(held, key)
		case !errors.Is(err, weir.ErrNoRoom):
			t.Fatalf("key %s: got %+v and %v, want a slot or ErrNoRoom", key, d, err)
		}
	}
	return held
}

func giveBack(t *testing.T, e weir.Engine, rule *weir.Rule, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if _, err := e.Return(t.Context(), rule.For(key, 1)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNewKeysAreRefusedWithTheReasonWhereSlotsWithoutALeaseFillTheTable(t *testing.T) {
	const most = 640
	var log bytes.Buffer
	rule, other := cappedRule(t, slotsForever), cappedRule(t, cappedLimits[0])
	engine := weir.NewMemory(weir.MemoryOptions{Clock: still, MaxKeys: most, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	held := flood(t, engine, rule, "flood", 20*most)
	if len(held) != most {
		t.Fatalf("%d keys hold slots, want %d", len(held), most)
	}
	for verb, ask := range map[string]func(context.Context, ...weir.Request) (weir.Decision, error){
		"take": engine.Take, "peek": engine.Peek, "record": engine.Record,
	} {
		_, err := ask(t.Context(), other.For("budget", 1), rule.For("new", 1))
		want := fmt.Sprintf(`weir: %s: rule "r": no room for another key: all %d keys that MaxKeys allows hold slots without a lease`, verb, most)
		if err == nil || err.Error() != want || weir.WasCounted(err) != weir.CountedNo {
			t.Errorf("a new key: got %v, want %s, and that nothing was counted", err, want)
		}
	}
	if n := unitsOf(t, engine, other, "budget", 3); n != 2 {
		t.Errorf("%d units beside slots that were refused, want both: all or nothing", n)
	}
	if n := unitsOf(t, engine, rule, held[0], 2); n != 1 {
		t.Errorf("a key that holds a slot of two got %d more, want 1", n)
	}
	for _, cost := range []int64{0, -1} {
		if d, err := signed(t.Context(), engine, rule.For("new", cost)); err != nil || !d.Allowed || d.Remaining != 2 {
			t.Errorf("recording %d for a key that holds nothing: got %+v and %v, want 2 remaining", cost, d, err)
		}
	}
	if s := engine.Stats(); s.Keys != most+1 || s.Shared != 0 || s.Overflow != 0 {
		t.Errorf("%d keys, %d shared states, %d overflown, want %d and none", s.Keys, s.Shared, s.Overflow, most+1)
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "slots without a lease keep theirs") {
		t.Errorf("the log says %q, want one line", got)
	}
}

// Every slot that comes back makes room, also after a restart: no slot is held without a holder. The first does so at
// once; for the rest a full shard looks through a segment each millisecond.
func TestSlotsWithoutALeaseThatComeBackMakeRoomForNewKeys(t *testing.T) {
	const most = 640
	rule, now := cappedRule(t, slotsForever), still()
	ticking := func() int64 { now += int64(10 * time.Microsecond); return now }
	options := weir.MemoryOptions{Clock: ticking, MaxKeys: most}
	engine := weir.NewMemory(options)
	for round := range 3 {
		held := flood(t, engine, rule, fmt.Sprint("round", round, "-"), 20*most)
		if len(held) != most {
			t.Fatalf("round %d: %d keys hold slots, want %d", round, len(held), most)
		}
		var file bytes.Buffer
		if err := engine.Save(&file); err != nil {
			t.Fatal(err)
		}
		loaded, err := weir.LoadMemory(&file, options)
		if err != nil {
			t.Fatal(err)
		}
		engine = loaded
		if n := len(flood(t, engine, rule, "before", 20*most)); n != 0 {
			t.Fatalf("round %d: %d new keys got slots of a full table", round, n)
		}
		giveBack(t, engine, rule, held[0])
		one := flood(t, engine, rule, "after", 20*most)
		if len(one) != 1 {
			t.Fatalf("round %d: %d new keys got slots after one came back", round, len(one))
		}
		giveBack(t, engine, rule, append(held[1:], one...)...)
	}
}

func TestReservedSlotsWithoutALeaseMakeRoomWhenCancelled(t *testing.T) {
	rule := cappedRule(t, slotsForever)
	engine := weir.NewMemory(weir.MemoryOptions{Clock: still, MaxKeys: 64})
	flood(t, engine, rule, "flood", 64*20)
	if _, err := engine.Reserve(t.Context(), rule.For("new", 1)); !errors.Is(err, weir.ErrNoRoom) {
		t.Fatalf("reserving in a full table: got %v, want ErrNoRoom", err)
	}
	held, err := engine.Reserve(t.Context(), rule.For("flood0", 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	giveBack(t, engine, rule, "flood0")
	if n := len(flood(t, engine, rule, "new", 64*20)); n != 1 {
		t.Errorf("%d new keys got slots after those of one came back, want 1", n)
	}
}

// Slots with a lease come back in time whatever their holders do, so they are shared.
func TestSlotsWithALeaseAreSharedWhereKeysFindNoRoom(t *testing.T) {
	now := still()
	rule := cappedRule(t, weir.Concurrency{Slots: 2, Lease: 2e9})
	engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now }, MaxKeys: 64})
	count := func(name string) (n int) {
		for i := range 64 * 20 {
			n += unitsOf(t, engine, rule, fmt.Sprint(name, i), 3)
		}
		return n
	}
	if got, bound := count("flood"), 2*(64+groups); got > bound || got < 2*64 {
		t.Errorf("the flood got %d slots, want %d to %d", got, 2*64, bound)
	}
	now += 2e9
	if got := count("later"); got < 2*64 {
		t.Errorf("new keys got %d slots after all leases ended, want %d or more", got, 2*64)
	}
}

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

// docs/reference/memory.md describes a new key that comes during a flood: it shares a limit while the flood lasts, and has its
// own some time after.
func TestRoomComesBackAfterAFloodAndNotDuringIt(t *testing.T) {
	for _, limit := range []weir.Limit{
		weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 5},
		weir.SlidingLog{Rate: weir.Per(5, 5*time.Second)},
	} {
		t.Run(limit.String(), func(t *testing.T) {
			now, flooded := still(), 0
			rule := cappedRule(t, limit)
			engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now }, MaxKeys: 640})
			// shares asks for a new key once a second, up to n times, with a flood in between, and counts how often
			// the key shared a limit.
			shares := func(n, flood int) (shared int) {
				for range n {
					for range flood {
						now += int64(time.Second) / int64(flood)
						flooded++
						unitsOf(t, engine, rule, fmt.Sprint("flood", flooded), 5)
					}
					if flood == 0 {
						now += int64(time.Second)
					}
					before := engine.Stats().Overflow
					unitsOf(t, engine, rule, "new", 1)
					shared += int(engine.Stats().Overflow - before)
				}
				return shared
			}
			shares(1, 20_000)
			rounds := 30
			if testing.Short() {
				rounds = 6
			}
			if n := shares(rounds, 3000); n < rounds-1 {
				t.Errorf("during the flood the key shared a budget %d times of %d, want %d at least", n, rounds, rounds-1)
			}
			if n := shares(30, 0); n == 0 || n > 8 {
				t.Errorf("after the flood the key shared a budget %d times of 30, want a few, until keys are idle", n)
			}
		})
	}
}

func TestDecisionsOfFineRatesAndSeveralLimitsDoNotAllocate(t *testing.T) {
	day := weir.FixedWindow{Rate: weir.PerDay(1 << 20)}
	for _, limits := range [][]weir.Limit{
		{weir.TokenBucket{Rate: weir.PerSecond(333), Burst: 1 << 40}},
		{weir.TokenBucket{Rate: weir.PerHour(1 << 30)}},
		{weir.TokenBucket{Rate: weir.PerSecond(999_983), Burst: 1}},
		{weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 1 << 40}, day},
		{weir.TokenBucket{Rate: weir.PerSecond(333)}, day, weir.SlidingWindow{Rate: weir.PerMinute(3)}},
	} {
		clock := func() int64 { return int64(50 * 365 * 24 * time.Hour) }
		rule, ctx := mustRule(t, "r", limits...), context.Background()
		memory := weir.NewMemory(weir.MemoryOptions{Clock: clock})
		asks := map[string]func(){"Memory": func() { _, _ = memory.Take(ctx, rule.For("k", 1)) }}
		if len(limits) == 1 {
			keyed, err := weir.NewKeyedWith[string](limits[0], weir.Options{Clock: clock})
			if err != nil {
				t.Fatal(err)
			}
			limiter := mustLimit(t, limits[0])
			asks["Keyed"], asks["Limiter"] = func() { keyed.Allow("k") }, func() { limiter.Allow() }
		}
		for name, ask := range asks {
			ask()
			if n := testing.AllocsPerRun(200, ask); n > 0 {
				t.Errorf("%s with %v allocates %v times in a decision on a known key", name, limits, n)
			}
		}
	}
}

func TestDecisionsOnSeveralKeysDoNotAllocate(t *testing.T) {
	memory, ctx := weir.NewMemory(weir.MemoryOptions{}), context.Background()
	first := mustRule(t, "first", weir.TokenBucket{Rate: weir.PerSecond(333)}, weir.FixedWindow{Rate: weir.PerDay(1 << 20)})
	second := mustRule(t, "second", weir.TokenBucket{Rate: weir.PerSecond(10)})
	take := func() { _, _ = memory.Take(ctx, first.For("address", 1), second.For("user", 2)) }
	take()
	if n := testing.AllocsPerRun(200, take); n > 0 {
		t.Errorf("a decision on two known keys allocates %v times", n)
	}
}

// This test goes back behind an instant at which words were evicted. Decisions on unknown words are made at that
// later instant, and must not evict states that are still in use at the clock's time.
func TestEvictionFollowsTheClockAndNotTheTimeOfTheDecision(t *testing.T) {
	const behind = int64(1_700_000_000_000_000_000)
	now := behind
	m := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now }})
	short := weir.Per(2, time.Second)
	gate := mustRule(t, "gate", weir.RateGate{Rate: short})
	both := mustRule(t, "both", weir.TokenBucket{Rate: short}, weir.RateGate{Rate: short})
	for i := range 50_000 { // of which many are forgotten on the way
		now = behind + int64(i)*int64(time.Millisecond)
		spend(t, m, mustRule(t, "both", weir.TokenBucket{Rate: short}).For(fmt.Sprint("early ", i), 1))
	}
	if m.Stats().Evicted == 0 {
		t.Fatal("no word was forgotten")
	}
	now = behind
	const keys = 200
	for i := range keys {
		spend(t, m, gate.For(fmt.Sprint("key ", i), 2))
	}
	for i := range 20_000 {
		spend(t, m, both.For(fmt.Sprint("late ", i), 1))
	}
	for i := range keys {
		d, err := m.Take(t.Context(), gate.For(fmt.Sprint("key ", i), 1))
		if err != nil || d.Allowed {
			t.Fatalf("key %d: got %+v and error %v while the clock stands after all was taken, want a refusal", i, d, err)
		}
	}
}

// This test releases leases in the decision that first stores the gate beside them, so that shards grow and search
// for idle states in the middle of it.
func TestEvictionSparesTheStatesOfTheSameDecision(t *testing.T) {
	m := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return 1_700_000_000_000_000_000 }})
	held := mustRule(t, "r", weir.Concurrency{Slots: 3, Lease: time.Minute})
	both := mustRule(t, "r", weir.RateGate{Rate: weir.PerSecond(5)}, weir.Concurrency{Slots: 3, Lease: time.Minute})
	for i := range 20_000 {
		key := fmt.Sprint("key ", i)
		spend(t, m, held.For(key, 2))
		if _, err := m.Return(t.Context(), both.For(key, 2)); err != nil {
			t.Fatal(err)
		}
		spend(t, m, both.For(key, 3))
		if d, err := m.Peek(t.Context(), held.For(key, 0)); err != nil || d.Remaining != 0 {
			t.Fatalf("key %d: got %+v, %v, want nothing to remain of 3 slots", i, d, err)
		}
	}
}

// One engine decides single requests on the fast path. Another decides the same requests beside a second one, on the
// slow path. The states are words, cells, and both in turn.
func TestTheFastPathDecidesLikeTheSlowPath(t *testing.T) {
	seed := randtest.Seed(t)
	var windows []weir.Limit // too many for the fast path
	for hours := range 4 {
		windows = append(windows, weir.FixedWindow{Rate: weir.Per(9, time.Duration(24+hours)*time.Hour)})
	}
	for name, limits := range map[string][]weir.Limit{
		"words":      {weir.TokenBucket{Rate: weir.PerSecond(3), Burst: 5}},
		"to and fro": {weir.TokenBucket{Rate: weir.PerSecond(11), Burst: 5}, weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 7}},
		"counts":     {weir.SlidingWindow{Rate: weir.Per(1<<29, time.Second)}, weir.SlidingWindow{Rate: weir.PerSecond(5)}},
		"logs":       {weir.SlidingLog{Rate: weir.PerSecond(5), Gap: 10 * time.Millisecond}, weir.SlidingLog{Rate: weir.PerSecond(3)}},
		"gates":      {weir.RateGate{Rate: weir.PerSecond(5)}},
		"cycles":     {weir.Cycle{Rate: weir.PerSecond(5)}, weir.Cycle{Rate: weir.PerSecond(9)}},
		"leases":     {weir.Concurrency{Slots: 5, Lease: time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			now := still()
			options := weir.MemoryOptions{Clock: func() int64 { return now }, MaxKeys: 2000}
			short := weir.NewMemory(options)
			long, err := weir.LoadMemory(bytes.NewReader(saved(t, short)), options) // of the same hash
			if err != nil {
				t.Fatal(err)
			}
			other := mustRule(t, "other", windows...).For("nothing of it", 0)
			for op := range randtest.Rounds(t, 8000, 800) {
				now += random.Int64N(int64(1500 * time.Microsecond)) // 6 s in all
				rule := mustRule(t, "r", limits[random.IntN(len(limits))])
				q := rule.For(fmt.Sprint(random.IntN(1+random.IntN(3000))), random.Int64N(4))
				if name == "counts" && random.IntN(3) == 0 {
					q.Cost <<= 23
				}
				lease := random.Uint64N(3)
				got, err := leased(t, short, weir.OpTake, lease, q)
				if err != nil {
					t.Fatal(err)
				}
				want, err := leased(t, long, weir.OpTake, lease, q, other)
				if err != nil || got.Allowed != want.Allowed || got.RetryAfter != want.RetryAfter {
					t.Fatalf("op %d: %+v: got %+v, want %+v and %v", op, q, got, want, err)
				}
				if got, want := answer(short, "peek", q), answer(long, "peek", q); got != want {
					t.Fatalf("op %d: after %+v: got %s, want %s", op, q, got, want)
				}
			}
			// Entries become wider at other moments on either path, and then lose idle keys.
			const idle = 30
			if s, l := short.Stats(), long.Stats(); max(s.Keys+len(windows)-l.Keys, l.Keys-s.Keys-len(windows)) > idle || s.Overflow != l.Overflow {
				t.Errorf("the fast path leaves %+v, the slow path %+v", s, l)
			}
		})
	}
}

func TestMemoryPassesTheSuiteAndItsVectors(t *testing.T) {
	limittest.Run(t, func(clock func() int64) weir.Engine {
		return weir.NewMemory(weir.MemoryOptions{Clock: clock})
	})
}

// This test runs random operations on enough keys that the engine evicts idle ones. Beside each key runs a Limiter,
// which never evicts. Every answer must be the same.
func TestMemoryEvictsNothingThatChangesAnAnswer(t *testing.T) {
	seed := randtest.Seed(t)
	for _, limit := range []weir.Limit{
		weir.TokenBucket{Rate: weir.PerSecond(3), Burst: 5},
		weir.LeakyBucket{Rate: weir.PerSecond(7), Queue: 4, NoDelay: 1},
		weir.FixedWindow{Rate: weir.PerSecond(5)},
		weir.SlidingWindow{Rate: weir.PerSecond(5)},
		weir.SlidingLog{Rate: weir.PerSecond(5), Gap: 10 * time.Millisecond},
		weir.SlidingLog{Rate: weir.PerSecond(5), CountDenied: true},
	} {
		t.Run(limit.String(), func(t *testing.T) {
			besideLimiters(t, limit, rand.New(rand.NewPCG(seed, 0)))
		})
	}
}

func besideLimiters(t *testing.T, limit weir.Limit, random *rand.Rand) {
	ctx := context.Background()
	now := int64(1_700_000_000_123_456_789)
	engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now }})
	rule, err := weir.NewRule("r", limit)
	if err != nil {
		t.Fatal(err)
	}
	limiters := map[string]*weir.Limiter{}
	for range randtest.Rounds(t, 15_000, 1500) {
		now += random.Int64N(int64(800 * time.Microsecond)) // 6 s in all: keys come, idle and return
		key := fmt.Sprint(random.IntN(4500))
		if random.IntN(2) == 0 {
			key = fmt.Sprint(random.IntN(20))
		}
		if limiters[key] == nil {
			limiters[key] = mustLimit(t, limit)
		}
		limiter, at, q := limiters[key], time.Unix(0, now), rule.For(key, random.Int64N(7))
		var got, want weir.Decision
		switch random.IntN(6) {
		case 0:
			q.Cost -= 3
			got, err = signed(ctx, engine, q)
			want = signedAt(limiter, at, q.Cost)
		case 1:
			got, err = engine.Peek(ctx, q)
			want = limiter.PeekAt(at, q.Cost)
		default:
			got, err = engine.Take(ctx, q)
			want = limiter.TakeAt(at, q.Cost)
		}
		want.Rule, want.Key = "r", key
		if err != nil || got != want {
			t.Fatalf("key %s cost %d at %d:\ngot  %+v and error %v\nwant %+v", key, q.Cost, now, got, err, want)
		}
	}
}
