package algorithm_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/calendar"
	"github.com/weirflow/weir/internal/randtest"
)

// TestSavedStatesAnswerAsIfNeverSaved compares with the model while it saves and restores the state before every
// operation.
func TestSavedStatesAnswerAsIfNeverSaved(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(randtest.Seed(t), 12))
			for range inputs(t) {
				input := make([]byte, 40+random.IntN(400))
				for i := range input {
					input[i] = byte(random.Uint32())
				}
				s := &source{input}
				p := kinds[name](s)
				p.between = func() {
					saver := p.Algorithm.(algorithm.Saver)
					numbers := saver.AppendState(nil, p.state)
					state, ok := saver.RestoreState(numbers)
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

// TestNumbersOfNoStateAreRefused changes each number of a state to an impossible value.
func TestNumbersOfNoStateAreRefused(t *testing.T) {
	log, gate, leases := algorithm.NewSlidingLog(5, second, 0, false), algorithm.NewRateGate(5, second), algorithm.NewConcurrency(5, second)
	bucket, window := algorithm.NewTokenBucket(1, 1, 1), algorithm.NewFixedWindow(1, 1)
	for name, tt := range map[string]struct {
		saver   algorithm.Saver
		numbers []int64
	}{
		"a bucket of nothing":           {bucket, nil},
		"a bucket of too few":           {bucket, []int64{0, 0}},
		"a bucket of another length":    {bucket, []int64{0, 0, 1}},
		"a bucket of too many":          {bucket, []int64{0, 0, 1, 1, 0, 0, 0}},
		"a bucket without ticks":        {bucket, []int64{0, 9, 0, 1, 0, 0}},
		"a bucket without a unit":       {bucket, []int64{0, 9, 1, 0, 0, 0}},
		"a leaky bucket without ticks":  {algorithm.NewLeakyBucket(1, 1, 1, 0), []int64{0, 9, 0, 1, 0, 0}},
		"a bucket beyond all time":      {bucket, []int64{1<<60 + 1, 0, 1, 1, 0, 0}},
		"a bucket before all time":      {bucket, []int64{-1, math.MaxInt64, 1, 1, 0, 0}},
		"a bucket of no rate":           {bucket, []int64{0, 9, 1<<53 + 1, 1, 0, 0}},
		"a new bucket with a promise":   {bucket, []int64{math.MinInt64, 0, 1, 1, math.MinInt64, 9}},
		"a window beyond all time":      {algorithm.NewFixedWindow(1, second), []int64{math.MaxInt64/second + 1, 0}},
		"a cycle before all time":       {algorithm.NewCycle(1, second, 0), []int64{math.MinInt64/second - 2, 1}},
		"a new window with units":       {algorithm.NewSlidingWindow(1, second), []int64{math.MinInt64, 0, 1}},
		"a quota of less than no units": {algorithm.NewQuota(1, second, calendar.Calendar{Unit: calendar.Day, Zone: time.UTC}), []int64{0, -1}},
		"a first window of no units":    {algorithm.NewFirstWindow(1, second), []int64{5, 0}},
		"a first window of a number":    {algorithm.NewFirstWindow(1, second), []int64{5}},
		"less than no units":            {window, []int64{0, -1}},
		"a window with one before":      {window, []int64{0, 1, 1}},
		"too many units":                {algorithm.NewSlidingWindow(1, 1), []int64{0, 0, math.MaxInt64}},
		"a debt beyond all":             {algorithm.NewCycle(1, 1, 0), []int64{0, math.MaxInt64}},
		"an entry without units":        {log, []int64{9, 0, 9}},
		"an entry of nothing":           {log, []int64{9, 0, 9, 0}},
		"entries out of order":          {gate, []int64{9, 0, 9, 1, 9, 1}},
		"totals that overflow":          {log, []int64{9, 0, 8, math.MaxInt64, 9, math.MaxInt64}},
		"an entry after the last":       {log, []int64{8, 0, 9, 1}},
		"a log of another length":       {log, []int64{9, 9, 1}},
		"a log that keeps less than no": {log, []int64{9, -1, 9, 1}},
		"a log of nothing before time":  {log, []int64{math.MinInt64, 0}},
		"a lease that had ended":        {leases, []int64{50, 50, 7, 1}},
		"a lease of years":              {leases, []int64{0, 1 << 55, 7, 1}},
		"leases without an instant":     {leases, nil},
		"a lease cut short":             {leases, []int64{9, 50, 7}},
		"a lease of nothing":            {leases, []int64{9, 50, 7, 0}},
		"leases out of order":           {leases, []int64{9, 50, 7, 1, 49, 7, 1}},
		"one lease twice":               {leases, []int64{9, 50, 7, 1, 50, 7, 1}},
		"leases of more than can exist": {leases, []int64{9, 49, 7, math.MaxInt64, 50, 7, math.MaxInt64}},
	} {
		if s, ok := tt.saver.RestoreState(tt.numbers); ok {
			t.Errorf("%s: %v is read as %+v", name, tt.numbers, s)
		}
	}
	held := leases.TakeLease(leases.TakeLease(leases.Fresh(), 10, 1, 7), 20, 2, 8)
	if _, ok := leases.RestoreState(leases.AppendState(nil, held)); !ok {
		t.Error("leases that are held are refused")
	}
}

// The states of Guava depend on the time at which they began.
func TestGuavaIsNotSaved(t *testing.T) {
	if _, ok := algorithm.Algorithm(algorithm.NewBursty(1, 1)).(algorithm.Saver); ok {
		t.Error("Guava is a Saver")
	}
}
