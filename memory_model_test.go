package weir_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/limittest"
)

func TestMemoryPassesTheSuiteAndItsVectors(t *testing.T) {
	limittest.Run(t, func(clock func() int64) weir.Engine {
		return weir.NewMemory(weir.MemoryOptions{Clock: clock})
	})
}

var seedFlag = flag.Uint64("seed", 0, "seed of the random tests; 0 takes a new one each time")

// This test runs random operations on enough keys that the engine evicts idle ones. Beside each key runs a Limiter,
// which never evicts. Every answer must be the same.
func TestMemoryEvictsNothingThatChangesAnAnswer(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	for _, limit := range []weir.Limit{
		weir.TokenBucket{Rate: weir.PerSecond(3), Burst: 5},
		weir.LeakyBucket{Rate: weir.PerSecond(7), Queue: 4, NoDelay: 1},
		weir.FixedWindow{Rate: weir.PerSecond(5)},
		weir.SlidingWindow{Rate: weir.PerSecond(5)},
		weir.SlidingLog{Rate: weir.PerSecond(5), Gap: 10 * time.Millisecond},
		weir.SlidingLog{Rate: weir.PerSecond(5), CountDenied: true},
	} {
		t.Run(limit.String(), func(t *testing.T) {
			t.Logf("repeat with -seed %d", seed)
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
	for range 30_000 {
		now += random.Int64N(int64(400 * time.Microsecond)) // 6 s in all: keys come, idle and return
		key := fmt.Sprint(random.IntN(9000))
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
