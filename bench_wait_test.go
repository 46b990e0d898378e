package weir_test

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

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
	for int64(lim.Waiting()) < waiters {
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
