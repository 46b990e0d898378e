package replay

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/backtest"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/picture"
	"github.com/weirflow/weir/cmd/weir/internal/screen"
	"github.com/weirflow/weir/internal/replay"
)

const long = `Replay reads access logs and reports what each limit would have admitted and
refused: in total, for the worst keys and in the worst minutes. It takes the time
from the log and decides as the daemon does. With two limits it also shows which
keys would notice the change from the first to the second.

With --config it decides by the rules of a file as weir serve does: rules match requests
by the attributes in the log, and all rules that match decide together. It reports each
rule, and which rules could not decide because the log lacks an attribute. With two
files it also shows which clients would be newly refused, and which no longer.

With --cost and --estimate it also shows what a reservation should hold for work
whose cost is known only when it ends: nothing, always --estimate-max, or what most
of the last calls of the key cost.

With --suggest it searches the log for limits that just meet a TARGET: token
buckets, windows of a minute and an hour, and a quota a day. It proposes the
tightest, and says why; --headroom 30% makes that number larger. A client is a
value of --key.
  refuse 0.1% of clients   refuse anything to at most this share of clients
  refuse 0.1% of requests  refuse at most this share of requests, like
                           'refuse 0.1%'
  spare 99.9%              refuse nothing to the clients below this percentile of
                           clients by requests
  at most 200/s in all     admit at most this within any second of the clock,
                           from all clients together

With --report it also writes a page with pictures and tables, one file to send by
mail. Keys in it are masked, unless --names shows them, or --customers names them.

A FILE is an access log, plain, gzip or zstd, of nginx, Apache, Caddy, Traefik, Envoy,
HAProxy, an AWS load balancer, CloudFront, S3, Cloudflare, Google Cloud or IIS,
JSON lines with any names of fields, or CSV, also as Kubernetes, Docker or syslog
wrap it. Its first 1,000 lines show the format, or the lines that a pipe brings in 2
seconds; the report names the format, and the fields taken for the time and the client.
--log-format sets it. Without a FILE, or with '-', replay reads standard input, until
its end or until Ctrl-C. Several files are one stream. The order of the lines does not
matter, except with --config: it decides lines of one instant in the order of the log.

A key consists of one field or several: ip, method, path (without the query),
query, uri, status, user, referer, agent, host, header.NAME. Any other name is a
variable of a pattern, a column, or a field of JSON lines, nested ones with dots.
The ip, and any field whose name ends in ip or addr, is an address without its
port, the /64 of an IPv6 address, or the client in a list by --trust, as in the daemon.
Replay counts lines without a readable time or key as unparsed, with the reason,
and shows the first of them.`

