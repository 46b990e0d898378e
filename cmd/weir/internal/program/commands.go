package program

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
)

// helpCommand replaces cobra's help command, which accepts an unknown topic.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:                   "help [COMMAND]",
		Short:                 "Show what a command does, its flags and examples",
		Example:               "  weir help serve",
		DisableFlagsInUseLine: true,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			if len(args) == 0 {
				for _, c := range cmd.Root().Commands() {
					if c.Hidden {
						continue
					}
					names = append(names, c.Name())
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err == nil && len(rest) > 0 {
				err = fmt.Errorf("unknown command %q for %q", rest[0], about.CommandPath())
			}
			if err != nil {
				return commandLineError(about, err)
			}
			return about.Help()
		},
	}
}

// commandLineError explains why no command ran. Cobra's own error of an unknown command may end in similar names.
func commandLineError(cmd *cobra.Command, err error) error {
	hint := fmt.Sprintf("'%s --help' shows its flags and examples", cmd.CommandPath())
	var name, of string
	if _, other := fmt.Sscanf(err.Error(), "unknown command %q for %q", &name, &of); other != nil {
		return cli.Misuse(flagError(err), append(renamedFlag(err), hint)...)
	}
	return cli.UnknownCommand(cmd, name, hint)
}

// renamedFlag returns a hint for a flag that has another name now.
func renamedFlag(err error) []string {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedName() == "lease" {
		return []string{"--lease is --prefetch now; a lease is the time after which a slot comes back, as in concurrency 20 lease 30s"}
	}
	return nil
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

// emptyFlag refuses an empty text, like that of --tokens "$UNSET". It would count as if the flag were absent, or name nothing.
func emptyFlag(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		many, repeatable := f.Value.(pflag.SliceValue)
		if repeatable && slices.Contains(many.GetSlice(), "") || f.Value.Type() == "string" && f.Value.String() == "" {
			err = fmt.Errorf("--%s is empty: leave it out, or give it a value", f.Name)
		}
	})
	return err
}

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

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version and the commit",
		Example: "  weir version",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printVersion(cmd.OutOrStdout())
		},
	}
}

// printVersion prints the version and the commit for weir version and weir --version.
func printVersion(out io.Writer) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	_, err := io.WriteString(out, versionText(info))
	return cli.Unwritable("version", err)
}

// versionText names the module's version as the Go tool stamped it, a tag or one made from the commit, and the commit.
// The Go tool knows no commit of a module that it downloaded, and none with -buildvcs=false.
func versionText(info *debug.BuildInfo) string {
	version := strings.Trim(cmp.Or(info.Main.Version, "devel"), "()")
	stamped := map[string]string{}
	for _, s := range info.Settings {
		stamped[s.Key] = s.Value
	}
	commit := cmp.Or(stamped["vcs.revision"], "unknown")
	if at := stamped["vcs.time"]; at != "" {
		commit += " of " + at
	}
	if stamped["vcs.modified"] == "true" {
		commit += ", modified"
	}
	text := fmt.Sprintf("weir %s %s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if commit == "unknown" && version != "devel" {
		return text // the version names the commit
	}
	return text + "commit " + commit + "\n"
}
