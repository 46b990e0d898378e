package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// TestRunsEndInExactTotals makes short runs until every kind of event has occurred. A slow machine needs more runs.
func TestRunsEndInExactTotals(t *testing.T) {
	var all summary
	for run := 0; run < 30 && !hadEverything(all); run++ {
		s := soak(config{duration: time.Second, seed: uint64(time.Now().UnixNano()), workers: 4, maxKeys: leastKeys})
		if len(s.violations) > 0 {
			t.Fatalf("violations: %s", strings.Join(s.violations, "\n"))
		}
		all.phases += s.phases
		all.loads += s.loads
		all.forgotten += s.forgotten
		all.overflow += s.overflow
		all.refusals += s.refusals
	}
	if !hadEverything(all) {
		t.Errorf("the runs left something out: %+v", all)
	}
}

func hadEverything(s summary) bool {
	return s.phases > 0 && s.loads > 0 && s.forgotten > 0 && s.overflow > 0 && s.refusals > 0
}

// TestWhatIsBrokenOnPurposeIsNoticed breaks one thing in each run and expects the matching check to fail. A busy
// machine takes longer.
func TestWhatIsBrokenOnPurposeIsNoticed(t *testing.T) {
	for fault, want := range map[fault]string{
		lostTake:     "the engine",
		doubleRecord: "the engine",
		staleLoad:    "the engine",
		roomAtCap:    "a flood of",
		strayRoutine: "goroutines are left",
		hoardedKeys:  "the heap has",
	} {
		c := config{duration: 5 * time.Minute, seed: 1, workers: 4, maxKeys: leastKeys, fault: fault}
		if fault == strayRoutine { // checked at the end
			c.duration = 50 * time.Millisecond
		}
		if s := soak(c); !strings.Contains(strings.Join(s.violations, "\n"), want) {
			t.Errorf("%s: got violations %q after %d phases, want one with %q", fault, s.violations, s.phases, want)
		}
	}
}

func TestAViolationIsExitStatusOneWithTheSeedToRepeatIt(t *testing.T) {
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-duration", "30s", "-seed", "7", "-break", "doubled"}, 1, "repeat with: go run ./bench/soak -duration 30s -seed 7"},
		{[]string{"-duration", "100ms"}, 0, ""},
		{[]string{"-duration", "-1s"}, 2, "is not positive"},
		{[]string{"-break", "everything"}, 2, "is nothing that can be broken"},
	} {
		errs, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		code := run(tt.args, &out, errs)
		errs.Close()
		stderr, err := os.ReadFile(errs.Name())
		if err != nil {
			t.Fatal(err)
		}
		if code != tt.code || !strings.Contains(string(stderr), tt.want) || tt.want == "" && len(stderr) > 0 {
			t.Errorf("%q: got status %d and %q, want %d and %q", tt.args, code, stderr, tt.code, tt.want)
		}
	}
}

func TestBoundsAreThoseOfTheGuarantees(t *testing.T) {
	rate := weir.Per(10, 4)
	for _, tt := range []struct {
		limit  weir.Limit
		lo, hi int64
		want   int64
	}{
		{weir.TokenBucket{Rate: rate, Burst: 3}, 0, 0, 3},
		{weir.TokenBucket{Rate: rate, Burst: 3}, -1, 1, 3 + 5},
		{weir.LeakyBucket{Rate: rate, Queue: 3}, 0, 4, 4 + 10},
		{weir.FixedWindow{Rate: rate}, 0, 3, 10},
		{weir.FixedWindow{Rate: rate}, -1, 0, 20},
		{weir.Cycle{Rate: rate, Origin: 2}, 1, 2, 20},
		{weir.SlidingLog{Rate: rate}, 3, 6, 10},
		{weir.RateGate{Rate: rate}, 3, 7, 20},
		{weir.Concurrency{Slots: 10, Lease: 4}, 3, 7, 20},
	} {
		if got := mostOf(tt.limit, tt.lo, tt.hi); got != tt.want {
			t.Errorf("%s from %d to %d: got %d, want %d", tt.limit, tt.lo, tt.hi, got, tt.want)
		}
	}
}