func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "replay {--limit LIMIT | --config FILE | --suggest TARGET} [FILE...]",
		Short: "Show what limits would have done to an access log, or suggest limits",
		Long:  long,
		Example: `  weir replay --limit 'token bucket 1/s burst 10' access.log
  weir replay --limit 'token bucket 1/s burst 10' --limit 'sliding window 60/1m' access.log.1.gz access.log
  weir replay --key ip,path --limit 'token bucket 1/s burst 5 and fixed window 1000/1d' access.log
  weir replay --key request.headers.X-Api-Key.0 --limit 'fixed window 100/1m' requests.jsonl
  weir replay --suggest 'refuse 0.1% of clients' --plot tradeoff.svg access.log
  weir replay --limit 'token bucket 2/s burst 6' --report report.html access.log
  weir replay --key user --cost tokens --limit 'quota 1000000/day' --estimate p95 --estimate-max 8000 --took 20s calls.jsonl
  weir replay --key key --cost cost --limit 'token bucket 5/s burst 20' record.jsonl
  zcat access.log.*.gz | weir replay --limit 'sliding log 5/10s' --format json --top 3
  weir rules import nginx nginx.conf > weir.yaml && weir replay --config weir.yaml access.log
  weir replay --config weir.yaml --config new.yaml access.log`,
		RunE: func(cmd *cobra.Command, files []string) error {
			o.isSet = cmd.Flags().Changed
			return o.run(cmd.Context(), files, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	o.AddFlags(cmd, "limit each value of `FIELD` separately, or of several: --key ip,path; may be repeated",
		"try this `LIMIT`, or several joined with 'and'; repeat the flag to compare", "what is admitted over time, or the trade-off of suggestions,")
	flags.StringVar(&o.suggest, "suggest", "", "suggest limits for this `TARGET` instead of trying one")
	flags.StringVar(&o.headroom, "headroom", "", "with --suggest: propose a limit that is larger by this `SHARE` than the log needs, such as 30%")
	flags.StringVar(&o.cost, "cost", "", "read the cost of each line from this `FIELD` of JSON lines; without it each costs 1")
	flags.IntVar(&o.top, "top", 10, "show the `N` worst keys and minutes")
	flags.BoolVar(&o.names, "names", false, "show keys in the page of --report, which masks them by default")
	flags.StringVar(&o.customers, "customers", "", "name customers in the output and in the page of --report, from lines of a key and a name in this `FILE`")
	flags.Float64Var(&o.price, "price", 0, "with --config: add up the costs, at this `PRICE` a unit")
	o.reading.addFlags(cmd)
	o.holds.addFlags(cmd)
	flags.Lookup("config").Usage = "decide by the rules of this `FILE`, or of a directory, as weir serve does; repeat the flag to compare files"
	flags.DurationVar(&o.longest, "request-time", backtest.DefaultLongest, "with --config: the longest that a request may take, if the log does not say")
	o.host.AddFlag(cmd, "--config")
	cli.Offer(cmd, "suggest", targetForms...)
	cli.Offer(cmd, "cost", "cost")
	return cmd
}

// run replays the files and writes the report to out.
func (o *options) run(ctx context.Context, files []string, in io.Reader, out, errs io.Writer) error {
	key, candidates, err := o.parse()
	if err != nil {
		return err
	}
	if err := o.Check(out); err != nil {
		return err
	}
	if len(files) == 0 {
		files = []string{"-"}
	}
	if files, err = logsOf(files); err != nil {
		return err
	}
	if err := o.Apart(files, in, out); err != nil {
		return err
	}
	if len(o.Config) > 0 {
		return o.runRules(ctx, files, in, out, errs)
	}
	progress := cli.NewProgress(errs, cli.ProgressDelay)
	defer progress.Stop()
	traffic, err := o.read(ctx, key, files, in, progress)
	if err != nil {
		return err
	}
	report, err := traffic.Replay(candidates, o.replayOptions(progress))
	if err != nil {
		return cli.Fail(err, "this is a bug in weir: please report it with the limit text")
	}
	report.Name(o.named)
	if o.holds.percent > 0 {
		if report.Holds, err = o.holds.try(traffic, candidates); err != nil {
			return err
		}
	}
	if o.suggest != "" {
		err = o.writeSuggestions(traffic, key, files, out, progress)
	} else {
		progress.Stop()
		err = o.print(out, key, files, report)
	}
	if err != nil {
		return err
	}
	printUnparsed(errs, traffic.Samples(), report)
	return o.reading.checkCounted(report)
}

// read reads the files until their end, or until a signal: then what was read counts.
func (o *options) read(ctx context.Context, key replay.Key, files []string, in io.Reader, progress *cli.Progress) (*replay.Traffic, error) {
	ctx, stop := cli.UntilSignal(ctx)
	defer stop()
	reader, err := o.reading.reader(ctx.Done())
	if err != nil {
		return nil, err
	}
	traffic := replay.NewTraffic(reader, key)
	if o.cost != "" {
		traffic.CostFrom(o.cost)
	}
	for _, name := range files {
		if err := cli.ReadLog("replay", name, in, progress, traffic.ReadLog); err != nil {
			return nil, err
		}
	}
	return traffic, nil
}

func (o *options) print(out io.Writer, key replay.Key, files []string, report replay.Report) error {
	var drawn picture.Picture
	if report.Keys > 0 {
		drawn = timelineOf(files, report)
	}
	if err := o.writePage(files, key, report, nil); err != nil {
		return err
	}
	o.cut(&report)
	return o.Write(out, report, drawn, func(s screen.Screen, drawn string) string {
		return reportTable(key, report, s) + cli.Below(drawn)
	})
}
