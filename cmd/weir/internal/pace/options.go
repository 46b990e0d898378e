package pace

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/engineflags"
	"github.com/weirflow/weir/cmd/weir/internal/filter"
)

// options are the flags of weir pace.
type options struct {
	bytes     string
	burst     string
	warmup    time.Duration
	key       string
	delimiter string
	fair      bool
	atOnce    int64
	shared    engineflags.Flags
	lost      context.CancelCauseFunc // called if the engine stays away
}

// job is a checked command line.
type job struct {
	options filter.Options
	command *commandLine // or nil
	close   func()       // ends the engine
}

// parse reads the command line of weir pace.
func (o *options) parse(args []string, command *commandLine) (f job, err error) {
	if err := o.check(args); err != nil {
		return f, err
	}
	if err := o.checkCommand(command); err != nil {
		return f, err
	}
	if f.command = command; command != nil {
		command.alone = o.atOnce == 1 && (o.key == "" || o.fair)
		f.options.Work, f.options.AtOnce = command.work(nil, nil, &progress{}), o.atOnce
	}
	if o.bytes != "" {
		f.options.Limits = make([]weir.Limit, 1)
		f.options.Limits[0], f.options.Chunk, err = o.byteLimit()
	} else {
		f.options.Limits, err = o.lineLimits(args[0])
	}
	if err != nil {
		return f, err
	}
	if o.key != "" {
		if f.options.Key, err = filter.ParseKey(o.key, o.delimiter); err != nil {
			return f, cli.Misuse(errors.New("--"+strings.TrimPrefix(err.Error(), "pace: ")),
				"'--key host' is the host of a URL in the line, '--key 2' the second column; for CSV: '--key 2 --delimiter ,'")
		}
		f.options.Fair = o.fair
	}
	return f, o.open(&f)
}

// check refuses flags that exclude each other.
func (o *options) check(args []string) error {
	wrong := func(hint, format string, values ...any) error {
		return cli.Misuse(fmt.Errorf("pace: "+format, values...), hint)
	}
	switch {
	case len(args) == 0 && o.bytes == "":
		return wrong("for example: weir pace 5/s < urls.txt, or weir pace --bytes 200KiB/s < backup.tar", "no rate")
	case len(args) > 1:
		return wrong("put a limit in quotes: weir pace 'rate gate 2/s'; the input comes from standard input", "%d arguments, want one", len(args))
	case len(args) == 1 && o.bytes != "":
		return wrong("give one of the two", "both %q and --bytes %s", args[0], o.bytes)
	case o.shared.Engine != "" && o.warmup > 0:
		return wrong("leave one of the two out", "--warmup with --engine: a warm-up belongs to one process")
	case o.key == "" && o.fair:
		return wrong("name the key of a line: --key host --fair", "--fair without --key")
	case o.key == "" && o.delimiter != "":
		return wrong("name the column: --key 1 --delimiter ,", "--delimiter without --key")
	case o.warmup < 0:
		return wrong("it is a time like 30s", "--warmup %v is negative", o.warmup)
	case o.warmup > 0 && o.burst != "":
		return wrong("leave one of the two out", "--warmup and --burst exclude each other")
	}
	return nil
}

// checkCommand refuses flags that need a command, or exclude one.
func (o *options) checkCommand(command *commandLine) error {
	switch {
	case o.atOnce < 1:
		return cli.Misuse(fmt.Errorf("pace: --at-once %d: not a number of commands", o.atOnce), "it is 1 or more, like --at-once 5")
	case command == nil && o.atOnce > 1:
		return cli.Misuse(errors.New("pace: --at-once without a command: a filter cannot know when the work on a line ends"),
			"let pace run the command for each line: weir pace 5/s --at-once 5 -- curl -sO {}")
	case command != nil && o.bytes != "":
		return cli.Misuse(errors.New("pace: --bytes with a command: a command gets a line"), "pace lines: weir pace 5/s -- curl -sO {}")
	case command != nil && o.warmup > 0:
		return cli.Misuse(errors.New("pace: --warmup with a command: a warm-up cannot be taken together with slots"), "leave one of the two out")
	}
	return nil
}

// lineLimits returns the limits that the argument and the flags describe.
func (o *options) lineLimits(text string) (limits []weir.Limit, err error) {
	_, err = weir.ParseLimits(text)
	if _, syntax := errors.AsType[*weir.SyntaxError](err); syntax {
		return nil, limitError(err)
	}
	for one := range strings.SplitSeq(text, " and ") {
		limit, err := o.lineLimit(one)
		if err != nil {
			return nil, err
		}
		limits = append(limits, limit)
	}
	return limits, nil
}

// lineLimit returns the limit of one text.
func (o *options) lineLimit(text string) (weir.Limit, error) {
	text = strings.TrimSpace(text)
	if strings.ContainsAny(text, " \t") || text == (weir.Unlimited{}).String() {
		if o.burst != "" || o.warmup > 0 {
			return nil, cli.Misuse(errors.New("pace: --burst and --warmup go with a rate, not with a limit"),
				"write it in the limit: 'token bucket 5/s burst 10', 'warm up 5/s over 30s'")
		}
		limit, err := weir.ParseLimit(text)
		if err != nil {
			return nil, limitError(err)
		}
		return limit, nil
	}
	rate, err := weir.ParseRate(text)
	if err != nil {
		return nil, limitError(err)
	}
	burst := int64(1)
	if o.burst != "" {
		burst, err = strconv.ParseInt(o.burst, 10, 64)
		if err != nil || burst < 1 {
			return nil, cli.Misuse(fmt.Errorf("--burst: %q is not a number of lines", o.burst), "it counts lines: --burst 10")
		}
	}
	return limitOf(rate, burst, o.warmup), nil
}

func limitOf(rate weir.Rate, burst int64, warmup time.Duration) weir.Limit {
	if warmup > 0 {
		return weir.WarmUp{Rate: rate, Over: warmup}
	}
	return weir.TokenBucket{Rate: rate, Burst: burst}
}

// Bytes are written in chunks of a hundredth of a second's worth.
const (
	chunksPerSecond = 100
	mostChunk       = 64 << 10
)

// byteLimit returns the limit of --bytes and the size of a chunk.
func (o *options) byteLimit() (weir.Limit, int, error) {
	rate, err := cli.ParseByteRate("--bytes", o.bytes)
	if err != nil {
		return nil, 0, err
	}
	perSecond := float64(rate.Count) / rate.Period.Seconds()
	chunk := int64(min(max(perSecond/chunksPerSecond, 1), mostChunk))
	burst := chunk
	if o.burst != "" {
		if burst, err = cli.ParseSize(o.burst); err != nil {
			return nil, 0, cli.Misuse(fmt.Errorf("--burst: %w", err), "with --bytes it is a size: --burst 64KiB")
		}
	}
	return limitOf(rate, burst, o.warmup), int(chunk), nil
}

// complete offers rates and limits for the argument of weir pace.
func complete(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return cli.CompleteLimit(append([]string{"5/s", "100/m"}, limits...))(cmd, args, text)
}
