package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// UnknownCommand is the error of a name that is no subcommand of parent. Its hints are the commands that were probably
// meant, and the one that always applies.
func UnknownCommand(parent *cobra.Command, name, hint string) error {
	err := fmt.Errorf("unknown command %q for %q", name, parent.CommandPath())
	meant := near(parent, name)
	if len(meant) == 0 {
		meant = named(parent.Root(), name)
	}
	if len(meant) == 0 {
		return Misuse(err, hint)
	}
	return Misuse(err, "did you mean '"+strings.Join(meant, "' or '")+"'?", hint)
}

// near returns the subcommands of parent with a similar name.
func near(parent *cobra.Command, name string) (paths []string) {
	parent.SuggestionsMinimumDistance = 2
	for _, similar := range parent.SuggestionsFor(name) {
		paths = append(paths, parent.CommandPath()+" "+similar)
	}
	return paths
}

// named returns the subcommands of that name below a command: top is weir ctl top.
func named(below *cobra.Command, name string) (paths []string) {
	for _, c := range below.Commands() {
		if !c.Hidden && c.Name() == name {
			paths = append(paths, c.CommandPath())
		}
		paths = slices.Concat(paths, named(c, name))
	}
	return paths
}

// NoSubcommand is the RunE of a command that only has subcommands: it prints its help, or refuses a name.
func NoSubcommand(hint string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return UnknownCommand(cmd, args[0], hint)
		}
		return cmd.Help()
	}
}

// Arguments refuses fewer arguments than least, or more than most. want says what a command takes.
func Arguments(least, most int, want string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && len(args) <= most {
			return nil
		}
		name := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
		return fmt.Errorf("%s: %s, want %s", name, Plural(int64(len(args)), "argument"), want)
	}
}
