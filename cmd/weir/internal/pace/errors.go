package pace

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/engineflags"
	"github.com/weirflow/weir/cmd/weir/internal/filter"
)

// limits are an example of each limit that weir pace takes.
var limits = []string{
	"token bucket 5/s burst 10", "leaky bucket 5/s", "fixed window 100/m", "first window 100/m", "sliding window 100/m",
	"sliding log 5/10s", "rate gate 2/s", "cycle 50/500ms", "quota 1000/month in Europe/Paris", "bursty 5/s over 1s", "warm up 5/s over 30s",
	"nginx limit_req 5/s burst 10 nodelay",
}

// forms show the syntax of a rate and of a limit.
var forms = []string{
	"a rate looks like: 5/s, 100/m or 1/1m30s",
	"a limit, in quotes: '" + strings.Join(limits[:4], "', '") + "'",
	"or: '" + strings.Join(limits[4:], "', '") + "'",
}

// limitError explains why weir pace cannot use a limit.
func limitError(err error) error {
	if refused, ok := errors.AsType[*filter.NoPaceError](err); ok {
		return cli.Misuse(fmt.Errorf("pace: %w", refused), "choose a limit that admits at a rate, like: token bucket 5/s burst 1, rate gate 2/s; weir pace bounds commands by --at-once")
	}
	return cli.LimitError("pace", err, forms)
}

func explain(err error) error {
	var stream *filter.StreamError
	var engine *filter.EngineError
	var lost *engineflags.Lost
	switch {
	case err == nil:
		return nil
	case cli.Interrupted(err) != nil:
		return cli.Interrupted(err)
	case errors.As(err, &stream) && stream.Op == "read":
		return cli.Fail(fmt.Errorf("pace: standard input: %w", stream.Err), "give it a file or a pipe: weir pace 5/s < urls.txt")
	case errors.As(err, &stream):
		return cli.Fail(fmt.Errorf("pace: standard output: %w", stream.Err), "is the disk full, or was the output closed?")
	case errors.As(err, &engine):
		return engineflags.Explain("pace", engine.Err)
	case errors.As(err, &lost):
		return engineflags.Explain("pace", lost)
	}
	return cli.Fail(err, "this is a bug in weir: please report it with the command line")
}
