package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/filter"
)

// paceOptions are the flags of weir pace.
type paceOptions struct {
	bytes     string
	burst     string
	warmup    time.Duration
	key       string
	delimiter string
	fair      bool
}

func paceCommand() *cobra.Command {
	var o paceOptions
	cmd := &cobra.Command{
		Use:   "pace RATE|LIMIT",
		Short: "Let the lines of a pipe through at a rate",
		Long: `Pace copies standard input to standard output, each line when it is its turn.
The first goes at once; what comes out is byte for byte what came in.

RATE is a count and a period: 5/s, 100/m, 1/1m30s. LIMIT is any limit in quotes,
but a concurrency: 'rate gate 2/s', 'sliding window 100/m'.

With --key each host, or each value of a column, has a pace of its own, and the
lines of one do not hold up those of another: order is kept within a key only.
With --fair the keys share one pace and take turns. Up to 16384 lines or 16 MiB
are held back for it; then nothing more is read until some are gone. Lines
without the field share one pace.

It shows progress if standard error is a terminal and standard output is not.
When the reader of the pipe goes away it ends quietly with 141, when it is
interrupted with 130 or 143, as other filters do.`,
		Example: `  weir pace 5/s < urls.txt | xargs -n 1 curl -sO
  weir pace 100/m --burst 10 < jobs.txt | while read -r job; do echo "$job"; done
  weir pace 20/s --warmup 30s < urls.txt | xargs -n 1 -P 8 curl -sO
  weir pace 1/s --key host < urls.txt | xargs -n 1 -P 8 curl -sO
  weir pace 10/s --key 1 --delimiter , --fair < tenants.csv
  weir pace 'rate gate 2/s' < urls.txt
  weir pace --bytes 200KiB/s < backup.tar > /mnt/slow/backup.tar`,
		ValidArgsFunction: completePace,
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := o.parse(args)
			if err != nil {
				return err
			}
			if err := requireOutput("pace", cmd.OutOrStdout()); err != nil {
				return err
			}
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			return f.run(ctx, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.bytes, "bytes", "", "pace bytes instead of lines, at this `RATE`: 200KiB/s, 5MB/m")
	flags.StringVar(&o.burst, "burst", "", "let `N` lines go at once after a pause; with --bytes a size like 64KiB")
	flags.DurationVar(&o.warmup, "warmup", 0, "start at a third of the rate and come to it in this `TIME`")
	flags.StringVar(&o.key, "key", "", "pace each key apart; `FIELD` is host, that of a URL in the line, or a column number from 1")
	flags.StringVar(&o.delimiter, "delimiter", "", "split columns at this `TEXT` instead of at white space")
	flags.BoolVar(&o.fair, "fair", false, "keys share one pace and take turns, instead of having their own")
	offer(cmd, "key", "host")
	return cmd
}

// paceFilter is a good command line.
type paceFilter struct {
	options filter.Options
}

// run copies in to out. An end that other filters do not talk about either is a
// quietExit.
func (f paceFilter) run(ctx context.Context, in io.Reader, out, errs io.Writer) error {
	shown := newPaceProgress(in, out, errs, f.options.Chunk > 0)
	f.options.Moved = shown.moved
	copying, err := filter.New(f.options)
	if err != nil {
		return paceLimitError(err)
	}
	done := make(chan error, 1)
	go func() { done <- copying.Run(ctx, in, out) }()
	err = paceEnd(ctx, done)
	shown.stop()
	return explainPace(err)
}

// interruptGrace is how long an interrupted filter waits for a reader that takes
// nothing.
const interruptGrace = time.Second

// paceEnd waits for the filter, but not for ever once it is interrupted.
func paceEnd(ctx context.Context, done <-chan error) error {
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(interruptGrace):
		return context.Cause(ctx)
	}
}

func explainPace(err error) error {
	var interrupted *signalled
	var stream *filter.StreamError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &interrupted):
		return &quietExit{128 + int(interrupted.signal)}
	case errors.Is(err, syscall.EPIPE):
		return &quietExit{128 + int(syscall.SIGPIPE)}
	case errors.As(err, &stream) && stream.Op == "read":
		return errorWithHint(fmt.Errorf("pace: standard input: %w", stream.Err), "give it a file or a pipe: weir pace 5/s < urls.txt")
	case errors.As(err, &stream):
		return errorWithHint(fmt.Errorf("pace: standard output: %w", stream.Err), "is the disk full, or was the output closed?")
	}
	return errorWithHint(err, "this is a fault of weir: please report it with the command line")
}

// quietExit ends the program with a code and without a word.
type quietExit struct{ code int }

func (e *quietExit) Error() string { return fmt.Sprintf("exit %d", e.code) }

// signalled is the cause of a context that a signal has ended.
type signalled struct{ signal syscall.Signal }

func (e *signalled) Error() string { return e.signal.String() }

// untilSignal is a context that ends at SIGINT or SIGTERM; a second one ends the
// process. A broken pipe becomes an error of Write instead of the end of the
// process, so that progress is cleared from the terminal.
func untilSignal(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			number, _ := s.(syscall.Signal)
			cancel(&signalled{number})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		signal.Stop(pipes)
		cancel(nil)
	}
}
