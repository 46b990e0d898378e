package program

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
)

func completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a script that completes weir's commands and flags in a shell",
		Example: `  source <(weir completion bash)
  weir completion zsh > "${fpath[1]}/_weir"
  weir completion fish > ~/.config/fish/completions/weir.fish`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("completion: %d shells named, want one", len(args))
			}
			return nil
		},
		ValidArgs:             []string{"bash", "zsh", "fish"},
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return cli.Unwritable("completion", root.GenBashCompletionV2(out, true))
			case "zsh":
				return cli.Unwritable("completion", root.GenZshCompletion(out))
			case "fish":
				return cli.Unwritable("completion", root.GenFishCompletion(out, true))
			}
			return cli.Misuse(fmt.Errorf("completion: no such shell: %q", args[0]), "try: weir completion bash, zsh or fish")
		},
	}
}
