package inspect

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/ctl"
	"github.com/weirflow/weir/cmd/weir/internal/rulefiles"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// explainOptions are the flags of weir explain.
type explainOptions struct {
	config []string
	state  string
	cost   int64
	form   format
	daemon ctl.Client
}

// ExplainCommand returns the command explain.
func ExplainCommand() *cobra.Command {
	o := explainOptions{daemon: ctl.Client{Instead: "name the rules file: weir explain --config weir.yaml path=/login; or a daemon: --admin unix:weir.sock"}}
	cmd := &cobra.Command{
		Use:   "explain NAME=VALUE...",
		Short: "Show which rules decide a request, with which keys and limits",
		Long: `Explain shows how a request is decided: the rules that match, the key and the
limit of each, the rule that refuses or exempts, and the rule that is asked where one
refuses. A request is given by its attributes.

It asks this user's running daemon, or the one at --admin, which knows how full each key
is and when a refused request would be admitted. With --config it reads rules files
instead, and with --state the state file of a daemon; times then count from the save.`,
		Example: `  weir explain path=/login client=192.0.2.1
  weir explain --config weir.yaml method=POST path=/login client=192.0.2.1
  weir explain --config weir.yaml --format json path=/ header.x-api-key=secret
  weir explain --admin unix:weir.sock path=/login client=192.0.2.1`,
		ValidArgsFunction: cobra.FixedCompletions([]string{"method=", "host=", "path=", "client=", "header."}, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.config, "config", nil, "read the rules of `FILE`, or of all files in a directory; may be repeated")
	flags.StringVar(&o.state, "state", "", "read the states of keys from the state `FILE` of a daemon")
	flags.Int64Var(&o.cost, "cost", 1, "the `COST` that the caller names")
	o.form.addFlag(cmd)
	o.daemon.AddFlags(cmd)
	return cmd
}

func (o *explainOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.form.check(); err != nil {
		return err
	}
	switch {
	case len(o.config) == 0 && o.state != "":
		return cli.Misusef("name the rules of the states, too: weir explain --config weir.yaml --state FILE; a daemon has rules and states", "explain: --state without --config")
	case len(o.config) > 0 && o.daemon.Address != "":
		return cli.Misusef("the daemon of --admin has rules and states", "explain: --admin with --config")
	case o.cost < 0:
		return cli.Misusef("use a cost of 0 or more", "--cost %d: a negative cost", o.cost)
	}
	request, err := rules.ParseAttributes(args)
	if err != nil {
		return err
	}
	if len(o.config) == 0 {
		var e rules.Explanation
		if err := o.daemon.Call(cmd.Context(), http.MethodPost, "/v1/admin/explain", map[string]any{"attributes": request, "cost": o.cost}, &e, "answer", "rules"); err != nil {
			return err
		}
		return o.form.write("explain", cmd.OutOrStdout(), e, e.Text())
	}
	config, warnings, err := rulefiles.Lint(rulefiles.Options{}, o.config...)
	if err != nil {
		return rulefiles.Refused("explain", err)
	}
	engine, err := o.engine()
	if err != nil {
		return err
	}
	if err := config.CheckRequest("explain", request); err != nil {
		return err
	}
	e, err := config.Explain(context.Background(), request, o.cost, engine)
	if err != nil {
		return cli.Fail(fmt.Errorf("explain: %s", cli.Plain(err)), "is the state file that of a daemon with these rules?")
	}
	e.Warnings = warnings.Shown()
	return o.form.write("explain", cmd.OutOrStdout(), e, e.Text())
}

// engine returns the engine of --state, or nil.
func (o *explainOptions) engine() (weir.Engine, error) {
	if o.state == "" {
		return nil, nil
	}
	const hint = "name the file that weir serve --state writes"
	file, err := os.Open(o.state)
	if err != nil {
		return nil, cli.Fail(fmt.Errorf("explain: --state: %w", err), hint)
	}
	defer func() { _ = file.Close() }()
	engine, err := weir.LoadMemory(file, weir.MemoryOptions{})
	if err != nil {
		return nil, cli.Fail(fmt.Errorf("explain: --state: %s", cli.Plain(err)), hint)
	}
	return engine, nil
}
