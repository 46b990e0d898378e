package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirflow/weir/cmd/weir/internal/program"
)

const flagsPage = "../../docs/reference/flags.md"

// docs/reference/flags.md has every flag of every command, as the program describes it. `make docs` writes it.
func TestThePageOfFlagsIsUpToDate(t *testing.T) {
	root, _ := program.Root()
	page := "# Every flag\n\nThis page lists the flags of each command, as `--help` does. `make docs` writes it from the program.\nAn empty text, as of `--since \"$UNSET\"`, is refused.\n" + flagsOf(root)
	if *writeDocs {
		if err := os.WriteFile(flagsPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(flagsPage)
	if err != nil || string(written) != page {
		t.Errorf("%s is not what the program says (%v); go test ./cmd/weir -run Flags -write-docs writes it", flagsPage, err)
	}
}

// flagsOf returns a section for the command, if it runs and has flags, and for those below it.
func flagsOf(command *cobra.Command) (sections string) {
	rows := ""
	command.LocalFlags().VisitAll(func(f *pflag.Flag) {
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if f.Name != "help" && !f.Hidden {
			rows += fmt.Sprintf("| `%s` | %s |%s\n", strings.TrimSpace(name+" "+value), cell(usage), defaultOf(f))
		}
	})
	if command.Runnable() && rows != "" {
		sections = fmt.Sprintf("\n## %s\n\n%s.\n\n| flag | meaning | default |\n|---|---|---|\n%s", command.CommandPath(), command.Short, rows)
	}
	for _, below := range command.Commands() {
		if !below.Hidden && below.Name() != "completion" {
			sections += flagsOf(below)
		}
	}
	return sections
}

// defaultOf returns the last cell of a row.
func defaultOf(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "[]", "false", "0", "0s":
		return " |"
	}
	return " `" + f.DefValue + "` |"
}

func cell(text string) string { return strings.NewReplacer("|", `\|`, "<", `\<`).Replace(text) }
