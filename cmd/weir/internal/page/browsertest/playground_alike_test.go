package browsertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/cmd/weir/internal/playground"
	"github.com/weirflow/weir/cmd/weir/internal/program"
	"github.com/weirflow/weir/internal/randtest"
)

const repository = "../../../../.."

// writtenLimits are the texts of limits in the tests and examples of the repository, readable or not.
func writtenLimits(t *testing.T) []string {
	t.Helper()
	texts := map[string]bool{"token bucket 5/s burst 10 and quota 9/day at 02:15 in Australia/Lord_Howe": true}
	for _, text := range slices.Concat(plain.RuleLimits, plain.OneSubjectLimits) {
		texts[text] = true
	}
	written := regexp.MustCompile(`(?:--limit |check |limit: )'([^'\n]+)'|limit: ([^'"\[{#\n][^#,}\n]*)`)
	for _, pattern := range []string{"cmd/weir/testdata/script/*.txtar", "cmd/weir/internal/*/testdata/*.tx*", "examples/from/*/*.yaml", "deploy/*/*.yaml"} {
		paths, _ := filepath.Glob(filepath.Join(repository, pattern))
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range written.FindAllStringSubmatch(string(content), -1) {
				texts[strings.TrimSpace(m[1]+m[2])] = true
			}
		}
	}
	maps.DeleteFunc(texts, func(text string, _ bool) bool { return likeRules.MatchString(text) })
	return slices.Sorted(maps.Keys(texts))
}

// likeRules matches a text that the page reads as a rules file, and weir check with --config.
var likeRules = regexp.MustCompile(`^(#|---|\{|[A-Za-z_]+:)`)

// ran returns what the program prints, and what it says of errors.
func ran(args ...string) (out, errs string) {
	var printed, said bytes.Buffer
	program.Run(args, strings.NewReader(""), &printed, &said)
	return printed.String(), said.String()
}

// alike compares answers to questions with those of the browser.
func alike(t *testing.T, p *playgroundPage, questions, here []string, log []byte) {
	t.Helper()
	file := "undefined"
	if log != nil {
		p.choose("a.log", bytesOf(log))
		file = "document.querySelector('#file').files[0]"
	}
	for i, there := range p.answers(questions, file) {
		if there != here[i] {
			t.Errorf("%s: the browser says\n%.1000s\nthis machine says\n%.1000s", questions[i], there, here[i])
		}
	}
}

// said checks that the program, with these arguments, says what an answer does: its part as JSON, or its error.
func said(t *testing.T, answer string, path []string, args ...string) {
	t.Helper()
	out, errs := ran(args...)
	var a struct{ Error *playground.Failure }
	if err := json.Unmarshal([]byte(answer), &a); err != nil {
		t.Fatal(err)
	}
	if a.Error == nil {
		if out == "" {
			t.Errorf("weir %q fails with %s\nthe page says\n%.1000s", args, errs, answer)
		} else if got, want := part(t, answer, path...), part(t, out); got != want {
			t.Errorf("weir %q prints\n%.1000s\nthe page says\n%.1000s", args, want, got)
		}
		return
	}
	want := ""
	for _, u := range a.Error.Unread {
		want += fmt.Sprintf("weir: %s:%d: the line %s: %s\n", u.Log, u.Line, u.Reason, u.Text)
	}
	want += "weir: " + a.Error.Message + "\n"
	for _, hint := range a.Error.Hints {
		want += "hint: " + hint + "\n"
	}
	if flag := regexp.MustCompile(`^weir: (--)?(limit|traffic|suggest|check): `); flag.ReplaceAllString(errs, "") != flag.ReplaceAllString(want, "") {
		t.Errorf("weir %q says\n%s\nthe page says\n%s", args, errs, want)
	}
}

// What weir check says of any limit that is written down here, the page says, and what it refuses, the page refuses alike.
func TestThePlaygroundExplainsEveryLimitAsTheProgram(t *testing.T) {
	p := openPlayground(t)
	p.visit("", 1280, "light")
	var questions, here []string
	for _, text := range writtenLimits(t) {
		asked, _ := json.Marshal(map[string]string{"do": "check", "text": text})
		answer := string(playground.Answer(asked, playground.Host{}))
		questions, here = append(questions, string(asked)), append(here, answer)
		var a struct {
			OK    *playground.Checked
			Error *playground.Failure
		}
		if err := json.Unmarshal([]byte(answer), &a); err != nil {
			t.Fatal(err)
		}
		if a.Error != nil {
			said(t, answer, nil, "check", text)
			continue
		}
		want := ""
		for _, l := range a.OK.Limits {
			if want != "" {
				want += "\n"
			}
			want += l.Limit + "\n"
			for _, line := range [][2]string{{"capacity", l.Capacity}, {"burst", l.Burst}, {"windows", l.Windows}, {"worst case", l.Worst}, {"memory", l.Memory}} {
				if line[1] != "" {
					want += fmt.Sprintf("  %-10s  %s\n", line[0], line[1])
				}
			}
		}
		if a.OK.Together != "" {
			want += "\ntogether\n  " + strings.Replace(a.OK.Together, ". ", ".\n  ", 1) + "\n"
		}
		zone := regexp.MustCompile(`The zone data is [^\n]*`) // a page sees none of the system
		out, errs := ran("check", text)
		if got, want := zone.ReplaceAllString(out, "ZONE"), zone.ReplaceAllString(want, "ZONE"); got != want {
			t.Errorf("weir check %q says\n%s%s\nthe page says\n%s", text, got, errs, want)
		}
	}
	if len(questions) < 80 {
		t.Errorf("%d limits are written down, want 80 at least", len(questions))
	}
	alike(t, p, questions, here, nil)
}

