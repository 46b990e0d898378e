package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Blocks of a page: files, whose first line is a comment with their name, and commands with the beginning of their output.
var pageBlock = regexp.MustCompile("(?s)```([a-z]*)\n(?:# ([a-z.]+)\n)?(.*?)```")

// fraction matches what is left of a time when a command has run.
var fraction = regexp.MustCompile(`[0-9]+\\\.[0-9]+|\b12\b|\b60\b`)

// The commands of docs/start/daemon.md print what the page shows below them. The first daemon of the page answers them; those that
// need certificates or a server do not run.
func TestTheStartPageOfTheDaemonShowsWhatItPrints(t *testing.T) {
	page, err := os.ReadFile("../../docs/start/daemon.md")
	if err != nil {
		t.Fatal(err)
	}
	text, _, found := strings.Cut(string(page), "## 5. ")
	if !found {
		t.Fatal("docs/start/daemon.md has no fifth step, want one whose commands do not run")
	}
	var script, files strings.Builder
	for _, block := range pageBlock.FindAllStringSubmatch(text, -1) {
		switch block[1] {
		case "yaml":
			files.WriteString("-- " + block[2] + " --\n" + block[3])
		case "":
			for line := range strings.Lines(block[3]) {
				script.WriteString(inScript(strings.TrimSuffix(line, "\n")))
			}
		}
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "start.txtar"), []byte(script.String()+"end\n"+files.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	runScripts(t, folder)
}

// inScript returns a line of a page as a line of a script.
func inScript(line string) string {
	command, isCommand := strings.CutPrefix(line, "$ ")
	switch {
	case line == "…" || strings.HasPrefix(line, "weir listens on "):
		return ""
	case !isCommand:
		return "stdout '" + fraction.ReplaceAllString(regexp.QuoteMeta(line), "[0-9.]+") + "'\n"
	case strings.HasPrefix(command, "weir serve "):
		return strings.TrimPrefix(command, "weir ") + " --http 127.0.0.1:0 --admin unix:admin.sock\n"
	case strings.HasPrefix(command, "weir ctl "):
		return "exec " + command + " --admin unix:admin.sock\n"
	}
	return "exec " + strings.ReplaceAll(command, "http://127.0.0.1:8080", "$URL") + "\n"
}
