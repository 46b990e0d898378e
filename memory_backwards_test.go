package weir_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// This test goes back behind an instant at which words were evicted. Decisions on unknown words are made at that
// later instant, and must not evict states that are still in use at the clock's time.
func TestEvictionFollowsTheClockAndNotTheTimeOfTheDecision(t *testing.T) {
	const behind = int64(1_700_000_000_000_000_000)
	now := behind
	m := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now }})
	short := weir.Per(2, time.Second)
	gate := mustRule(t, "gate", weir.RateGate{Rate: short})
	both := mustRule(t, "both", weir.TokenBucket{Rate: short}, weir.RateGate{Rate: short})
	for i := range 50_000 { // of which many are forgotten on the way
		now = behind + int64(i)*int64(time.Millisecond)
		spend(t, m, mustRule(t, "both", weir.TokenBucket{Rate: short}).For(fmt.Sprint("early ", i), 1))
	}
	if m.Stats().Evicted == 0 {
		t.Fatal("no word was forgotten")
	}
	now = behind
	const keys = 200
	for i := range keys {
		spend(t, m, gate.For(fmt.Sprint("key ", i), 2))
	}
	for i := range 20_000 {
		spend(t, m, both.For(fmt.Sprint("late ", i), 1))
	}
	for i := range keys {
		d, err := m.Take(t.Context(), gate.For(fmt.Sprint("key ", i), 1))
		if err != nil || d.Allowed {
			t.Fatalf("key %d: got %+v and error %v while the clock stands after all was taken, want a refusal", i, d, err)
		}
	}
}

// This test releases leases in the decision that first stores the gate beside them, so that shards grow and search
// for idle states in the middle of it.
func TestEvictionSparesTheStatesOfTheSameDecision(t *testing.T) {
	m := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return 1_700_000_000_000_000_000 }})
	held := mustRule(t, "r", weir.Concurrency{Slots: 3, Lease: time.Minute})
	both := mustRule(t, "r", weir.RateGate{Rate: weir.PerSecond(5)}, weir.Concurrency{Slots: 3, Lease: time.Minute})
	for i := range 20_000 {
		key := fmt.Sprint("key ", i)
		spend(t, m, held.For(key, 2))
		if _, err := m.Return(t.Context(), both.For(key, 2)); err != nil {
			t.Fatal(err)
		}
		spend(t, m, both.For(key, 3))
		if d, err := m.Peek(t.Context(), held.For(key, 0)); err != nil || d.Remaining != 0 {
			t.Fatalf("key %d: got %+v, %v, want nothing to remain of 3 slots", i, d, err)
		}
	}
}
