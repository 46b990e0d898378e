package serve

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/decide"
)

// waitOptions are the flags of weir serve about waiting callers.
type waitOptions struct {
	longest time.Duration
	callers int // 0 is half of the connections
	asks    bool
}

func (o *waitOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.DurationVar(&o.longest, "max-wait", decide.DefaultWait, "let a caller of /v1/wait or /v1/reserve wait this long at most")
	flags.IntVar(&o.callers, "max-waiting", 0, "let at most `N` callers wait at a time (default half of --max-connections)")
	flags.BoolVar(&o.asks, "no-booking", false, "have every waiting caller ask, so that callers of several keys get their share beside callers of one")
}

// check refuses flags that are out of bounds. A waiting caller keeps its connection, so others need some.
func (o *waitOptions) check(connections int) error {
	switch {
	case o.longest <= 0:
		return cli.Misusef("use a duration above 0, like 30s or 5m", "--max-wait %v: not a time to wait", o.longest)
	case o.callers < 0:
		return cli.Misusef("a waiting caller keeps its connection; the default is half of --max-connections", "--max-waiting %d: not a number of callers", o.callers)
	case o.callers > max(connections-1, 1):
		return cli.Misusef("a waiting caller keeps its connection: raise --max-connections, or leave connections for other requests",
			"--max-waiting %d with --max-connections %d: no connection would be left", o.callers, connections)
	}
	return nil
}

// within returns the bounds of a server with this number of connections, which may be lower than asked.
func (o *waitOptions) within(connections int) decide.WaitOptions {
	callers := max(connections/2, 1)
	if o.callers > 0 {
		callers = min(o.callers, max(connections-1, 1))
	}
	return decide.WaitOptions{Longest: o.longest, Callers: callers, NoBooking: o.asks}
}
