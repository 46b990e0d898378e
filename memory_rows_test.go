package weir_test

import (
	"context"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

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
