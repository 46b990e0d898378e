package program

import (
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/check"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/ctl"
	"github.com/weirflow/weir/cmd/weir/internal/fetch"
	"github.com/weirflow/weir/cmd/weir/internal/inspect"
	"github.com/weirflow/weir/cmd/weir/internal/pace"
	"github.com/weirflow/weir/cmd/weir/internal/replay"
	"github.com/weirflow/weir/cmd/weir/internal/serve"
	"github.com/weirflow/weir/cmd/weir/internal/simulate"
	"github.com/weirflow/weir/cmd/weir/internal/tryout"
)

// asRatelimit is the name of the program of envoyproxy/ratelimit. A program of this name is weir serve --compat envoyproxy,
// so that it can stand where the command cannot be chosen.
const asRatelimit = "ratelimit"

// RunAs is Run for a program of a name, which may be a path.
func RunAs(name string, args []string, in io.Reader, out, errs io.Writer) int {
	if filepath.Base(name) != asRatelimit {
		return Run(args, in, out, errs)
	}
	root, started := rootWith(serve.StandIn())
	return run(root, started, append([]string{"serve"}, args...), in, out, errs)
}

// Run runs the program with the arguments and streams, and returns its exit code.
func Run(args []string, in io.Reader, out, errs io.Writer) int {
	root, started := Root()
	return run(root, started, args, in, out, errs)
}

func run(root *cobra.Command, started *bool, args []string, in io.Reader, out, errs io.Writer) int {
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

// Root returns the root command. *started is true once a command has accepted its command line.
func Root() (root *cobra.Command, started *bool) { return rootWith(serve.Command()) }

// rootWith is Root with another command serve.
func rootWith(serving *cobra.Command) (root *cobra.Command, started *bool) {
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
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			err := emptyFlag(cmd.Flags())
			*started = err == nil
			return err
		},
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.Flags().BoolVar(&showVersion, "version", false, "print the version and the commit")
	root.SetHelpCommand(helpCommand())
	root.AddCommand(serving, serve.TokenCommand(), replay.Command(), simulate.Command(), check.Command(), pace.Command(), fetch.Command(),
		inspect.RulesCommand(), inspect.ExplainCommand(), ctl.Command(), tryout.Command(), versionCommand(), completionCommand())
	cli.PlainNumbers(root)
	return root, started
}
