package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
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
	page := pageOfFlags(root)
	if *writeDocs {
		if err := os.WriteFile(flagsPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(flagsPage)
	if err != nil || string(written) != page {
		t.Errorf("%s is not what the program says (%v); go test ./cmd/weir -run Flags -write-docs writes it", flagsPage, err)
	}
	root.LocalFlags().VisitAll(func(f *pflag.Flag) { f.Usage += "?" })
	if pageOfFlags(root) == page {
		t.Error("another text of a flag leaves the page as it is")
	}
}

// pageOfFlags returns the page. A flag that several commands have alike stands once.
func pageOfFlags(root *cobra.Command) string {
	commands := runnable(root)
	of := map[string][]string{} // the commands with a row
	for _, command := range commands {
		for _, row := range rowsOf(command) {
			of[row] = append(of[row], "`"+strings.TrimPrefix(command.CommandPath(), "weir ")+"`")
		}
	}
	page := "# Every flag\n\n`make docs` writes this page from the `--help` of each command. An empty value, as in `--since \"$UNSET\"`, is refused.\n" +
		"\n## In several commands\n\n| flag | meaning | default | of |\n|---|---|---|---|\n"
	for _, row := range slices.Sorted(maps.Keys(of)) {
		if len(of[row]) > 1 {
			page += row + " " + strings.Join(of[row], ", ") + " |\n"
		}
	}
	for _, command := range commands {
		own := slices.DeleteFunc(rowsOf(command), func(row string) bool { return len(of[row]) > 1 })
		if len(own) > 0 {
			page += "\n## " + command.CommandPath() + "\n\n| flag | meaning | default |\n|---|---|---|\n" + strings.Join(own, "\n") + "\n"
		}
	}
	return page
}

// runnable returns a command and those below it, without those that do nothing.
func runnable(command *cobra.Command) (all []*cobra.Command) {
	if command.Runnable() {
		all = append(all, command)
	}
	for _, below := range command.Commands() {
		if !below.Hidden && below.Name() != "completion" {
			all = append(all, runnable(below)...)
		}
	}
	return all
}

// rowsOf returns a row for each flag of a command.
func rowsOf(command *cobra.Command) (rows []string) {
	command.LocalFlags().VisitAll(func(f *pflag.Flag) {
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if f.Name != "help" && !f.Hidden {
			rows = append(rows, fmt.Sprintf("| `%s` | %s |%s", strings.TrimSpace(name+" "+value), cell(usage), defaultOf(f)))
		}
	})
	return rows
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
