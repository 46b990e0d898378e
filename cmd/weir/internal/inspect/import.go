package inspect

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/nginx"
)

func importCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Make a rules file from the configuration of another program",
		Long: `Import prints rules that decide like the configuration of another program. What
has no counterpart is named with its reason, in comments of the file and as errors.`,
		Example: `  weir rules import nginx nginx.conf > weir.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Misuse(fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath()), "try: weir rules import nginx")
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(importNginxCommand())
	return cmd
}

func importNginxCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "nginx FILE",
		Short: "Make a rules file from nginx's limit_req and limit_conn",
		Long: `Nginx reads a configuration with the files that it includes, and prints a rule for
each zone of limit_req and limit_conn that is in use. Keys become attributes, and
locations become paths. A map or geo block that leaves no key becomes an exception.`,
		Example: `  weir rules import nginx nginx.conf > weir.yaml`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			made, err := importNginx(args[0])
			if err != nil {
				return cli.Fail(fmt.Errorf("rules import nginx: %w", err), "docs/howto/gateways.md says what can be imported; nginx -t checks the configuration itself")
			}
			for _, n := range made.Notes {
				cmd.PrintErrln("weir:", cli.Printable(n.String()))
			}
			if len(made.Rules) == 0 {
				return cli.Fail(fmt.Errorf("rules import nginx: %s: no limit has a counterpart", args[0]), "limits are the directives limit_req and limit_conn")
			}
			text, err := made.YAML(args[0])
			if err != nil {
				return fmt.Errorf("rules import nginx: %w", err)
			}
			_, err = cmd.OutOrStdout().Write(text)
			return cli.Unwritable("rules import nginx", err)
		},
	}
}

// importNginx reads the file from the root of its volume, because includes may be absolute.
func importNginx(file string) (*nginx.Result, error) {
	full, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	root := filepath.VolumeName(full) + string(filepath.Separator)
	inside, err := filepath.Rel(root, full)
	if err != nil {
		return nil, err
	}
	made, err := nginx.Import(os.DirFS(root), filepath.ToSlash(inside))
	if bad, ok := errors.AsType[*os.PathError](err); ok {
		return nil, fmt.Errorf("%s: %w", filepath.Join(root, bad.Path), bad.Err)
	}
	return made, err
}
