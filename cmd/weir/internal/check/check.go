package check

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	explanations "github.com/weirflow/weir/cmd/weir/internal/explain"
	"github.com/weirflow/weir/cmd/weir/internal/rulefiles"
	"github.com/weirflow/weir/cmd/weir/internal/screen"
	"github.com/weirflow/weir/internal/replay"
)

func Command() *cobra.Command {
	var plot *cli.Plot
	var config []string
	cmd := &cobra.Command{
		Use:   "check {LIMIT | --config FILE}",
		Short: "Explain a limit in plain words",
		Long: `Check reads a limit and explains it: its capacity, what a burst does, the most
that it admits within any stretch of its period, and the memory of a key. For a
quota it also prints the next boundaries in its zone, and the zone data in use. It
refuses a text that is not a limit, and points at the word.

With --plot it draws the units over time of a caller that takes all it can after a
pause. For a warm up it draws the time between units while the limit warms up, from
its ceiling to its threshold.`,
		Example: `  weir check 'token bucket 10/s burst 20'
  weir check 'fixed window 100/1m'
  weir check 'quota 1000/month from day 31 in Europe/Paris'
  weir check 'token bucket 5/s burst 10 and fixed window 1000/1d'
  weir check 'fixed window 100/1m' --plot terminal
  weir check 'warm up 5/s over 30s' --plot curve.svg
  weir check --config weir.yaml`,
		ValidArgsFunction: complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(config) == 0 {
				return run(args, plot, cmd.OutOrStdout())
			}
			if len(args) > 0 || plot.Where != cli.PlotNone {
				return cli.Misusef("check one of its limits alone, to draw it: weir check LIMIT --plot FILE", "check: --config beside a limit or --plot")
			}
			return runConfig(config, plot, cmd.OutOrStdout())
		},
	}
	plot = cli.AddPlot(cmd, cli.PlotNone, "the units over time")
	cmd.Flags().StringArrayVar(&config, "config", nil, "explain the limits of the rules in this `FILE`, or in a directory")
	return cmd
}

// complete offers limits for the argument.
func complete(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return cli.CompleteLimit(append(cli.RuleLimits[:len(cli.RuleLimits):len(cli.RuleLimits)], cli.OneSubjectLimits...))(cmd, args, text)
}

func run(args []string, plot *cli.Plot, out io.Writer) error {
	if len(args) != 1 {
		return cli.Misuse(fmt.Errorf("check: %s, want one limit", cli.Plural(int64(len(args)), "argument")),
			"put the limit in quotes: weir check 'token bucket 10/s burst 20'")
	}
	candidate, err := replay.ParseCandidate(args[0])
	if err != nil {
		return cli.LimitError("check", err, cli.LimitForms)
	}
	if err := plot.Check(); err != nil {
		return err
	}
	if err := cli.RequireOutput("check", out); err != nil {
		return err
	}
	if err := plot.Apart(out); err != nil {
		return err
	}
	text := explain(candidate, cli.ScreenOf(out))
	if plot.Where != cli.PlotNone {
		drawn, err := limitPicture(candidate)
		if err != nil {
			return err
		}
		if err := plot.File(drawn); err != nil {
			return err
		}
		text += cli.Below(plot.Text(out, drawn))
	}
	_, err = io.WriteString(out, text)
	return cli.Unwritable("check", err)
}

// runConfig explains the limits of rules files, one below the other.
func runConfig(paths []string, plot *cli.Plot, out io.Writer) error {
	texts, err := rulefiles.Texts("check", paths)
	for i := 0; i < len(texts) && err == nil; i++ {
		if i > 0 {
			fmt.Fprintln(out)
		}
		err = run(texts[i:i+1], plot, out)
	}
	if err != nil {
		return err
	}
	config, err := rulefiles.LoadFor("check", paths...)
	if err != nil {
		return err
	}
	for _, r := range config.Rules {
		if r.After {
			fmt.Fprint(out, cli.ScreenOf(out).Wrap(fmt.Sprintf("\nrule %s\n  %s\n", r.Name, explanations.After(r.Most)), 2))
		}
	}
	return nil
}

// explain returns the explanation of each limit, and of their combination.
func explain(c replay.Candidate, s screen.Screen) string {
	var b strings.Builder
	for i, limit := range c.Limits {
		if i > 0 {
			b.WriteString("\n")
		}
		e := explanations.Of(limit)
		b.WriteString(s.Wrap(limit.String()+"\n", 2))
		for _, line := range [][2]string{{"capacity", e.Capacity}, {"burst", e.Burst}, {"windows", windowsOf(limit, time.Now())}, {"worst case", e.Worst}, {"memory", e.Memory}} {
			if line[1] == "" {
				continue
			}
			b.WriteString(s.Wrap(fmt.Sprintf("  %-10s  %s\n", line[0], line[1]), 14))
		}
	}
	if len(c.Limits) > 1 {
		b.WriteString(s.Wrap("\ntogether\n  "+strings.Join(explanations.Together, "\n  ")+"\n", 2))
	}
	return b.String()
}
