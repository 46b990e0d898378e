package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirflow/weir/cmd/weir/internal/program"
)

// session matches a command of this program in a document, and what it prints.
var session = regexp.MustCompile("(?m)^```\n\\$ weir (.+)\n((?s:.+?))^```$")

// Every line that docs/howto/simulate.md shows below a command is one that the command prints.
func TestDocumentsShowWhatSimulatePrints(t *testing.T) {
	text, err := os.ReadFile("../../docs/howto/simulate.md")
	if err != nil {
		t.Fatal(err)
	}
	sessions := session.FindAllStringSubmatch(string(text), -1)
	if len(sessions) != 3 {
		t.Fatalf("found %d commands with their output, want 3", len(sessions))
	}
	for _, s := range sessions {
		var args []string
		for _, w := range word.FindAllStringSubmatch(s[1], -1) {
			args = append(args, w[1]+w[2])
		}
		var out, errs strings.Builder
		if code := program.Run(args, strings.NewReader(""), &out, &errs); code != 0 {
			t.Fatalf("weir %s: exit %d, %s", s[1], code, errs.String())
		}
		printed := strings.Split(out.String(), "\n")
		for line := range strings.Lines(s[2]) {
			if line = strings.TrimSuffix(line, "\n"); line != "…" && !slices.Contains(printed, line) {
				t.Errorf("weir %s does not print %q", s[1], line)
			}
		}
	}
}
