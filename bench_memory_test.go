package weir_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

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
		{"leaky/allowed/1", weir.LeakyBucket{Rate: weir.PerSecond(1e9), Queue: 1e9, NoDelay: 1e9}, 1},
		{"leaky/denied/1", weir.LeakyBucket{Rate: weir.PerDay(1)}, 1},
		{"sliding/allowed/1", weir.SlidingWindow{Rate: weir.PerHour(1e9)}, 1},
		{"sliding/denied/1", weir.SlidingWindow{Rate: weir.PerDay(1)}, 1},
		{"log/allowed/1", weir.SlidingLog{Rate: weir.Per(1000, time.Microsecond)}, 1},
		{"log/denied/1", weir.SlidingLog{Rate: weir.PerDay(1)}, 1},
		{"log/allowed/10k", weir.SlidingLog{Rate: weir.Per(1_000_000, 10*time.Millisecond)}, 10_000},
		{"log/denied/10k", weir.SlidingLog{Rate: weir.PerDay(1)}, 10_000},
		{"log/allowed/1M", weir.SlidingLog{Rate: weir.PerSecond(1_000_000)}, 1_000_000},
		{"gate/denied/1", weir.RateGate{Rate: weir.PerDay(1)}, 1},
		{"cycle/allowed/1", weir.Cycle{Rate: weir.PerHour(1e9)}, 1},
		{"concurrency/denied/1", weir.Concurrency{Slots: 1}, 1},
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

// BenchmarkMemoryTakeNeverSeen is a decision on a key that the engine has not
// seen: it grows all the time.
func BenchmarkMemoryTakeNeverSeen(b *testing.B) {
	for _, limit := range []weir.Limit{weir.TokenBucket{Rate: weir.PerDay(9)}, weir.SlidingLog{Rate: weir.PerDay(9)}} {
		b.Run(limit.String(), func(b *testing.B) {
			rule, err := weir.NewRule("r", limit)
			if err != nil {
				b.Fatal(err)
			}
			engine, ctx := weir.NewMemory(weir.MemoryOptions{}), context.Background()
			var all []byte
			for i := range b.N {
				all = binary.LittleEndian.AppendUint64(all, uint64(i))
			}
			keys := string(all)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				_, _ = engine.Take(ctx, rule.For(keys[8*i:8*i+8], 1))
			}
		})
	}
}
