package inspect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/envoyproxy"
	"github.com/weirflow/weir/cmd/weir/internal/imported"
	"github.com/weirflow/weir/cmd/weir/internal/nginx"
	"github.com/weirflow/weir/cmd/weir/internal/rulefiles"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

func importCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Make a rules file from the configuration of another program",
		Long: `Import prints rules that decide like the configuration of another program. It names
settings without a counterpart, with the reason, in comments of the file and as errors.`,
		Example: `  weir rules import nginx nginx.conf > weir.yaml
  weir rules import envoyproxy config > weir.yaml`,
		RunE: cli.NoSubcommand("try: weir rules import nginx, or envoyproxy"),
	}
	shadow := cmd.PersistentFlags().Bool("shadow", false, "write rules that only watch: they decide and count, and refuse nothing")
	cmd.AddCommand(importNginxCommand(shadow), importEnvoyproxyCommand(shadow))
	return cmd
}

func importNginxCommand(shadow *bool) *cobra.Command {
	var logFormat bool
	cmd := &cobra.Command{
		Use:   "nginx FILE",
		Short: "Make a rules file from nginx's limit_req",
		Long: `Nginx reads a configuration with the files that it includes, and prints rules
that decide exactly like its limit_req. It leaves out each limit_conn, and each
limit_req that rules cannot express, and names its line: keep those in nginx. The file
- is standard input; the files that it includes lie in the current folder.

Weir replay tries the rules on a log. With --log-format the import prints a log format
for nginx, if the combined one lacks the host, the port or a header field that the
rules read.`,
		Example: `  weir rules import nginx nginx.conf > weir.yaml
  weir rules import nginx --log-format nginx.conf
  ssh proxy cat nginx.conf | weir rules import nginx -`,
		Args: cli.Arguments(1, 1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			made, err := importNginx(args[0], cmd.InOrStdin())
			if err != nil {
				return cli.Fail(fmt.Errorf("rules import nginx: %w", err), "docs/howto/gateways.md#move-nginxs-limits says what can be imported; nginx -t checks the configuration itself")
			}
			if logFormat && len(made.Rules) > 0 {
				return printLogFormat(cmd, made, args[0])
			}
			return printImported(cmd, made, *shadow, args[0], "limits are the directives limit_req; docs/howto/gateways.md#move-nginxs-limits says what can be imported")
		},
	}
	cmd.Flags().BoolVar(&logFormat, "log-format", false, "instead of the rules, print a log format of nginx with the fields that they read, for weir replay and weir rules diff --log")
	return cmd
}

// printLogFormat prints directives of nginx that log what the rules read.
func printLogFormat(cmd *cobra.Command, made *imported.Result, from string) error {
	text, err := made.YAML(from, cmd.Name())
	if err != nil {
		return err
	}
	config, err := rules.Parse(rules.Options{}, rules.File{Name: from, Content: text})
	if err != nil {
		return err
	}
	format := nginx.LogFormat(config.Mentions())
	_, err = fmt.Fprintf(cmd.OutOrStdout(), `# In the context http, and in each server with an access_log of its own:
log_format weir '%s';
access_log /var/log/nginx/weir.log weir;
# Then: weir replay --config weir.yaml --log-format '%s' /var/log/nginx/weir.log
`, format, format)
	return cli.Unwritable("rules import nginx", err)
}

func importEnvoyproxyCommand(shadow *bool) *cobra.Command {
	return &cobra.Command{
		Use:   "envoyproxy FILE or DIR",
		Short: "Make a rules file from the files of envoyproxy/ratelimit",
		Long: `Envoyproxy reads the files of envoyproxy/ratelimit, and prints a rule for each
rate_limit. weir serve --compat envoyproxy takes those files unchanged, and counts
as envoyproxy/ratelimit does. Our own rules take from all limits of a call, or from
none of them.`,
		Example: `  weir rules import envoyproxy config > weir.yaml`,
		Args:    cli.Arguments(1, 1, "FILE or DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			environment, err := envoyproxy.Read(os.Getenv, false)
			if err != nil {
				return cli.Misuse(fmt.Errorf("rules import envoyproxy: %w", err), "the variables are those of envoyproxy/ratelimit")
			}
			config, err := rulefiles.Load(rulefiles.Options{Stdin: cmd.InOrStdin(), Parse: envoyproxy.Parser(environment.Settings, &envoyproxy.Stats{})}, args[0])
			if err != nil {
				return rulefiles.RefusedForeign("rules import envoyproxy", err)
			}
			made := envoyproxy.Import(config.Foreign.(*envoyproxy.Config))
			return printImported(cmd, made, *shadow, args[0], "a descriptor has a limit in its rate_limit")
		},
	}
}

// printImported prints the rules on standard output, and notes on standard error.
func printImported(cmd *cobra.Command, made *imported.Result, shadow bool, from, hint string) error {
	name := "rules import " + cmd.Name()
	for _, n := range made.Notes {
		cmd.PrintErrln("weir:", cli.Printable(n.String()))
	}
	if len(made.Rules) == 0 {
		return cli.Fail(fmt.Errorf("%s: %s: no limit has a counterpart", name, from), hint)
	}
	if shadow {
		made.Shadow()
	}
	text, err := made.YAML(from, cmd.Name())
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	_, err = cmd.OutOrStdout().Write(text)
	return cli.Unwritable(name, err)
}

// importNginx reads the file from the root of its volume, because includes may be absolute.
func importNginx(file string, stdin io.Reader) (*imported.Result, error) {
	full, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	root := filepath.VolumeName(full) + string(filepath.Separator)
	inside, err := filepath.Rel(root, full)
	if err != nil {
		return nil, err
	}
	files := os.DirFS(root)
	if inside = filepath.ToSlash(inside); file == "-" {
		files = withStdin{files, inside, stdin}
	}
	made, err := nginx.Import(files, root, inside)
	if bad, ok := errors.AsType[*os.PathError](err); ok {
		return nil, fmt.Errorf("%s: %w", filepath.Join(root, bad.Path), bad.Err)
	}
	return made, err
}

// withStdin has standard input as one of the files.
type withStdin struct {
	fs.FS
	name string
	in   io.Reader
}

func (w withStdin) Open(name string) (fs.File, error) {
	if name == w.name {
		return stdinFile{w.in}, nil
	}
	return w.FS.Open(name)
}

type stdinFile struct{ io.Reader }

func (stdinFile) Stat() (fs.FileInfo, error) { return nil, fs.ErrInvalid }
func (stdinFile) Close() error               { return nil }
