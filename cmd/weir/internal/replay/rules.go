package replay

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/backtest"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/logrules"
	"github.com/weirflow/weir/cmd/weir/internal/picture"
	"github.com/weirflow/weir/cmd/weir/internal/screen"
	"github.com/weirflow/weir/internal/replay"
)

// checkRules refuses flags that have no meaning beside rules, which have keys and costs of their own.
func (o *options) checkRules(key replay.Key) error {
	const hint = "for example: weir replay --config weir.yaml access.log"
	switch {
	case len(o.Limits) > 0 || o.suggest != "":
		return cli.Misuse(errors.New("replay: --config excludes --limit and --suggest"), "write the limit into a file, and compare: --config weir.yaml --config new.yaml", hint)
	case key.String() != "ip":
		return cli.Misuse(errors.New("replay: --config excludes --key"), "rules name their own keys, and clients are counted by address", hint)
	case o.cost != "" || o.holds.estimate != "":
		return cli.Misuse(errors.New("replay: --config excludes --cost and --estimate"), "rules name their own costs: cost: {from: ATTRIBUTE}", hint)
	}
	return cli.NotNegative("request-time", o.longest, "0 takes requests to be instant")
}

// runRules decides the requests of logs by the rules of files.
func (o *options) runRules(ctx context.Context, logs []string, in io.Reader, out, errs io.Writer) error {
	files, err := logrules.Load("replay", o.Config)
	if err != nil {
		return err
	}
	ctx, stop := cli.UntilSignal(ctx)
	defer stop()
	reader, err := o.reading.reader(ctx.Done())
	if err != nil {
		return err
	}
	run := logrules.Run{Command: "replay", Files: files, Logs: logs, In: in, Reader: reader, Longest: o.longest, Host: o.host,
		Options: o.backtestOptions(), Progress: cli.NewProgress(errs, cli.ProgressDelay)}
	defer run.Progress.Stop()
	report, err := run.Report()
	if err != nil {
		return err
	}
	report.Name(o.named)
	if err := o.writePageOfRules(run.Logs, files, report); err != nil {
		return err
	}
	o.cut(&report)
	if err := o.printRules(out, run.Logs, report); err != nil {
		return err
	}
	printUnparsed(errs, reader.Samples(), report)
	run.Host.Tell(errs)
	return o.reading.checkCounted(report)
}

func (o *options) printRules(out io.Writer, logs []string, report replay.Report) error {
	drawn := report
	drawn.Limits = slices.DeleteFunc(slices.Clone(report.Limits), func(l replay.LimitReport) bool { return l.Refused == 0 && !backtest.OfFile(l) })
	var plot picture.Picture
	if report.Keys > 0 {
		plot = timelineOf(logs, drawn)
	}
	return o.Write(out, report, plot, func(s screen.Screen, drawn string) string {
		var b strings.Builder
		b.WriteString(s.Wrap(cli.UnshownLines(report.Unshown, "key", "keys"), 2))
		writeHead(&b, backtest.Seen(report), report, s)
		b.WriteString(backtest.Text(report, o.price, s))
		for _, l := range report.Limits {
			who := cmp.Or(l.Subject, "key")
			if backtest.OfFile(l) {
				who = backtest.Who(report)
			}
			writeWorst(&b, who, l, s)
		}
		return b.String() + cli.Below(drawn)
	})
}
