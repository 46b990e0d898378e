package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/collect"
	"github.com/weirflow/weir/cmd/weir/internal/engineflags"
	"github.com/weirflow/weir/fetch"
)

// options are the flags of weir fetch.
type options struct {
	output       string
	perHost      string
	total        string
	bandwidth    string
	atOnce       int
	follow       bool
	depth        int
	count        int
	allowPrivate bool
	maxSize      string
	maxRedirects int
	timeout      time.Duration
	maxDelay     time.Duration
	agent        string
	shared       engineflags.Flags
}

func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "fetch [FILE]",
		Short: "Fetch a list of URLs into a folder, politely",
		Long: `Fetch reads URLs, one a line, from FILE or standard input, and saves each page in
a file below DIR. It fetches from many domains at once, and keeps a pace for
each registrable domain: www.example.com and img.example.com are one.

It obeys robots.txt and Crawl-delay, and waits when a server asks for it with
Retry-After or announces a limit. All domains share the bandwidth. It fetches
over http and https only, and refuses private addresses.

DIR/fetch.jsonl begins with a line that names its version, and gets a line of
JSON for each URL: its outcome, the reason, the file. The same line goes to
standard output unless that is a terminal. Run the same command again after an
interruption: it fetches the remaining URLs, and retries failed ones. Empty lines
and lines that begin with # are not URLs.

With --follow it also fetches the pages that a page links to on its own site,
breadth first, up to --depth links away from the list and --count links in all.

With --engine all crawlers that name the same Redis or database, on any machine,
share the pace of each domain, and the total if it is the same: those with the
same --name, or all without one. Give each a part of the list and a folder of
its own. While the server is away, requests wait for it, for 10 seconds.
--on-failure local goes on at a part of the paces, and allow at the full ones.

Fetch shows progress if standard error is a terminal. It exits with 1 if a URL
failed or a server refused it, for example with 404, and with 130 or 143 when a
signal interrupts it.`,
		Example: `  weir fetch urls.txt -o pages
  weir fetch urls.txt -o pages --per-host 1/5s --bandwidth 1MiB/s
  weir fetch urls.txt -o site --follow --depth 3 --count 500
  weir fetch urls.txt -o local --allow-private --per-host 10/s --at-once 4
  weir fetch urls.txt -o part --engine redis://127.0.0.1:6379
  cut -f 2 links.tsv | weir fetch -o pages | grep -v '"fetched"'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("fetch: %d files of URLs, want one", len(args))
			}
			return nil
		},
		RunE: o.run,
	}
	o.addFlags(cmd)
	return cmd
}

func (o *options) run(cmd *cobra.Command, args []string) error {
	if err := o.shared.Check(cmd.Flags().Changed); err != nil {
		return err
	}
	job, err := o.parse()
	if err != nil {
		return err
	}
	if err := cli.RequireOutput("fetch", cmd.OutOrStdout()); err != nil {
		return err
	}
	if err := o.apart(args, cmd.InOrStdin(), cmd.OutOrStdout()); err != nil {
		return err
	}
	list, err := openList(args, cmd.InOrStdin())
	if err != nil {
		return err
	}
	defer list.Close()
	ctx, lost := context.WithCancelCause(cmd.Context())
	defer lost(nil)
	engine, end, err := o.shared.Open(lost)
	if err != nil {
		return err
	}
	defer end()
	job.options.Engine, job.options.Name = engine, o.shared.Name
	ctx, stop := cli.UntilSignal(ctx)
	defer stop()
	return job.run(ctx, list, cmd.OutOrStdout(), cmd.ErrOrStderr())
}

func (o *options) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&o.output, "output", "o", "", "save pages and the journal in this `DIR`")
	flags.StringVar(&o.perHost, "per-host", "1/s", "`RATE` of requests to each registrable domain")
	flags.StringVar(&o.total, "total", "20/s", "`RATE` of all requests")
	flags.StringVar(&o.bandwidth, "bandwidth", "", "`RATE` of the bytes of all pages: 1MiB/s; the default is no limit")
	flags.IntVar(&o.atOnce, "at-once", 2, "have up to `N` requests to a domain in flight")
	flags.BoolVar(&o.follow, "follow", false, "fetch linked pages of the same site too")
	flags.IntVar(&o.depth, "depth", 5, "with --follow: go up to `N` links away from the list")
	flags.IntVar(&o.count, "count", 10_000, "with --follow: follow up to `N` links")
	flags.BoolVar(&o.allowPrivate, "allow-private", false, "fetch from private addresses too, such as 127.0.0.1 and 10.0.0.1")
	flags.StringVar(&o.maxSize, "max-size", "32MiB", "skip pages above this `SIZE`")
	flags.IntVar(&o.maxRedirects, "max-redirects", 5, "follow up to `N` redirects of a URL")
	flags.DurationVar(&o.timeout, "timeout", 30*time.Second, "give up on an answer that does not begin, or stalls, for this `TIME`")
	flags.DurationVar(&o.maxDelay, "max-crawl-delay", time.Minute, "skip hosts whose robots.txt asks for a Crawl-delay above this `TIME`")
	flags.StringVar(&o.agent, "agent", "weirfetch", "send this User-Agent; its first word is the name in robots.txt")
	o.shared.Add(cmd, "crawlers")
	_ = cmd.MarkFlagDirname("output") // fails only for an unknown flag
	cli.Offer(cmd, "per-host", "1/s", "1/5s", "10/m")
	cli.Offer(cmd, "total", "20/s", "100/m")
	cli.Offer(cmd, "bandwidth", "200KiB/s", "1MiB/s", "5MB/m")
	cli.Offer(cmd, "max-size", "1MiB", "32MiB", "1GiB")
}

// parse checks the command line.
func (o *options) parse() (j job, err error) {
	if err := o.check(); err != nil {
		return j, err
	}
	j = job{dir: o.output, follow: o.follow, count: o.count, options: fetch.Options{
		Agent: o.agent, AtOnce: o.atOnce, Redirects: o.maxRedirects, Timeout: o.timeout, MaxCrawlDelay: o.maxDelay, Transport: fetch.NewTransport(o.allowPrivate),
	}}
	if o.follow {
		j.options.Depth = o.depth
	}
	if j.options.PerHost, err = parseRequestRate("--per-host", o.perHost); err != nil {
		return j, err
	}
	if j.options.Total, err = parseRequestRate("--total", o.total); err != nil {
		return j, err
	}
	if o.bandwidth != "" {
		if j.options.Bandwidth, err = cli.ParseByteRate("--bandwidth", o.bandwidth); err != nil {
			return j, err
		}
	}
	if j.options.MaxBytes, err = cli.ParseSize(o.maxSize); err != nil {
		return j, cli.Misuse(fmt.Errorf("--max-size: %w", err), "a size looks like 200KiB, 32MiB or 1GB")
	}
	return j, nil
}

func (o *options) check() error {
	if o.output == "" {
		return cli.Misuse(errors.New("fetch: no folder for the pages"), "for example: weir fetch urls.txt -o pages")
	}
	for _, bounded := range []struct {
		flag       string
		value, max int
	}{{"--at-once", o.atOnce, 256}, {"--depth", o.depth, 1000}, {"--count", o.count, 10_000_000}, {"--max-redirects", o.maxRedirects, 100}} {
		if bounded.value < 1 || bounded.value > bounded.max {
			return cli.Misuse(fmt.Errorf("%s %d is not within 1 and %d", bounded.flag, bounded.value, bounded.max), "it is a whole number, like: "+bounded.flag+" 2")
		}
	}
	if o.timeout < time.Second || o.timeout > time.Hour {
		return cli.Misuse(fmt.Errorf("--timeout %v is not within 1s and 1h", cli.Duration(o.timeout)), "it is a time like 30s or 2m")
	}
	if o.maxDelay < time.Second || o.maxDelay > 24*time.Hour {
		return cli.Misuse(fmt.Errorf("--max-crawl-delay %v is not within 1s and 24h", cli.Duration(o.maxDelay)), "it is a time like 1m or 10m")
	}
	if strings.TrimSpace(o.agent) == "" || strings.ContainsFunc(o.agent, func(c rune) bool { return c < ' ' || c > '~' }) {
		return cli.Misuse(fmt.Errorf("--agent: %q is not a User-Agent of visible ASCII", o.agent), "for example: --agent 'mybot/1.0 (+https://example.com/bot)'")
	}
	return nil
}

// parseRequestRate reads a rate of requests, with a hint at its form.
func parseRequestRate(flag, text string) (weir.Rate, error) {
	const form = "a rate looks like: 1/s, 10/m or 1/5s"
	rate, err := weir.ParseRate(text)
	if err != nil {
		return rate, cli.LimitError(flag, err, []string{form})
	}
	if _, err := weir.New(weir.TokenBucket{Rate: rate, Burst: 1}); err != nil {
		return rate, cli.LimitError(flag, err, []string{form})
	}
	return rate, nil
}

// apart refuses a list of URLs that is the journal of the crawl, or the output.
func (o *options) apart(args []string, in io.Reader, out io.Writer) error {
	list := cli.StreamUse("standard input", in, false)
	if len(args) > 0 && args[0] != "-" {
		list = cli.FileUse{Purpose: "the list", Path: args[0]}
	}
	return cli.Apart("fetch", list, cli.FileUse{Purpose: "the journal", Path: filepath.Join(o.output, collect.JournalName), Writes: true}, cli.StreamUse("standard output", out, true))
}

// openList opens the file of URLs, or standard input.
func openList(args []string, in io.Reader) (io.ReadCloser, error) {
	if len(args) == 0 || args[0] == "-" {
		if file, ok := in.(*os.File); ok && cli.IsTerminal(file) && len(args) == 0 {
			return nil, cli.Misuse(errors.New("fetch: no URLs"), "give a file of URLs: weir fetch urls.txt -o pages; to type them: weir fetch - -o pages")
		}
		return io.NopCloser(in), nil
	}
	file, err := os.Open(args[0])
	if err != nil {
		return nil, cli.Fail(fmt.Errorf("fetch: %w", err), "it is a text file with a URL in each line")
	}
	return file, nil
}
