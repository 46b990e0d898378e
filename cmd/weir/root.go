package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// The exit codes of every command.
const (
	exitFailed = 1
	exitUsage  = 2
)

// Main runs the program with the arguments and streams of the process and
// returns its exit code.
func Main() int {
	return run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

func run(args []string, in io.Reader, out, errs io.Writer) int {
	root, started := rootCommand()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	cmd, err := root.ExecuteC()
	if err == nil {
		return 0
	}
	if quiet, ok := errors.AsType[*quietExit](err); ok {
		return quiet.code
	}
	if !*started { // no command was reached: the command line itself is wrong
		err = usageWithHint(flagError(err), fmt.Sprintf("'%s --help' shows how it is called, with examples", cmd.CommandPath()))
	}
	printError(errs, err)
	return exitCode(err)
}

func exitCode(err error) int {
	if hinted, ok := errors.AsType[*hintedError](err); ok && hinted.usage {
		return exitUsage
	}
	return exitFailed
}

// rootCommand also tells whether a command had a good command line and ran.
func rootCommand() (root *cobra.Command, started *bool) {
	started = new(bool)
	root = &cobra.Command{
		Use:   "weir",
		Short: "Limit rates: serve decisions, pace a pipe, or replay a log against limits",
		Long: `Weir limits rates.

It answers over HTTP whether a key may go on, lets the lines of a pipe through
at a rate, and shows what limits would have done to the traffic of an access log.`,
		Example: `  weir serve
  weir serve --rule 'login=token bucket 5/m burst 5'
  weir replay --limit 'token bucket 1/s burst 10' access.log
  weir pace 5/s < urls.txt | xargs -n 1 curl -sO
  weir replay --help`,
		Args:              cobra.NoArgs,
		Run:               func(cmd *cobra.Command, _ []string) { _ = cmd.Help() },
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRun:  func(*cobra.Command, []string) { *started = true },
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.AddCommand(serveCommand(), replayCommand(), paceCommand(), versionCommand(), completionCommand())
	return root, started
}
