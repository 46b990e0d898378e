package redislimit_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/internal/testprocess"
	"github.com/weirflow/weir/redislimit"
)

// wantEarlier fails unless err says that a key holds a state in an earlier format.
func wantEarlier(t *testing.T, what string, err error, key string, format int) {
	t.Helper()
	for _, part := range []string{fmt.Sprintf("%q", key), fmt.Sprint("format ", format), "reads format 5", "docs/howto/upgrading.md"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: got error %v, want one that names %s", what, err, part)
		}
	}
}

// formerKeys are keys of earlier versions for key "al ice" on lane 58, with their values' first byte and the format.
var formerKeys = []struct {
	key    string
	first  string
	format int
}{
	{"weir:{LANE}:login rule\x00\x00al ice", "\x40", 4},
	{"weir:{LANE}:login rule\x00\x00al ice", "\x30", 3},
	{"weir:{LANE}:login rule\x00s1njchs0\x00al ice", "\x42", 4},
	{"weir:{LANE}:login rule\x00n\x00al ice", "\x31", 3},
	{"weir:2:{LANE}:login rule\x00t\x00al ice", "\x00", 2},
	{"weir:2:{LANE}:login rule\x00t.1\x00al ice", "\x00", 2},
	{"weir:2:{LANE}:login rule\x00f1njchs0\x00al ice", "\x00", 2},
	{"weir:2:{LANE}:login rule\x00c1njchs0+5yc1s\x00al ice", "\x00", 2},
	{"weir:2:{LANE}:login rule\x00s1njchs0\x00al ice", "\x00", 2},
	{"weir:2:{LANE}:login rule\x00n\x00al ice", "\x00", 2},
}

// While an earlier version holds a state, no decision on it admits anything or changes it, and each says where the state
// is. Other keys are decided.
func TestAStateOfAnEarlierVersionIsAnErrorThatNamesBothFormats(t *testing.T) {
	client := dial(t, redistest.Start(t))
	engine := newEngine(t, client, redislimit.Options{})
	rule := newRule(t, "login rule", weir.TokenBucket{Rate: weir.PerHour(5)}, weir.TokenBucket{Rate: weir.PerDay(9)}, weir.FixedWindow{Rate: weir.PerHour(5)},
		weir.Cycle{Rate: weir.PerHour(5), Origin: 10 * time.Second}, weir.SlidingLog{Rate: weir.PerHour(5)}, weir.Concurrency{Slots: 5, Lease: time.Hour})
	if d, err := engine.Take(t.Context(), rule.For("al ice", 1)); err != nil || !d.Allowed {
		t.Fatalf("Take: %+v, %v", d, err)
	}
	lane := stored(t, client)[0]
	lane = lane[strings.Index(lane, "{")+1 : strings.Index(lane, "}")]
	for _, former := range formerKeys {
		key := strings.ReplaceAll(former.key, "LANE", lane)
		for _, fresh := range []bool{false, true} {
			if fresh {
				do(t, client, "FLUSHALL")
			}
			do(t, client, "SET", key, former.first+"rest")
			before := len(stored(t, client))
			what := fmt.Sprintf("%q", key)
			_, err := engine.Take(t.Context(), rule.For("al ice", 1))
			wantEarlier(t, what+": Take", err, key, former.format)
			wantBroken(t, what+": Take", err, "")
			_, err = engine.Peek(t.Context(), rule.For("al ice", 1))
			wantEarlier(t, what+": Peek", err, key, former.format)
			_, err = engine.Record(t.Context(), rule.For("al ice", 1))
			wantEarlier(t, what+": Record", err, key, former.format)
			_, err = engine.Take(t.Context(), rule.For("bob", 1), rule.For("al ice", 1))
			wantEarlier(t, what+": Take of two", err, key, former.format)
			if after := len(stored(t, client)); after != before {
				t.Errorf("%s: there are %d keys, and were %d", what, after, before)
			}
			results := make([]weir.Result, 2)
			if err := engine.Each(t.Context(), weir.Calls(weir.OpTake, rule.For("al ice", 1), rule.For("carol", 1)), results); err != nil {
				t.Fatal(err)
			}
			wantEarlier(t, what+": Each", results[0].Err, key, former.format)
			if r := results[1]; r.Err != nil || !r.Decision.Allowed {
				t.Errorf("%s: another key: %+v, want it admitted", what, r)
			}
			wantEarlier(t, what+": Reset", engine.Reset(t.Context(), rule.For("al ice", 0)), key, former.format)
			do(t, client, "DEL", key)
			if err := engine.Reset(t.Context(), rule.For("al ice", 0), rule.For("carol", 0)); err != nil {
				t.Errorf("%s is deleted: Reset: %v", what, err)
			}
			if d, err := engine.Take(t.Context(), rule.For("al ice", 1)); err != nil || !d.Allowed {
				t.Errorf("%s is deleted: got %+v and %v, want it admitted", what, d, err)
			}
		}
	}
}

