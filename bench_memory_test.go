package weir_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/weirflow/weir"
)

// BenchmarkMemoryTake is a decision of the memory engine: admitted and refused,
// on one key and on many, by one goroutine and by one on each core.
func BenchmarkMemoryTake(b *testing.B) {
	for _, c := range []struct {
		name  string
		limit weir.Limit
		keys  int
	}{
		{"allowed/1", weir.TokenBucket{Rate: weir.PerSecond(1e9)}, 1},
		{"denied/1", weir.TokenBucket{Rate: weir.PerDay(1)}, 1},
		{"allowed/10k", weir.TokenBucket{Rate: weir.PerSecond(1e9)}, 10_000},
		{"denied/10k", weir.TokenBucket{Rate: weir.PerDay(1)}, 10_000},
		{"allowed/1M", weir.TokenBucket{Rate: weir.PerSecond(1e9)}, 1_000_000},
	} {
		rule, err := weir.NewRule("r", c.limit)
		if err != nil {
			b.Fatal(err)
		}
		keys, engine, ctx := make([]string, c.keys), weir.NewMemory(weir.MemoryOptions{}), context.Background()
		for i := range keys {
			keys[i] = "user:" + strconv.Itoa(i)
			_, _ = engine.Take(ctx, rule.For(keys[i], 1))
		}
		rand.New(rand.NewPCG(1, 1)).Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		b.Run(c.name, func(b *testing.B) {
			i := 0
			for b.Loop() {
				_, _ = engine.Take(ctx, rule.For(keys[i], 1))
				if i++; i == len(keys) {
					i = 0
				}
			}
		})
		b.Run(c.name+"/parallel", func(b *testing.B) {
			b.RunParallel(func(p *testing.PB) {
				i := rand.IntN(len(keys))
				for p.Next() {
					_, _ = engine.Take(ctx, rule.For(keys[i], 1))
					if i++; i == len(keys) {
						i = 0
					}
				}
			})
		})
	}
}
