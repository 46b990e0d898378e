package program

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/check"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/fetch"
	"github.com/weirflow/weir/cmd/weir/internal/pace"
	"github.com/weirflow/weir/cmd/weir/internal/replay"
	"github.com/weirflow/weir/cmd/weir/internal/serve"
	"github.com/weirflow/weir/cmd/weir/internal/simulate"
)

// Run runs the program with the arguments and streams, and returns its exit code.
func Run(args []string, in io.Reader, out, errs io.Writer) int {
	root, started := Root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	cmd, err := root.ExecuteC()
	if err == nil {
		return 0
	}
	if !*started { // no command ran: the command line itself is wrong
		err = commandLineError(cmd, err)
	}
	return cli.Report(errs, err)
}

// commandLineError explains why no command ran.
func commandLineError(cmd *cobra.Command, err error) error {
	hint := fmt.Sprintf("'%s --help' shows its flags and examples", cmd.CommandPath())
	text, meant, mistyped := strings.Cut(err.Error(), suggestionMark)
	if !mistyped {
		return cli.Misuse(flagError(err), hint)
	}
	return cli.Misuse(errors.New(text), "did you mean 'weir "+strings.Join(strings.Fields(meant), "' or 'weir ")+"'?", hint)
}

// suggestionMark is the text that cobra writes between an unknown command and similar names.
const suggestionMark = "\n\nDid you mean this?\n"

// Root returns the root command. *started is true once a command has accepted its command line.
func Root() (root *cobra.Command, started *bool) {
	started = new(bool)
	showVersion := false
	root = &cobra.Command{
		Use:   "weir",
		Short: "Limit rates: serve decisions, pace a pipe, fetch pages, replay a log, or simulate",
		Long: `Weir limits rates.

It answers over HTTP whether a request may go ahead, lets the lines of a pipe
through at a rate, and replays access logs to show what limits would have done.
It also fetches pages politely, and compares limits on made-up traffic.`,
		Example: `  weir serve
  weir serve --rule 'login=token bucket 5/m burst 5'
  weir replay --limit 'token bucket 1/s burst 10' access.log
  weir pace 5/s < urls.txt | xargs -n 1 curl -sO
  weir fetch urls.txt -o pages
  weir simulate
  weir replay --help`,
		// Without Args, cobra looks for a mistyped command before it reads flags.
		RunE: func(cmd *cobra.Command, _ []string) error {
			if showVersion {
				return printVersion(cmd.OutOrStdout())
			}
			return cmd.Help()
		},
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRun:  func(*cobra.Command, []string) { *started = true },
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.Flags().BoolVar(&showVersion, "version", false, "print the version and the commit")
	root.SetHelpCommand(helpCommand())
	root.AddCommand(serve.Command(), replay.Command(), simulate.Command(), check.Command(), pace.Command(), fetch.Command(), versionCommand(), completionCommand())
	return root, started
}

// flagError rewrites an error of the flag parser for users who do not know Go.
func flagError(err error) error {
	reason, what := errors.Unwrap(err), ""
	switch {
	case reason == nil:
		return err
	case errors.Is(reason, strconv.ErrSyntax):
		what = "not a whole number"
	case errors.Is(reason, strconv.ErrRange):
		what = "above 64 bits"
	case strings.HasPrefix(reason.Error(), "time: "):
		what = "not a duration like 500ms, 10s or 1h30m"
	default:
		return err
	}
	return errors.New(strings.Replace(err.Error(), reason.Error(), what, 1))
}