// An engine that has found no earlier version stops looking for one.
func TestAnEngineLooksForEarlierVersionsAtTheStart(t *testing.T) {
	client := dial(t, redistest.Start(t))
	engine := newEngine(t, client, redislimit.Options{})
	rule := newRule(t, "r", weir.TokenBucket{Rate: weir.PerHour(5)})
	take := func() (reads int) {
		before := commands(t, client, "get", "getrange")
		if _, err := engine.Take(t.Context(), rule.For("k", 1)); err != nil {
			t.Fatal(err)
		}
		return commands(t, client, "get", "getrange") - before
	}
	if first := take(); first != 3 {
		t.Errorf("the first take read %d times, want its state and where formats 2, 3 and 4 had it", first)
	}
	requests := make([]weir.Request, 1<<12)
	for i := range requests {
		requests[i] = rule.For(fmt.Sprint(i), 1)
	}
	if err := engine.Each(t.Context(), weir.Calls(weir.OpTake, requests...), make([]weir.Result, len(requests))); err != nil {
		t.Fatal(err)
	}
	if later := take(); later != 1 {
		t.Errorf("after %d keys a take read %d times, want its state alone", len(requests), later)
	}
}

// formerTake is a program of an earlier version: it takes a unit of a key under each rule, once.
const formerTake = `package main

import (
	"context"
	"fmt"
	"os"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/redislimit"
)

func main() {
	engine, err := redislimit.Open("redis://"+os.Args[1], redislimit.Options{})
	if err != nil {
		panic(err)
	}
	for _, text := range os.Args[2:] {
		rule, err := weir.ParseRule(text)
		if err != nil {
			panic(err)
		}
		d, err := engine.Take(context.Background(), rule.For("alice", 1))
		fmt.Println(d.Allowed, err)
	}
}
`

// Programs of earlier versions, built from the history, and this one do not admit a key twice on one server.
func TestProgramsOfEarlierVersionsAreNoticed(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it builds earlier versions; make long runs it")
	}
	rules := []string{"bucket=token bucket 100/h", "two=token bucket 5/h and fixed window 9/d", "log=sliding log 100/h", "gate=rate gate 9/h", "slots=concurrency 5 lease 30s", "cycle=cycle 9/h", "leaky=leaky bucket 9/h queue 4"}
	for _, former := range []struct {
		commit string
		format int
	}{{"65a5d9f7", 2}, {"b09080f~1", 3}, {"213f73b", 4}} {
		t.Run(fmt.Sprint("format ", former.format), func(t *testing.T) {
			program := buildFormer(t, former.commit)
			server := redistest.Start(t)
			engine := newEngine(t, dial(t, server), redislimit.Options{})
			out, err := exec.Command(program, append([]string{server.Addr}, rules...)...).CombinedOutput()
			if want := strings.Repeat("true <nil>\n", len(rules)); err != nil || string(out) != want {
				t.Fatalf("the earlier version says %s (%v), want %s", out, err, want)
			}
			for _, text := range rules {
				_, err := engine.Take(t.Context(), mustParse(t, text).For("alice", 1))
				wantBroken(t, text, err, fmt.Sprint("format ", former.format))
				wantBroken(t, text, err, "reads format 5")
			}
			server.Do("FLUSHALL")
			for _, text := range rules {
				if d, err := engine.Take(t.Context(), mustParse(t, text).For("alice", 1)); err != nil || !d.Allowed {
					t.Errorf("%s, after the earlier version: got %+v and %v, want it admitted", text, d, err)
				}
			}
		})
	}
}

// buildFormer builds formerTake at a commit.
func buildFormer(t *testing.T, commit string) string {
	t.Helper()
	dir := t.TempDir()
	if err := exec.Command("git", "cat-file", "-e", commit+"^{commit}").Run(); err != nil {
		t.Skipf("the history is missing: git has no commit %s (a shallow clone?)", commit)
	}
	tree := exec.Command("sh", "-c", `git -C .. archive "$1" | tar -x -C "$2"`, "sh", commit, dir)
	if out, err := tree.CombinedOutput(); err != nil {
		t.Fatalf("git archive: %v: %s", err, out)
	}
	folder, program := filepath.Join(dir, "redislimit", "former"), filepath.Join(dir, "former")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "main.go"), []byte(formerTake), 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", program, "./former")
	build.Dir = filepath.Join(dir, "redislimit")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build at %s: %v: %s", commit, err, out)
	}
	return program
}

func mustParse(t *testing.T, text string) *weir.Rule {
	t.Helper()
	rule, err := weir.ParseRule(text)
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

// The command of docs/howto/upgrading.md deletes the states of earlier versions, and nothing else.
func TestTheDocumentedCommandDeletesWhatEarlierVersionsStored(t *testing.T) {
	testprocess.Require(t, "redis-cli", "redis-tools")
	text, err := os.ReadFile("../docs/howto/upgrading.md")
	if err != nil {
		t.Fatal(err)
	}
	_, command, _ := strings.Cut(string(text), "```\nredis-cli EVAL")
	command, _, _ = strings.Cut("redis-cli EVAL"+command, "\n```")
	server := redistest.Start(t)
	client := dial(t, server)
	kept := []string{"other", "weir:{1}:r::k", "weir:{1}::4f:once", "weir:{1}:server"}
	for _, key := range kept {
		do(t, client, "SET", key, "x")
	}
	for _, former := range formerKeys {
		do(t, client, "SET", strings.ReplaceAll(former.key, "LANE", "58"), "x")
	}
	here := strings.Replace(command, "redis-cli", fmt.Sprint("redis-cli -p ", server.Port), 1)
	if out, err := exec.Command("sh", "-c", here).CombinedOutput(); err != nil || len(out) > 1 {
		t.Fatalf("%s: %v: %s", here, err, out)
	}
	got := stored(t, client)
	slices.Sort(got)
	if slices.Sort(kept); !slices.Equal(got, kept) {
		t.Errorf("%s leaves %q, want %q", here, got, kept)
	}
}
