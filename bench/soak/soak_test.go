package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/bench/internal/trial"
)

func shortly(d time.Duration, seed uint64, fault string) *config {
	c := &config{Trial: trial.Trial{Program: "bench/soak", Duration: d, Seed: seed, Fault: fault}, workers: 4, maxKeys: leastKeys}
	c.Begin()
	return c
}

// TestRunsEndInExactTotals makes runs of a fixed number of phases, however long they take, and every kind of event
// occurs in one of them.
func TestRunsEndInExactTotals(t *testing.T) {
	missing := []string{"phases", "loads", "keys evicted", "requests on shared budgets"}
	for seed := uint64(1); seed <= 4; seed++ {
		c := shortly(0, seed, "")
		c.phases = 100
		if err := soak(c); err != nil || len(c.Violations()) > 0 {
			t.Fatalf("seed %d: violations %v, error %v", c.Seed, c.Violations(), err)
		}
		missing = slices.DeleteFunc(missing, func(what string) bool { return c.Counted("run", what) > 0 })
	}
	if len(missing) > 0 {
		t.Errorf("no run had any %q", missing)
	}
}

// TestWhatIsBrokenOnPurposeIsNoticed breaks one thing in each run and expects the matching check to fail. A busy
// machine takes longer.
func TestWhatIsBrokenOnPurposeIsNoticed(t *testing.T) {
	for fault, want := range map[string]string{
		lostTake:     "the engine",
		doubleRecord: "the engine",
		staleLoad:    "the engine",
		roomAtCap:    "a flood of",
		hoardedKeys:  "the heap has",
	} {
		c := shortly(5*time.Minute, 1, fault)
		if err := soak(c); err != nil || len(c.Violations()) != 1 || !strings.Contains(c.Violations()[0].First, want) {
			t.Errorf("%s: got violations %v, error %v, want one with %q", fault, c.Violations(), err, want)
		}
	}
}

func TestAViolationIsExitStatusOneWithTheSeedToRepeatIt(t *testing.T) {
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-duration", "30s", "-seed", "7", "-break", "doubled"}, 1, "repeat with: go run ./bench/soak -break doubled -duration 30s -seed 7"},
		{[]string{"-duration", "100ms"}, 0, ""},
		{[]string{"-duration", "-1s"}, 2, "is not positive"},
		{[]string{"-break", "everything"}, 2, "nothing of that name can be broken"},
	} {
		var out, errs strings.Builder
		code := run(tt.args, &out, &errs)
		if code != tt.code || !strings.Contains(errs.String(), tt.want) {
			t.Errorf("%q: got status %d and %q, want %d and %q", tt.args, code, errs.String(), tt.code, tt.want)
		}
	}
}