// Limits at random play traffic at random, and try logs, as the commands of the program do.
func TestThePlaygroundPlaysLimitsAndLogsAsTheProgram(t *testing.T) {
	p := openPlayground(t)
	p.visit("#part=log", 1280, "light")
	limits := writtenLimits(t)
	logs, _ := filepath.Glob(filepath.Join(repository, "internal/accesslog/testdata/*.log"))
	if len(logs) < 10 {
		t.Fatalf("%d logs, want 10 at least", len(logs))
	}
	traffics := []string{
		"constant 7/s from 3 clients", "poisson 20/s from 9 clients skew 1.1 retry obeying jitter 1s", "burst 50/s for 1s every 3s cost 1 to 3",
		"storm 30 at 1s retry every 300ms", "constant 4/s from 1 clients and burst 40/s for 1s every 4s from 1 clients", "constant",
	}
	for seed := range randtest.Seeds(t, 3, 1) {
		random := rand.New(rand.NewPCG(seed, 60))
		draw := func() string { return limits[random.IntN(len(limits))] }
		var questions, here []string
		ask := func(log []byte, path []string, question map[string]any, args ...string) {
			asked, _ := json.Marshal(question)
			answer := native(t, question, log)
			questions, here = append(questions, string(asked)), append(here, answer)
			said(t, answer, path, args...)
		}
		for range randtest.Rounds(t, 120, 20) {
			limit, traffic, seed, each := draw(), traffics[random.IntN(len(traffics))], random.Uint64N(1<<32), random.IntN(2) == 0
			args := []string{"simulate", "--limit", limit, "--traffic", traffic, "--for", "20s", "--seed", fmt.Sprint(seed), "--format", "json"}
			if each {
				args = append(args, "--per-client")
			}
			ask(nil, []string{"ok", "comparison"}, map[string]any{"do": "play", "limits": []string{limit}, "traffic": traffic, "for": "20s", "seed": seed, "each": each}, args...)
		}
		alike(t, p, questions, here, nil)
		for _, path := range logs {
			log, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			questions, here = nil, nil
			one, other := draw(), draw()
			ask(log, []string{"ok", "report"}, map[string]any{"do": "log", "name": path, "key": "ip", "tried": []string{one, other}},
				"replay", "--limit", one, "--limit", other, "--format", "json", path)
			ask(log, []string{"ok", "suggestions"}, map[string]any{"do": "log", "name": path, "key": "ip", "suggest": "refuse 0.1% of requests"},
				"replay", "--suggest", "refuse 0.1% of requests", "--format", "json", path)
			alike(t, p, questions, here, log)
		}
	}
}

// The rules files of the repository explain requests at random, and hold their tests, as the program says.
func TestThePlaygroundDecidesByRulesAsTheProgram(t *testing.T) {
	p := openPlayground(t)
	p.visit("#part=rules", 1280, "light")
	files, _ := filepath.Glob(filepath.Join(repository, "examples/from/*/weir.yaml"))
	if len(files) < 3 {
		t.Fatalf("%d rules files, want 3 at least", len(files))
	}
	var questions, here []string
	for seed := range randtest.Seeds(t, 3, 1) {
		random := rand.New(rand.NewPCG(seed, 61))
		for _, path := range files {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			names := regexp.MustCompile(`[a-z_][a-z0-9_.-]*`).FindAllString(string(text), -1)
			for range randtest.Rounds(t, 40, 10) {
				request := []string{"client=192.0.2.1"}
				for range random.IntN(3) {
					request = append(request, names[random.IntN(len(names))]+"="+names[random.IntN(len(names))])
				}
				question := map[string]any{"do": "explain", "rules": string(text), "request": strings.Join(request, "\n")}
				asked, _ := json.Marshal(question)
				answer := strings.ReplaceAll(native(t, question, nil), `"weir.yaml`, `"`+path)
				questions, here = append(questions, string(asked)), append(here, strings.ReplaceAll(answer, path, "weir.yaml"))
				said(t, answer, []string{"ok", "explanation"}, append([]string{"explain", "--config", path, "--format", "json"}, request...)...)
			}
			tests, err := os.ReadFile(strings.TrimSuffix(path, ".yaml") + ".test.yaml")
			if err != nil {
				continue // a file without tests
			}
			question := map[string]any{"do": "test", "rules": string(text), "tests": string(tests)}
			asked, _ := json.Marshal(question)
			answer := native(t, question, nil)
			questions, here = append(questions, string(asked)), append(here, answer)
			said(t, strings.ReplaceAll(answer, `"weir.test.yaml`, `"`+strings.TrimSuffix(path, ".yaml")+".test.yaml"), []string{"ok"}, "rules", "test", "--format", "json", strings.TrimSuffix(path, ".yaml")+".test.yaml")
		}
	}
	alike(t, p, questions, here, nil)
}
