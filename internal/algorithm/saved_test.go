package algorithm_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirflow/weir/internal/algorithm"
)

// TestSavedStatesAnswerAsIfNeverSaved compares with the model while the state is
// saved and read again before every operation.
func TestSavedStatesAnswerAsIfNeverSaved(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(11, 12))
			for range 500 {
				input := make([]byte, 40+random.IntN(400))
				for i := range input {
					input[i] = byte(random.Uint32())
				}
				s := &source{input}
				p := kinds[name](s)
				p.between = func() {
					numbers := algorithm.AppendSaved(nil, p.Algorithm, p.state)
					state, ok := algorithm.Saved(p.Algorithm, numbers)
					if !ok {
						t.Fatalf("%s: its own state %v is refused", p.name, numbers)
					}
					p.state = state
				}
				p.plays(t, s)
			}
		})
	}
}

// TestNumbersOfNoStateAreRefused changes each number of states with logs and
// leases to what it cannot be.
func TestNumbersOfNoStateAreRefused(t *testing.T) {
	log, gate, leases := algorithm.NewSlidingLog(5, second, 0, false), algorithm.NewRateGate(5, second), algorithm.NewConcurrency(5, second)
	held := leases.TakeLease(leases.TakeLease(leases.Fresh(), 10, 1, 7), 20, 2, 8)
	for name, tt := range map[string]struct {
		a       algorithm.Algorithm
		numbers []int64
	}{
		"nothing":                  {log, nil},
		"too few":                  {log, []int64{0, 0, 0}},
		"too many":                 {log, []int64{0, 0, 0, 0, 0}},
		"neither with nor without": {log, []int64{0, 0, 0, 2}},
		"more entries than there":  {log, []int64{0, 0, 0, 1, 9, math.MaxInt64, 9, 1, 0}},
		"fewer than no entries":    {log, []int64{0, 0, 0, 1, 9, -1, 0}},
		"an entry of nothing":      {log, []int64{0, 0, 0, 1, 9, 1, 9, 0, 0}},
		"entries out of order":     {gate, []int64{0, 0, 0, 1, 9, 2, 9, 1, 9, 1, 0}},
		"totals that overflow":     {log, []int64{0, 0, 0, 1, 9, 2, 8, math.MaxInt64, 9, math.MaxInt64, 0}},
		"an entry after the last":  {log, []int64{0, 0, 0, 1, 8, 1, 9, 1, 0}},
		"a log of leases":          {log, []int64{0, 0, 0, 1, 9, 1, 9, 1, 1, 50, 0, 1}},
		"leases with entries":      {leases, []int64{9, 1, 0, 1, 9, 1, 9, 1, 1, 50, 0, 1}},
		"leases of other units":    {leases, []int64{9, 2, 0, 1, 0, 0, 1, 50, 0, 1}},
		"leases out of order":      {leases, []int64{9, 2, 0, 1, 0, 0, 2, 50, 0, 1, 49, 0, 1}},
		"no leases but a log":      {leases, []int64{9, 0, 0, 1, 0, 0, 0}},
		"a bucket without ticks":   {algorithm.NewTokenBucket(1, 1, 1), []int64{0, 9, 0, 0}},
		"a bucket with a log":      {algorithm.NewLeakyBucket(1, 1, 1, 0), []int64{0, 9, 1, 1, 0, 0, 0}},
		"less than no units":       {algorithm.NewFixedWindow(1, 1), []int64{0, -1, 0, 0}},
		"a window before":          {algorithm.NewFixedWindow(1, 1), []int64{0, 1, 1, 0}},
		"too many units":           {algorithm.NewSlidingWindow(1, 1), []int64{0, 0, math.MaxInt64, 0}},
		"a debt beyond all":        {algorithm.NewCycle(1, 1, 0), []int64{0, math.MaxInt64, 0, 0}},
		"a limit that none saves":  {algorithm.NewBursty(1, 1), []int64{0, 0, 0, 0}},
	} {
		if s, ok := algorithm.Saved(tt.a, tt.numbers); ok {
			t.Errorf("%s: %v is read as %+v", name, tt.numbers, s)
		}
	}
	if _, ok := algorithm.Saved(leases, algorithm.AppendSaved(nil, leases, held)); !ok {
		t.Error("leases that are held are refused")
	}
}
