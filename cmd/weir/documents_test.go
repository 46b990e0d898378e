package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weirflow/weir/cmd/weir/internal/program"
)

// shown matches a command of this program in a document: in backquotes, or at the start of a line of code, up to a
// redirection or a pipe.
var shown = regexp.MustCompile("(?m)(?:`|^(?:    |\\$ )?(?:seq [0-9]+ \\| )?(?:go run \\./cmd/)?)weir ((?:serve|pace|fetch|replay|simulate|check)(?: [^`|<>\n]*)?)")

// word matches one word of a command line, in single quotes or bare.
var word = regexp.MustCompile(`'([^']*)'|(\S+)`)

func TestCommandsInDocumentsHaveFlagsThatExist(t *testing.T) {
	documents, err := filepath.Glob("../../docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	withFlags := 0
	for _, document := range append(documents, "../../README.md") {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range shown.FindAllStringSubmatch(string(text), -1) {
			var args []string
			for _, w := range word.FindAllStringSubmatch(match[1], -1) {
				args = append(args, w[1]+w[2])
			}
			root, _ := program.Root()
			command, rest, err := root.Find(args)
			if err != nil {
				t.Errorf("%s: weir %s: %v", document, match[1], err)
				continue
			}
			if err := command.ParseFlags(rest); err != nil {
				t.Errorf("%s: weir %s: %v", document, match[1], err)
			}
			if strings.Contains(match[1], " --") {
				withFlags++
			}
		}
	}
	if withFlags < 10 {
		t.Errorf("found %d commands with flags in the documents, want 10 at least", withFlags)
	}
}
