package weir_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"slices"
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

// BenchmarkMemoryTakeOfSeveral measures decisions on several limits: of one key, and of rules with a key each.
func BenchmarkMemoryTakeOfSeveral(b *testing.B) {
	limits := map[string]weir.Limit{
		"allowed": weir.TokenBucket{Rate: weir.PerSecond(1e9), Burst: 1e9}, "denied": weir.TokenBucket{Rate: weir.PerDay(1), Burst: 1},
		"window": weir.FixedWindow{Rate: weir.PerDay(1e9)},
	}
	for _, c := range []struct {
		name  string
		rules [][]string // the limits of each rule
	}{
		{"one", [][]string{{"allowed"}}},
		{"two limits", [][]string{{"allowed", "window"}}},
		{"two limits, denied", [][]string{{"denied", "window"}}},
		{"two keys", [][]string{{"allowed"}, {"window"}}},
		{"two keys, denied", [][]string{{"denied"}, {"window"}}},
		{"four keys", [][]string{{"allowed"}, {"window"}, {"allowed"}, {"window"}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var requests []weir.Request
			for i, names := range c.rules {
				var all []weir.Limit
				for _, name := range names {
					all = append(all, limits[name])
				}
				requests = append(requests, mustRule(b, "rule"+strconv.Itoa(i), all...).For("user:"+strconv.Itoa(i), 1))
			}
			engine, ctx := weir.NewMemory(weir.MemoryOptions{}), context.Background()
			b.ReportAllocs()
			for b.Loop() {
				_, _ = engine.Take(ctx, requests...)
			}
		})
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

func BenchmarkAllowBesideWait(b *testing.B) {
	lim := mustNew(b, weir.TokenBucket{Rate: weir.PerSecond(1_000_000_000), Burst: weir.MaxCount})
	for b.Loop() {
		if !lim.Allow() {
			b.Fatal("refused")
		}
	}
}

func BenchmarkWaitUncontended(b *testing.B) {
	lim := mustNew(b, weir.TokenBucket{Rate: weir.PerSecond(1_000_000_000), Burst: weir.MaxCount})
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if err := lim.Wait(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkJoinAndLeave measures a caller that joins an empty line and leaves it.
func BenchmarkJoinAndLeave(b *testing.B) {
	for name, wait := range joinsAndLeaves(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if wait() == nil {
					b.Fatal("granted")
				}
			}
		})
	}
}

// BenchmarkWaitersReleased releases 10,000 waiting callers at 1e6/s: 10 ms if nothing falls behind. The clock runs
// from the first release to the last return.
func BenchmarkWaitersReleased(b *testing.B) {
	const waiters, rate = 10_000, 1_000_000
	var took time.Duration
	for range b.N {
		took += releaseAll(b, waiters, rate)
	}
	b.ReportMetric(float64(waiters*b.N)/took.Seconds(), "releases/s")
	b.ReportMetric(0, "ns/op")
}

func releaseAll(b *testing.B, waiters, rate int64) time.Duration {
	lim := mustNew(b, weir.TokenBucket{Rate: weir.PerSecond(rate), Burst: 1})
	lim.Record(100 * rate) // no release before all have come
	var all sync.WaitGroup
	for range waiters {
		all.Go(func() {
			if err := lim.Wait(b.Context()); err != nil {
				b.Error(err)
			}
		})
	}
	for int64(lim.WaitStats().Waiting) < waiters {
		runtime.Gosched()
	}
	start := time.Now()
	lim.Return(100 * rate) // the first goes in 1 µs
	all.Wait()
	return time.Since(start)
}

// BenchmarkSustainedWaiters keeps a thousand callers waiting at 1e6/s.
func BenchmarkSustainedWaiters(b *testing.B) {
	const callers, rate = 1000, 1_000_000
	lim := mustNew(b, weir.TokenBucket{Rate: weir.PerSecond(rate), Burst: 1})
	var all sync.WaitGroup
	start := time.Now()
	for i := range callers {
		all.Go(func() {
			for range (b.N + callers - 1 - i) / callers {
				if err := lim.Wait(b.Context()); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "releases/s")
}

// BenchmarkWakeUpLateness measures how long after its due instant a single caller at 1,000/s returns.
func BenchmarkWakeUpLateness(b *testing.B) {
	lim := mustNew(b, weir.TokenBucket{Rate: weir.PerSecond(1000), Burst: 1})
	lim.Allow()
	var late []time.Duration
	for range b.N {
		due := time.Now().Add(lim.Peek(1).RetryAfter)
		if err := lim.Wait(b.Context()); err != nil {
			b.Fatal(err)
		}
		late = append(late, max(0, time.Since(due)))
	}
	slices.Sort(late)
	b.ReportMetric(float64(late[len(late)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(late[len(late)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64(late[len(late)-1].Microseconds()), "worst-µs")
}
