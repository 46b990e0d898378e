package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
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
				return unwritable("completion", root.GenBashCompletionV2(out, true))
			case "zsh":
				return unwritable("completion", root.GenZshCompletion(out))
			case "fish":
				return unwritable("completion", root.GenFishCompletion(out, true))
			}
			return usageWithHint(fmt.Errorf("completion: no such shell: %q", args[0]), "try: weir completion bash, zsh or fish")
		},
	}
}

// offer makes a shell complete a flag with these values instead of file names.
func offer(cmd *cobra.Command, flag string, values ...string) {
	fixed := cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	_ = cmd.RegisterFlagCompletionFunc(flag, fixed) // fails only for an unknown flag
}

// completeLimit offers the examples of limits that begin with the text. After "and" it completes another limit.
func completeLimit(examples []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, text string) (texts []string, _ cobra.ShellCompDirective) {
		const and = " and "
		last := 0
		if at := strings.LastIndex(text, and); at >= 0 {
			last = at + len(and)
		}
		for _, example := range examples {
			if strings.HasPrefix(example, text[last:]) {
				texts = append(texts, text[:last]+example)
			}
		}
		return texts, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// completeRule completes the limit after the name of a rule.
func completeRule(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
	name, limit, named := strings.Cut(text, "=")
	if !named {
		return []string{cmp.Or(name, "default") + "="}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	limits, directive := completeLimit(ruleLimits)(cmd, args, limit)
	for i := range limits {
		limits[i] = name + "=" + limits[i]
	}
	return limits, directive
}

// completePace offers rates and limits for the argument of weir pace.
func completePace(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return completeLimit(append([]string{"5/s", "100/m"}, paceLimits...))(cmd, args, text)
}
