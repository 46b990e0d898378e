package weir_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// BenchmarkMemoryTake measures a decision of the memory engine: admitted and refused, on one key and on many, by one
// goroutine and by one on each core.
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
		{"elevenths/denied/1", weir.TokenBucket{Rate: weir.PerHour(11), Burst: 1}, 1},
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
		bench := sync.OnceValue(func() *takeBench { return newTakeBench(b, c.limit, c.keys) })
		b.Run(c.name, func(b *testing.B) {
			next := bench().next(0)
			for b.Loop() {
				next()
			}
		})
		b.Run(c.name+"/parallel", func(b *testing.B) {
			bench := bench()
			b.ResetTimer()
			b.RunParallel(func(p *testing.PB) {
				next := bench.next(rand.IntN(len(bench.keys)))
				for p.Next() {
					next()
				}
			})
		})
	}
}

// takeBench is an engine in which all keys are known.
type takeBench struct {
	engine *weir.Memory
	rule   *weir.Rule
	keys   []string
}

func newTakeBench(b *testing.B, limit weir.Limit, keys int) *takeBench {
	t := &takeBench{engine: weir.NewMemory(weir.MemoryOptions{}), rule: mustRule(b, "r", limit), keys: make([]string, keys)}
	for i := range t.keys {
		t.keys[i] = "user:" + strconv.Itoa(i)
		_, _ = t.engine.Take(context.Background(), t.rule.For(t.keys[i], 1))
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(keys, func(i, j int) { t.keys[i], t.keys[j] = t.keys[j], t.keys[i] })
	return t
}

// next takes one unit of each key in turn, from the i-th key on.
func (t *takeBench) next(i int) func() {
	ctx := context.Background()
	return func() {
		_, _ = t.engine.Take(ctx, t.rule.For(t.keys[i], 1))
		if i++; i == len(t.keys) {
			i = 0
		}
	}
}

// BenchmarkMemoryTakeNeverSeen measures a decision on a new key, so that the engine grows all the time.
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
