package pace

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/filter"
)

func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "pace RATE|LIMIT [-- COMMAND…]",
		Short: "Let the lines of a pipe through at a rate",
		Long: `Pace copies standard input to standard output and holds back each line until
the limit admits it. The first line goes at once. The output equals the input,
byte for byte.

RATE is a count and a period: 5/s, 100/m, 1/1m30s. LIMIT is any limit except a
concurrency and 'deny all', in quotes: 'rate gate 2/s', 'sliding window 100/m'.
A line waits for several limits at once: '5/s and fixed window 10000/d'.

With --engine all pipes that name the same Redis or database, on any machine,
share one pace: those with the same --name, or without it those with the same
limits. While the server is away, lines wait for it, for 10 seconds. --on-failure
local lets them through at a part of the limits, and allow without a limit: such
pipes ask the server line by line, without an order between pipes.

With --key each host, or each value of a column, has a limit of its own. Lines
of one key do not hold up lines of another, and only lines of one key stay in
order. With --fair all keys share one limit and take turns. Lines without the
field share one key. Pace holds back up to 16384 lines or 16 MiB; then it stops
reading until some have gone.

With a COMMAND after --, pace runs it for each line instead of writing the line,
which replaces {} in the arguments, or is the last of them. No shell reads it. At
most --at-once commands run at a time, default 1: a filter cannot know when the
work on a line ends, so only commands can be counted. These slots are a limit
beside the others, taken at the same instant. Each key has its own, unless --fair,
and with --engine pipes of the same name share them. The outputs of commands
that run at a time do not mix: each is written when its command ends, or in whole
lines above 1 MiB. At the end pace names the commands that failed, and exits
with 1 if there are any.

Pace shows progress if standard error is a terminal and, without a COMMAND,
standard output is not.
It exits with 141 when the reader of the pipe goes away, and with 130 or 143
when a signal interrupts it, like other filters.`,
		Example: `  weir pace 5/s < urls.txt | xargs -n 1 curl -sO
  weir pace 100/m --burst 10 < jobs.txt | while read -r job; do echo "$job"; done
  weir pace 20/s --warmup 30s < urls.txt | xargs -n 1 -P 8 curl -sO
  weir pace 1/s --key host < urls.txt | xargs -n 1 -P 8 curl -sO
  weir pace 10/s --key 1 --delimiter , --fair < tenants.csv
  weir pace 'rate gate 2/s' < urls.txt
  weir pace '10/s and fixed window 10000/d' < urls.txt
  weir pace --bytes 200KiB/s < backup.tar > /mnt/slow/backup.tar
  weir pace --bytes 10KiB/s --key 1 < logs.txt
  weir pace 100/10s --engine redis://127.0.0.1:6379 --name vendor < jobs.txt
  weir pace '100/10s and fixed window 10000/d' --at-once 5 < urls.txt -- curl -sO`,
		ValidArgsFunction: complete,
		RunE:              o.run,
	}
	flags := cmd.Flags()
	flags.StringVar(&o.bytes, "bytes", "", "pace bytes instead of lines at this `RATE`: 200KiB/s, 5MB/m")
	flags.StringVar(&o.burst, "burst", "", "let up to `N` lines through at once after a pause; with --bytes a size like 64KiB")
	flags.DurationVar(&o.warmup, "warmup", 0, "start at a third of the rate and reach the full rate in this `TIME`")
	flags.StringVar(&o.key, "key", "", "pace each key separately; `FIELD` is host (of a URL in the line) or a column number from 1")
	flags.StringVar(&o.delimiter, "delimiter", "", "split columns at this `TEXT` instead of white space")
	flags.BoolVar(&o.fair, "fair", false, "let all keys share one limit and take turns")
	flags.Int64Var(&o.atOnce, "at-once", 1, "run at most `N` commands at a time")
	o.shared.Add(cmd, "pipes")
	cli.Offer(cmd, "key", "host")
	return cmd
}

// run paces as the command line says.
func (o *options) run(cmd *cobra.Command, args []string) error {
	args, command, err := splitCommand(cmd, args)
	if err != nil {
		return err
	}
	if err := o.shared.Check(cmd.Flags().Changed); err != nil {
		return err
	}
	ctx, lose := context.WithCancelCause(cmd.Context())
	defer lose(nil)
	o.lost = lose
	f, err := o.parse(args, command)
	if err != nil {
		return err
	}
	defer f.close()
	if err := cli.RequireOutput("pace", cmd.OutOrStdout()); err != nil {
		return err
	}
	if err := cli.Apart("pace", cli.StreamUse("standard input", cmd.InOrStdin(), false), cli.StreamUse("standard output", cmd.OutOrStdout(), true)); err != nil {
		return err
	}
	ctx, stop := cli.UntilSignal(ctx)
	defer stop()
	return f.run(ctx, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
}

// run copies in to out. It returns a quietExit where other filters end silently.
func (f job) run(ctx context.Context, in io.Reader, out, errs io.Writer) error {
	grace := interruptGrace
	var shown *progress
	if f.command != nil {
		grace += commandGrace
		shown = newCommandProgress(in, errs)
		f.options.Work = f.command.work(out, errs, shown)
	} else {
		shown = newProgress(in, out, errs, f.options.Chunk > 0)
		f.options.Moved = shown.moved
	}
	copying, err := filter.New(f.options)
	if err != nil {
		return limitError(err)
	}
	done := make(chan error, 1)
	go func() { done <- copying.Run(ctx, in, out) }()
	err = await(ctx, done, grace)
	shown.Stop()
	if err == nil && f.command != nil {
		return f.command.result()
	}
	return explain(err)
}

// interruptGrace is the time that an interrupted filter waits for a stalled reader.
const interruptGrace = time.Second

// await waits for the filter. After an interrupt it waits for a bounded time.
func await(ctx context.Context, done <-chan error, grace time.Duration) error {
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(grace):
		return context.Cause(ctx)
	}
}
