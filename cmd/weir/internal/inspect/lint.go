package inspect

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/rulefiles"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

func lintCommand() *cobra.Command {
	var form format
	cmd := &cobra.Command{
		Use:   "lint FILE...",
		Short: "Report all errors of rules files",
		Long: `Lint reads rules files, or all files of a directory, as one configuration. It
reports every error with its line, what was expected, and what was probably meant.
It warns of rules, plans and keys that decide no request. The file - is standard
input. The exit code is 1 if there are errors, and 0 if there are only warnings.`,
		Example: `  weir rules lint weir.yaml
  weir rules lint rules.d
  weir rules import nginx nginx.conf | weir rules lint --format json -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := form.check(); err != nil {
				return err
			}
			if len(args) == 0 {
				return cli.Misusef("name the files, or a directory: weir rules lint weir.yaml", "rules lint: no file named")
			}
			config, warnings, err := rulefiles.Lint(rulefiles.Options{Stdin: cmd.InOrStdin()}, args...)
			if form == "json" {
				return lintJSON(cmd.OutOrStdout(), config, warnings, err)
			}
			if err != nil {
				return rulefiles.Refused("rules lint", err)
			}
			for _, w := range warnings {
				cmd.PrintErrln("weir: warning: " + w.String())
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", strings.Join(args, ", "), counts(config, warnings))
			return cli.Unwritable("rules lint", err)
		},
	}
	form.addFlag(cmd)
	return cmd
}

// counts counts the rules, those that only callers ask who name them, and the warnings.
func counts(config *rules.Config, warnings rules.Problems) string {
	text := cli.Plural(int64(len(config.Rules)), "rule")
	if byName := config.ByName(); len(byName) > 0 {
		text += fmt.Sprintf(", %d by name only", len(byName))
	}
	if n := len(warnings); n > 0 {
		text += ", " + cli.Plural(int64(n), "warning")
	}
	return text
}

// lintJSON writes the findings as JSON.
func lintJSON(out io.Writer, config *rules.Config, warnings rules.Problems, err error) error {
	problems, ok := err.(rules.Problems)
	if err != nil && !ok {
		return err
	}
	findings := struct {
		Rules    int            `json:"rules"`
		ByName   []string       `json:"by_name"` // the rules that only callers ask who name them
		Errors   rules.Problems `json:"errors"`
		Warnings rules.Problems `json:"warnings"`
	}{ByName: []string{}, Errors: rules.Problems{}, Warnings: rules.Problems{}}
	findings.Errors = append(findings.Errors, problems...)
	if config != nil {
		findings.Rules = len(config.Rules)
		findings.ByName = append(findings.ByName, config.ByName()...)
		findings.Warnings = append(findings.Warnings, warnings...)
	}
	if err := format("json").write("rules lint", out, findings, ""); err != nil {
		return err
	}
	if len(problems) > 0 {
		return cli.Exit(1)
	}
	return nil
}
