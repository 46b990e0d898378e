package weir_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// oftenAskedLimits have room for all takes of a test.
var oftenAskedLimits = []weir.Limit{
	weir.TokenBucket{Rate: weir.PerHour(1 << 30)},
	weir.TokenBucket{Rate: weir.PerHour(3), Burst: 1},
	weir.LeakyBucket{Rate: weir.PerHour(7), Queue: 1 << 30, NoDelay: 1 << 30},
	weir.FixedWindow{Rate: weir.PerDay(1 << 30)},
	weir.SlidingWindow{Rate: weir.PerDay(1 << 30)},
	weir.SlidingLog{Rate: weir.PerDay(50)},
	weir.SlidingLog{Rate: weir.PerDay(50), CountDenied: true},
}

func wantNoAllocations(t *testing.T, what string, ask func()) {
	t.Helper()
	for range 200 { // a log grows to its full length first
		ask()
	}
	if got := testing.AllocsPerRun(500, ask); got != 0 {
		t.Errorf("%s: got %v allocations, want 0", what, got)
	}
}

func TestLimiterAllocatesNothing(t *testing.T) {
	for _, limit := range oftenAskedLimits {
		limiter := mustLimit(t, limit)
		wantNoAllocations(t, limit.String()+": Allow", func() { limiter.Allow() })
		wantNoAllocations(t, limit.String()+": Take", func() { limiter.Take(1) })
		wantNoAllocations(t, limit.String()+": Peek", func() { limiter.Peek(1) })
		at := time.Now()
		wantNoAllocations(t, limit.String()+": TakeAt", func() {
			at = at.Add(time.Second)
			limiter.TakeAt(at, 1)
		})
	}
}

func TestMemoryTakeOfAKnownKeyAllocatesNothing(t *testing.T) {
	ctx := context.Background()
	engine := weir.NewMemory(weir.MemoryOptions{})
	for _, limit := range oftenAskedLimits {
		rule, err := weir.NewRule("r "+limit.String(), limit)
		if err != nil {
			t.Fatal(err)
		}
		wantNoAllocations(t, limit.String()+": Memory.Take", func() {
			if _, err := engine.Take(ctx, rule.For("alice", 1)); err != nil {
				t.Fatal(err)
			}
		})
		wantNoAllocations(t, limit.String()+": Memory.Peek", func() {
			if _, err := engine.Peek(ctx, rule.For("alice", 1)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestMemoryTakeOfASmallCallAllocatesNothing(t *testing.T) {
	ctx := context.Background()
	engine := weir.NewMemory(weir.MemoryOptions{})
	two, err := weir.NewRule("two", weir.TokenBucket{Rate: weir.PerHour(1 << 30)}, weir.SlidingLog{Rate: weir.PerDay(50)})
	if err != nil {
		t.Fatal(err)
	}
	one, err := weir.NewRule("one", weir.FixedWindow{Rate: weir.PerDay(1 << 30)})
	if err != nil {
		t.Fatal(err)
	}
	wantNoAllocations(t, "Memory.Take of two rules, one of them twice", func() {
		if _, err := engine.Take(ctx, two.For("alice", 1), one.For("bob", 1), two.For("alice", 1)); err != nil {
			t.Fatal(err)
		}
	})
}

// TestFloodOfDeniedAttemptsCostsNoMemory hammers a small log, in both modes,
// and measures the heap.
func TestFloodOfDeniedAttemptsCostsNoMemory(t *testing.T) {
	for _, counts := range []bool{false, true} {
		limit := weir.SlidingLog{Rate: weir.PerHour(100), CountDenied: counts}
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			limiter := mustLimit(t, limit)
			now := int64(0)
			flood := func(attempts int) (denied int) {
				for range attempts {
					now++
					if !limiter.TakeAt(time.Unix(0, now), 1).Allowed {
						denied++
					}
				}
				return denied
			}
			flood(1000)
			before := heapInUse()
			if denied := flood(300_000); denied != 300_000 {
				t.Fatalf("%d of 300000 were denied, want all", denied)
			}
			// Without a bound it would be 16 bytes an attempt: 4.8 MB.
			if grown := heapInUse() - before; grown > 64<<10 {
				t.Errorf("the heap grew by %d bytes under 300000 denied attempts, want under 64 KiB", grown)
			}
			runtime.KeepAlive(limiter)
		})
	}
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
