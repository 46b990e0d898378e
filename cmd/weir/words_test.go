package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirflow/weir/cmd/weir/internal/program"
)

const tutorialLog = "../../simulate/testdata/access.log.gz"

// said returns what a command prints.
func said(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs strings.Builder
	if code := program.Run(args, strings.NewReader(""), &out, &errs); code != 0 {
		t.Fatalf("weir %q: exit %d, %s", args, code, errs.String())
	}
	return out.String()
}

// otherWords stand for refused elsewhere. Names of limits have two of them.
var (
	otherWords   = regexp.MustCompile(`(?i)\b(den(y|ied|ies|ials?)|reject\w*|throttled|dropped|blocked)\b|_denied`)
	namesOfTexts = strings.NewReplacer("count denied", "", "deny all", "")
)

// What is not admitted is refused, in tables, JSON, pictures and help of the commands that try limits.
func TestCommandsThatTryLimitsSayRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plot.svg")
	two := []string{"--limit", "sliding log 10/s count denied", "--limit", "token bucket 1/s burst 10"}
	for _, args := range [][]string{
		{"replay", "--help"}, {"simulate", "--help"}, {"check", "--help"},
		append([]string{"replay", "--plot", "terminal", tutorialLog}, two...), append([]string{"replay", "--plot", file, "--format", "json", tutorialLog}, two...),
		{"replay", "--suggest", "refuse 0.1% of clients", "--plot", "terminal", tutorialLog}, {"replay", "--suggest", "at most 5/s in all", "--format", "json", "--plot", file, tutorialLog},
		append([]string{"simulate", "--traffic", "constant 20/s", "--for", "10s", "--plot", "terminal"}, two...),
		append([]string{"simulate", "--traffic", "constant 20/s", "--for", "10s", "--plot", file, "--format", "json"}, two...),
		{"check", "token bucket 1/s burst 10", "--plot", "terminal"},
	} {
		text := said(t, args...)
		if drawn, err := os.ReadFile(file); err == nil {
			text += string(drawn)
		}
		if found := otherWords.FindString(namesOfTexts.Replace(text)); found != "" {
			t.Errorf("weir %q says %q, want refused", args, found)
		}
	}
}

// A replay and a simulation of the same log print the same numbers below the same heads.
func TestReplayAndSimulatePrintTheSameNumbers(t *testing.T) {
	limits := []string{"token bucket 1/s burst 10", "sliding window 60/1m", "fixed window 1/1d"}
	for _, limit := range limits {
		replayed := cellsOf(t, said(t, "replay", "--limit", limit, tutorialLog), limit)
		simulated := cellsOf(t, said(t, "simulate", "--traffic", "log "+tutorialLog, "--per-client", "--limit", limit), limit)
		for _, head := range []string{"admitted", "refused", "share"} {
			if replayed[head] == "" || replayed[head] != simulated[head] {
				t.Errorf("%s: %s is %q in a replay and %q in a simulation", limit, head, replayed[head], simulated[head])
			}
		}
	}
}

// cellsOf returns the row of a limit in the first table that has it, by head.
func cellsOf(t *testing.T, text, limit string) map[string]string {
	t.Helper()
	var heads []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "limit ") {
			heads = apart.Split(strings.TrimSpace(line), -1)
		}
		if cells := apart.Split(strings.TrimSpace(line), -1); cells[0] == limit && len(cells) > 1 {
			row := map[string]string{}
			for i, head := range heads[:min(len(heads), len(cells))] {
				row[head] = cells[i]
			}
			return row
		}
	}
	t.Fatalf("no row of %s in\n%s", limit, text)
	return nil
}

// apart is what stands between the cells of a table.
var apart = regexp.MustCompile(" {2,}")

// Every line that docs/howto/replay.md shows below a command on the log of the tutorial is one that the command prints.
func TestDocumentsShowWhatReplayPrints(t *testing.T) {
	text, err := os.ReadFile("../../docs/howto/replay.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, s := range session.FindAllStringSubmatch(string(text), -1) {
		command, found := strings.CutSuffix(s[1], " access.log.gz")
		if !found {
			continue
		}
		shown++
		args := []string{tutorialLog}
		for _, w := range word.FindAllStringSubmatch(command, -1) {
			args = append(args, w[1]+w[2])
		}
		printed := strings.Split(strings.ReplaceAll(said(t, append(args[1:], args[0])...), tutorialLog, "access.log.gz"), "\n")
		for line := range strings.Lines(s[2]) {
			if line = strings.TrimSuffix(line, "\n"); line != "…" && !slices.ContainsFunc(printed, func(p string) bool { return sameCells(p, line) }) {
				t.Errorf("weir %s does not print %q", s[1], line)
			}
		}
	}
	if shown < 2 {
		t.Errorf("%d commands are shown, want a replay and a search at least", shown)
	}
}

// sameCells compares lines without the width of columns, because a page does not show all rows.
func sameCells(a, b string) bool {
	return apart.ReplaceAllString(a, " ") == apart.ReplaceAllString(b, " ")
}
