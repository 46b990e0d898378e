package serve

import (
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
)

// TokenCommand returns the command token.
func TokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "token",
		Short:   "Make tokens for the callers of weir serve",
		Example: "  weir token new shop take",
		RunE:    cli.NoSubcommand("try: weir token new shop take"),
	}
	cmd.AddCommand(newTokenCommand())
	return cmd
}

func newTokenCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "new NAME SCOPE...",
		Short: "Make a token, and its line for weir serve --tokens",
		Long: `New prints a token, which nobody can guess, on standard error, and its line for
the file of weir serve --tokens on standard output. The file has only a hash of the
token. A scope is take, read, dynamic, refund, admin or metrics. take:login is that of the
rule login alone.`,
		Example: `  weir token new shop take >> tokens
  weir token new ops admin metrics >> tokens
  weir token new search take:search refund:search >> tokens`,
		Args: cli.Arguments(2, math.MaxInt, "NAME SCOPE..."),
		RunE: func(cmd *cobra.Command, args []string) error {
			token, form := auth.NewToken()
			line := strings.Join(append([]string{args[0], form}, args[1:]...), " ")
			if _, err := auth.Parse(line); err != nil {
				return cli.Misuse(fmt.Errorf("token new: %w", err), "a scope is take, read, dynamic, refund, admin or metrics, for one rule like take:login")
			}
			cmd.PrintErrln(token)
			_, err := fmt.Fprintln(cmd.OutOrStdout(), line)
			return cli.Unwritable("token new", err)
		},
	}
}
