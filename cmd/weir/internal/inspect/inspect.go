// Package inspect has the commands that look at rules in files: weir rules and weir explain.
package inspect

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/rulefiles"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// RulesCommand returns the command rules.
func RulesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "Check, test, compare and import rules files",
		Long: `Rules checks, tests and compares files of rules, as weir serve reads them.
docs/reference/rules.md describes the files.`,
		Example: `  weir rules lint weir.yaml
  weir rules test weir.test.yaml
  weir rules diff weir.yaml new.yaml
  weir rules schema > rules.schema.json
  weir rules import nginx nginx.conf > weir.yaml`,
		RunE: cli.NoSubcommand("try: weir rules lint, test, diff, schema or import"),
	}
	cmd.AddCommand(lintCommand(), testCommand(), diffCommand(), schemaCommand(), importCommand())
	return cmd
}

func schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of rules files, for editors",
		Example: "  weir rules schema > rules.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(rules.Schema())
			return cli.Unwritable("rules schema", err)
		},
	}
}

// format is the value of --format.
type format string

func (f *format) addFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar((*string)(f), "format", "text", "print `text` or json")
	cli.Offer(cmd, "format", "text", "json")
}

func (f format) check() error {
	if f != "text" && f != "json" {
		return cli.Misusef("formats: text, json", "--format: %q is not a format", string(f))
	}
	return nil
}

// write writes the value as JSON, or as text.
func (f format) write(command string, out io.Writer, value any, text string) error {
	if f == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		return cli.Unwritable(command, encoder.Encode(value))
	}
	_, err := io.WriteString(out, text)
	return cli.Unwritable(command, err)
}

func testCommand() *cobra.Command {
	var form format
	cmd := &cobra.Command{
		Use:   "test FILE...",
		Short: "Make requests in virtual time and compare the answers",
		Long: `Test reads files of requests with the answers that they should get. It makes the
requests in virtual time, without a server. Each test begins without states. The
exit code is 1 if an answer differs.`,
		Example: `  weir rules test weir.test.yaml
  weir rules test --format json weir.test.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := form.check(); err != nil {
				return err
			}
			if len(args) == 0 {
				return cli.Misusef("name the files of tests: weir rules test weir.test.yaml", "rules test: no file named")
			}
			return runTests(args, form, cmd.OutOrStdout())
		},
	}
	form.addFlag(cmd)
	return cmd
}

func runTests(files []string, form format, out io.Writer) error {
	results := []rules.TestResult{}
	for _, file := range files {
		more, err := rulefiles.Test(file)
		if err != nil {
			return rulefiles.Refused("rules test", err)
		}
		results = append(results, more...)
	}
	var text strings.Builder
	failed := 0
	for _, r := range results {
		if r.Failure != "" {
			failed++
			fmt.Fprintf(&text, "FAIL %s:%d: %s\n     %s\n", r.File, r.Line, r.Name, r.Failure)
		}
	}
	fmt.Fprintf(&text, "%s, %s\n", cli.Plural(int64(len(results)), "test"), cli.Plural(int64(failed), "failure"))
	if err := form.write("rules test", out, results, text.String()); err != nil {
		return err
	}
	if failed > 0 {
		return cli.Exit(1)
	}
	return nil
}
