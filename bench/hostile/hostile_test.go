package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir/bench/internal/trial"
	"github.com/weirflow/weir/internal/randtest"
)

// TestMain also runs the idle handler, which is this program started again. It builds the daemon once.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == idleHandlerFlag {
		os.Exit(serveIdle(os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(runTests(m))
}

// program is the daemon that the tests attack.
var program string

func runTests(m *testing.M) int {
	folder, err := os.MkdirTemp("", "weir-hostile-test-")
	if err == nil {
		defer func() { _ = os.RemoveAll(folder) }()
		program, err = buildDaemon(folder)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// shortly returns a run short enough for a test. It allows for a late, busy machine.
func shortly(t testing.TB, fault, engine string, only ...string) config {
	t.Helper()
	run := &trial.Trial{Program: "bench/hostile", Duration: time.Second, Seed: randtest.Seed(t), Fault: fault}
	run.Begin()
	return config{Trial: run, weir: program, engine: engine, duration: time.Second, lanes: 6, late: 20 * time.Second, only: only}
}

func TestHonestClientsNoticeNoAttack(t *testing.T) {
	for _, engine := range []string{onMemory, onRedis} {
		t.Run(engine, func(t *testing.T) { noticeNothing(t, shortly(t, "", engine)) })
	}
}

func noticeNothing(t *testing.T, c config) {
	if err := hostile(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for _, v := range c.Violations() {
		t.Errorf("%s: %s (%d times)", v.Promise, v.First, v.Times)
	}
	for _, a := range attacks {
		if c.Counted(a.name, "turns") == 0 {
			t.Errorf("the attack %s had no turn", a.name)
		}
	}
	honest := func(what string) int64 { return c.Counted("honest requests", what) }
	if c.Counted("daemon", "restarts") == 0 || honest("audits") == 0 || honest("admitted") == 0 || honest("refused") == 0 {
		t.Errorf("the run left something out: %d restarts, honest requests: %d audits, %d admitted, %d refused", c.Counted("daemon", "restarts"), honest("audits"), honest("admitted"), honest("refused"))
	}
	if t.Failed() {
		t.Log("repeat with seed", c.Seed)
	}
}

// TestWhatIsBrokenOnPurposeIsNoticed breaks one thing in each run and expects the violation of the matching promise.
func TestWhatIsBrokenOnPurposeIsNoticed(t *testing.T) {
	counts := []string{promiseCounted, promiseBounds} // either, by which clients it happens to
	for fault, want := range map[string][]string{
		countTwice: counts,
		loseAnswer: counts,
		delay:      {promiseOnTime},
		mint:       counts,
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			var c config
			for range 3 { // on a busy machine a short run may ask too little to meet the fault
				c = shortly(t, fault, onMemory, "idle")
				if err := hostile(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				if slices.ContainsFunc(c.Violations(), func(v trial.Broken) bool { return slices.Contains(want, v.Promise) }) {
					return
				}
			}
			t.Errorf("got violations %v in three runs, want one of %q", c.Violations(), want)
		})
	}
}

func TestAViolationIsCodeOneAndAMisuseCodeTwo(t *testing.T) {
	for _, tt := range []struct {
		args      string
		code      int
		out, errs string
	}{
		{"-duration 500ms -engine memory -only idle -late 20s -lanes 1 -break late", 1, "promises were broken", "repeat with: go run ./bench/hostile"},
		{"-engine paper", 2, "", `-engine "paper" is not memory, redis or both`},
		{"-only nothing", 2, "", `-only "nothing": no attack has that name`},
	} {
		var out, errs strings.Builder
		code := run(context.Background(), append(strings.Fields(tt.args), "-weir", program), &out, &errs)
		if code != tt.code || !strings.Contains(out.String(), tt.out) || !strings.Contains(errs.String(), tt.errs) {
			t.Errorf("%s: got status %d, %q and %q; want %d, %q and %q", tt.args, code, out.String(), errs.String(), tt.code, tt.out, tt.errs)
		}
	}
}
