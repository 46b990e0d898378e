package inspect

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/backtest"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/logrules"
	"github.com/weirflow/weir/cmd/weir/internal/rulefiles"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/internal/accesslog"
	"github.com/weirflow/weir/internal/replay"
)

// diff is a comparison of two files, and of their decisions on logs.
type diff struct {
	form    format
	logs    []string
	longest time.Duration
	host    logrules.Host
	written string // the format of the logs
	top     int
}

func diffCommand() *cobra.Command {
	var d diff
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Show what changes between two rules files, and for whom",
		Long: `Diff compares two rules files, or two directories of them. It shows the rules that
are added, removed or changed, the requests that each concerns, and whether keys
keep their counts. With --log it also decides the requests of a log by both
files, and shows which clients would be newly refused, and which no longer. The exit
code is 1 if the rules differ.`,
		Example: `  weir rules diff weir.yaml new.yaml
  weir rules diff --log access.log weir.yaml new.yaml
  weir rules diff --format json weir.yaml new.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error { return d.run(cmd, args) },
	}
	d.form.addFlag(cmd)
	cmd.Flags().StringArrayVar(&d.logs, "log", nil, "decide the requests of this access log `FILE` by both; may be repeated")
	cmd.Flags().DurationVar(&d.longest, "request-time", backtest.DefaultLongest, "the longest that a request may take, if the log does not say")
	cmd.Flags().StringVar(&d.written, "log-format", "", "read the logs in this `FORMAT`, as weir replay does; by default each shows its own")
	cli.Offer(cmd, "log-format", accesslog.Formats()...)
	d.host.AddFlag(cmd, "--log")
	cmd.Flags().IntVar(&d.top, "top", 10, "show the `N` clients of the log that notice most")
	return cmd
}

func (d *diff) run(cmd *cobra.Command, args []string) error {
	if err := d.form.check(); err != nil {
		return err
	}
	if len(args) != 2 {
		return cli.Misusef("name the old and the new file: weir rules diff weir.yaml new.yaml", "rules diff: %s, want two", cli.Plural(int64(len(args)), "argument"))
	}
	if err := d.checkLog(cmd.Flags().Changed); err != nil {
		return err
	}
	var files []backtest.File
	for _, path := range args {
		config, err := rulefiles.LoadFor("rules diff", path)
		if err != nil {
			return err
		}
		files = append(files, backtest.File{Name: path, Config: config})
	}
	changes := append([]rules.Change{}, rules.Diff(files[0].Config, files[1].Config)...)
	var value any = changes
	text := diffText(changes)
	if len(d.logs) > 0 {
		report, err := d.decide(cmd, files)
		if err != nil {
			return err
		}
		value = struct {
			Changes []rules.Change `json:"changes"`
			Log     replay.Report  `json:"log"`
		}{changes, report}
		s := cli.ScreenOf(cmd.OutOrStdout())
		text += "\n" + s.Wrap(cli.UnshownLines(report.Unshown, "key", "keys"), 2) + backtest.Text(report, 0, s)
	}
	if err := d.form.write("rules diff", cmd.OutOrStdout(), value, text); err != nil {
		return err
	}
	if len(changes) > 0 {
		return cli.Exit(1)
	}
	return nil
}

// checkLog refuses flags about logs that are out of bounds or would have no effect.
func (d *diff) checkLog(isSet func(flag string) bool) error {
	for _, flag := range []string{"request-time", "top", "log-format"} {
		if isSet(flag) && len(d.logs) == 0 {
			return cli.Misusef("name a log: --log access.log", "rules diff: --%s without --log", flag)
		}
	}
	return cmp.Or(d.host.Check("rules diff", "--log", len(d.logs) > 0), cli.NotNegative("request-time", d.longest, "0 takes requests to be instant"),
		cli.NotNegative("top", d.top, "0 shows no clients"))
}

// decide decides the requests of the logs by both files.
func (d *diff) decide(cmd *cobra.Command, files []backtest.File) (replay.Report, error) {
	reader, err := accesslog.NewReader(accesslog.Options{Format: d.written})
	if err != nil {
		return replay.Report{}, logrules.NoFormat(err)
	}
	run := logrules.Run{Command: "rules diff", Files: files, Logs: d.logs, In: cmd.InOrStdin(), Reader: reader, Longest: d.longest, Host: d.host,
		Options: backtest.Options{Top: d.top}, Progress: cli.NewProgress(cmd.ErrOrStderr(), cli.ProgressDelay)}
	defer run.Progress.Stop()
	report, err := run.Report()
	if err != nil {
		return report, err
	}
	run.Host.Tell(cmd.ErrOrStderr())
	if report.Unparsed > 0 {
		cmd.PrintErrf("weir: %s unparsed; weir replay shows them\n", cli.Plural(report.Unparsed, "line"))
	}
	if report.Keys == 0 {
		return report, cli.Fail(fmt.Errorf("rules diff: none of %s could be read", cli.Plural(report.Lines, "line")), "weir replay --config FILE says why")
	}
	return report, nil
}

// signs stand before the rules of a diff.
var signs = map[string]string{rules.Added: "+", rules.Removed: "-", rules.Changed: "~"}

func diffText(changes []rules.Change) string {
	if len(changes) == 0 {
		return "no rule changes\n"
	}
	var b strings.Builder
	for _, c := range changes {
		fmt.Fprintf(&b, "%s rule %s, %s", signs[c.Kind], c.Rule, c.Kind)
		switch c.Match {
		case "":
		case rules.Otherwise:
			b.WriteString(", for requests that other rules refuse")
		default:
			b.WriteString(", for requests of " + cli.Printable(c.Match))
		}
		b.WriteByte('\n')
		for _, f := range c.Old {
			fmt.Fprintf(&b, "    - %s: %s\n", f.Name, cli.Printable(f.Text))
		}
		for _, f := range c.New {
			fmt.Fprintf(&b, "    + %s: %s\n", f.Name, cli.Printable(f.Text))
		}
		switch {
		case c.Fresh != "":
			fmt.Fprintf(&b, "    keys start afresh: %s\n", cli.Printable(c.Fresh))
		case c.Keeps:
			b.WriteString("    keys keep what they have used\n")
		}
	}
	return b.String()
}
