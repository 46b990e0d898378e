package weir_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/weirflow/weir"
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
	if stats.Keys != 5 || stats.Bytes <= 0 || stats.Overflow != 0 || stats.MaxKeys != weir.DefaultMaxKeys {
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
	if got, want := fmt.Sprint(engine.Stats().Rules), "[{one 3 2 0} {two 3 0 0}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// zipf asks for keys so that the i-th key comes 1/(i+1) as often as the first.
func zipf(engine *weir.Memory, rule *weir.Rule, keys, decisions int) map[string]int {
	random := rand.New(rand.NewPCG(1, 2))
	z := rand.NewZipf(random, 1.2, 1, uint64(keys-1))
	asked := map[string]int{}
	for range decisions {
		key := fmt.Sprint("user", z.Uint64())
		asked[key]++
		_, _ = engine.Take(context.Background(), rule.For(key, 1))
	}
	return asked
}

func TestTopFindsTheHeavyKeysOfAStream(t *testing.T) {
	rule, _ := weir.NewRule("r", weir.TokenBucket{Rate: weir.PerDay(1), Burst: 20_000})
	engine := weir.NewMemory(weir.MemoryOptions{Clock: still})
	asked := zipf(engine, rule, 100_000, 1_000_000)
	busiest, refused := engine.Top(20)
	if len(busiest) != 20 {
		t.Fatalf("%d keys among the busiest, want 20", len(busiest))
	}
	found := map[string]weir.KeyCount{}
	for _, k := range busiest {
		found[k.Key] = k
	}
	for i := range 8 {
		key := fmt.Sprint("user", i)
		k, want := found[key], uint64(asked[key])
		// One decision in 128 is a sample; the bound is four standard deviations.
		slack := uint64(4 * 12 * sqrt(asked[key]))
		if k.Rule != "r" || k.Count > want+k.Overcount+slack || k.Count+slack < want {
			t.Errorf("%s was asked %d times, got %+v, want it within %d", key, want, k, slack)
		}
	}
	if len(refused) == 0 || refused[0].Key != "user0" {
		t.Errorf("most refused are %v, want user0 first", refused)
	}
	for _, k := range refused {
		if asked[k.Key] <= 20_000 {
			t.Errorf("%s was refused nothing, and is among the most refused", k.Key)
		}
	}
}

func sqrt(n int) (root int) {
	for root*root < n {
		root++
	}
	return root
}

func TestTopForgetsOldDecisions(t *testing.T) {
	now := still()
	rule, _ := weir.NewRule("r", weir.TokenBucket{Rate: weir.PerDay(1)})
	engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now }})
	for range 100_000 {
		_, _ = engine.Take(context.Background(), rule.For("yesterday", 1))
	}
	now += int64(24 * time.Hour)
	for range 1000 {
		_, _ = engine.Take(context.Background(), rule.For("today", 1))
	}
	if busiest, _ := engine.Top(1); len(busiest) != 1 || busiest[0].Key != "today" {
		t.Errorf("the busiest key is %v, want today", busiest)
	}
	if busiest, refused := engine.Top(0); len(busiest)+len(refused) != 0 {
		t.Errorf("the top 0 are %v and %v", busiest, refused)
	}
}

func TestSamplesAllocateNothing(t *testing.T) {
	ctx := context.Background()
	rule, _ := weir.NewRule("r", weir.TokenBucket{Rate: weir.PerDay(1)})
	engine := weir.NewMemory(weir.MemoryOptions{})
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprint("some user ", i)
		_, _ = engine.Take(ctx, rule.For(keys[i], 1))
	}
	i := 0
	allocations := testing.AllocsPerRun(20, func() {
		for range 20_000 {
			_, _ = engine.Take(ctx, rule.For(keys[i%len(keys)], 1))
			i++
		}
	})
	if allocations > 20 { // names longer than those before take their places
		t.Errorf("%v allocations in 20000 decisions, want next to none", allocations)
	}
}
