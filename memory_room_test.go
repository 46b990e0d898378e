package weir_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// docs/memory.md describes a new key that comes during a flood: it shares a limit while the flood lasts, and has its
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
			if n := shares(30, 5000); n < 29 {
				t.Errorf("during the flood the key shared a budget %d times of 30, want 29 at least", n)
			}
			if n := shares(30, 0); n == 0 || n > 8 {
				t.Errorf("after the flood the key shared a budget %d times of 30, want a few, until keys are idle", n)
			}
		})
	}
}
