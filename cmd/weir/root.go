package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

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
	if !*started { // no command ran: the command line itself is wrong
		err = commandLineError(cmd, err)
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

// commandLineError explains why no command ran.
func commandLineError(cmd *cobra.Command, err error) error {
	hint := fmt.Sprintf("'%s --help' shows its flags and examples", cmd.CommandPath())
	text, meant, mistyped := strings.Cut(err.Error(), suggestionMark)
	if !mistyped {
		return usageWithHint(flagError(err), hint)
	}
	return usageWithHint(errors.New(text), "did you mean 'weir "+strings.Join(strings.Fields(meant), "' or 'weir ")+"'?", hint)
}

// suggestionMark is the text that cobra writes between an unknown command and similar names.
const suggestionMark = "\n\nDid you mean this?\n"

// rootCommand returns the root command. *started is true once a command has accepted its command line.
func rootCommand() (root *cobra.Command, started *bool) {
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
	root.AddCommand(serveCommand(), replayCommand(), simulateCommand(), checkCommand(), paceCommand(), fetchCommand(), versionCommand(), completionCommand())
	return root, started
}
