package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
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
func shortly(t *testing.T, f fault, only ...string) config {
	t.Helper()
	return config{weir: program, engine: onMemory, duration: time.Second, seed: uint64(time.Now().UnixNano()), lanes: 6, late: 20 * time.Second, fault: f, only: only,
		progress: func(line string) { t.Log(line) }}
}

func TestHonestClientsNoticeNoAttack(t *testing.T) {
	for _, engine := range []string{onMemory, onRedis} {
		t.Run(engine, func(t *testing.T) {
			c := shortly(t, noFault)
			c.engine = engine
			noticeNothing(t, c)
		})
	}
}

func noticeNothing(t *testing.T, c config) {
	r, err := hostile(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	all := len(attacks)
	if c.engine == onRedis {
		all -= len(memoryOnly)
	}
	for _, v := range r.Violations {
		t.Errorf("%s: %s (%d times)", v.Promise, v.First, v.Times)
	}
	if len(r.Attacks) != all || r.Restarts == 0 || r.Honest["audits"] == 0 || r.Honest["admitted"] == 0 || r.Honest["refused"] == 0 {
		t.Errorf("the run left something out: %d of %d attacks, %d restarts, honest requests: %v", len(r.Attacks), all, r.Restarts, r.Honest)
	}
	if t.Failed() {
		t.Log("repeat with:", c.command())
	}
}

// TestWhatIsBrokenOnPurposeIsNoticed breaks one thing in each run and expects the violation of the matching promise.
func TestWhatIsBrokenOnPurposeIsNoticed(t *testing.T) {
	counts := []string{promiseCounted, promiseBounds} // either, by which clients it happens to
	for fault, want := range map[fault][]string{
		countTwice: counts,
		loseAnswer: counts,
		delay:      {promiseOnTime},
		mint:       counts,
	} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			c := shortly(t, fault, "idle")
			c.progress = nil
			r, err := hostile(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(r.Violations, func(v violation) bool { return slices.Contains(want, v.Promise) }) {
				t.Errorf("got violations %v, want one of %q", r.Violations, want)
			}
		})
	}
}

func TestTheReportListsAttacksTimesAndViolations(t *testing.T) {
	r := newReport()
	over := r.turn("junk")
	r.did("junk", "requests", 3)
	r.honest("admitted", 7)
	r.timed(5*time.Millisecond, 2*time.Millisecond, "a take")
	over()
	var whole, broken strings.Builder
	r.close()
	r.print(&whole)
	r.broken(time.Second, promiseStop, "it ran on")
	r.broken(time.Second, promiseStop, "it ran on again")
	r.print(&broken)
	for text, wants := range map[string][]string{
		whole.String():  {"junk    1      3 requests", "7 admitted", "3ms later than the idle handler: a take, besides junk", "no promise was broken"},
		broken.String(): {"1 promises were broken", promiseStop + " (2 times, first after 1s): it ran on\n"},
	} {
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("got %s, want it to have %q", text, want)
			}
		}
	}
}

func TestAViolationIsCodeOneAndAMisuseCodeTwo(t *testing.T) {
	for _, tt := range []struct {
		args      string
		code      int
		out, errs string
	}{
		{"-duration 500ms -engine memory -only junk -late 20s -lanes 1 --json -break late", 1, `"violations": [`, "repeat with: go run ./bench/hostile -duration 500ms"},
		{"-duration -1s", 2, "", "-duration -1s is not positive"},
		{"-engine paper", 2, "", `-engine "paper" is not memory, redis or both`},
		{"-only nothing", 2, "", `-only "nothing": no attack has that name`},
		{"-break everything", 2, "", "nothing of that name can be broken"},
	} {
		var out, errs strings.Builder
		code := run(context.Background(), append(strings.Fields(tt.args), "-weir", program), &out, &errs)
		if code != tt.code || !strings.Contains(out.String(), tt.out) || !strings.Contains(errs.String(), tt.errs) {
			t.Errorf("%s: got status %d, %q and %q; want %d, %q and %q", tt.args, code, out.String(), errs.String(), tt.code, tt.out, tt.errs)
		}
		if strings.Contains(tt.args, "json") {
			var r report
			if err := json.Unmarshal([]byte(out.String()), &r); err != nil || r.Honest["requests"] == 0 {
				t.Errorf("%s: the report is not JSON with honest requests: %v", tt.args, err)
			}
		}
	}
}
