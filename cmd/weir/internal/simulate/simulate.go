package simulate

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/cmd/weir/internal/screen"
)

func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "simulate [--traffic TRAFFIC {--limit LIMIT | --config FILE}...]",
		Short: "Compare limits on made-up traffic in virtual time",
		Long: `Simulate tries limits in virtual time. It decides as the daemon does.

Without flags it drives every limit at 10 requests a second with a burst of 10,
and shows how fast each admits. It runs eight phases, from 10 requests at 1 per
second to 1000 requests at 100 per second. Each phase begins with a fresh state.
A refused caller retries every 10 ms until it is admitted, and gives up after a
minute. The table below shows common hand-written limiters, each with its fault.

With --traffic it compares the limits given by --limit. TRAFFIC is one of these,
or several joined with 'and':

  constant RATE                        requests at even distances
  poisson RATE                         independent requests at an average rate
  burst RATE for TIME every TIME       requests at the start of each cycle
  ramp RATE to RATE over TIME          a rate that changes evenly, and then stays
  diurnal RATE to RATE every TIME      a rate that rises and falls in each cycle
  flash RATE to RATE at TIME for TIME  a crowd that comes at once and fades away
  storm N at TIME                      N clients, each with a request at one instant
  log FILE [thin 10%] [speed 60]       the requests of an access log

Any of them may be followed by:

  from N clients [skew S]              client k sends a share in proportion to 1/k^S
  cost N | cost N to N | cost about N | cost N or N at 2%
  retry obeying | retry every TIME     what refused clients do: obey Retry-After, or
    [jitter TIME] [up to N times]      not; without retry they do not come back

All clients share one limit, unless --per-client is given. docs/howto/simulate.md
explains each traffic and each figure.`,
		Example: `  weir simulate
  weir simulate --format json
  weir simulate --traffic 'burst 200/s for 1s every 10s' --limit 'token bucket 10/s burst 20' --limit 'fixed window 100/10s'
  weir simulate --traffic 'burst 200/s for 1s every 10s' --limit 'token bucket 10/s burst 20' --plot burst.svg
  weir simulate --traffic 'poisson 9/s' --for 10m --seed 7 --limit 10/s --limit 'sliding window 10/s'
  weir simulate --traffic 'constant 5/s and ramp 1/s to 50/s over 30s' --limit 'leaky bucket 10/s queue 20'
  weir simulate --traffic 'poisson 50/s from 100 clients skew 1.1' --per-client --limit '1/s' --limit 'token bucket 1/s burst 10'
  weir simulate --traffic 'storm 500 at 5s retry obeying jitter 5s' --limit '50/s' --for 30s
  weir simulate --traffic 'constant 150/s' --server 100/s --limit 'token bucket 90/s burst 20'
  weir simulate --traffic 'poisson 20/s' --processes 4 --lose 30s --wait 2s --limit 'token bucket 20/s burst 20'
  weir simulate --traffic 'poisson 100/s from 400 clients' --per-client --sticky 8 --lose 20s --return 40s --limit 'token bucket 1/m burst 10'
  weir simulate --traffic 'log access.log thin 50% speed 60' --per-client --limit 'fixed window 60/1m'
  weir simulate --traffic 'poisson 9/s' --config weir.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			flags := cmd.Flags()
			for _, flag := range []string{"limit", "config", "for", "seed", "per-client", "wait", "processes", "sticky", "lose", "return", "server", "key", "plot", "report"} {
				if flags.Changed(flag) && !flags.Changed("traffic") {
					return cli.Misuse(fmt.Errorf("simulate: --%s without --traffic", flag), "add traffic, like: --traffic 'burst 200/s for 1s every 10s'")
				}
			}
			o.classic = !flags.Changed("traffic")
			o.wholeLog = !flags.Changed("for")
			return o.run(args, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.traffic, "traffic", "", "compare the limits on this `TRAFFIC`")
	flags.DurationVar(&o.length, "for", usualLength, "stop the traffic after this `TIME`; a log by default at its end")
	flags.Uint64Var(&o.scenario.Seed, "seed", 1, "draw random traffic from this seed `N`")
	flags.BoolVar(&o.scenario.PerClient, "per-client", false, "give each client a limit of its own")
	flags.DurationVar(&o.scenario.Wait, "wait", 0, "let callers wait in line for up to this `TIME` instead of refusing them")
	flags.IntVar(&o.scenario.Processes, "processes", 1, "split each limit evenly among `N` processes that take requests in turn")
	flags.IntVar(&o.scenario.Sticky, "sticky", 0, "send each client to one of `N` daemons by consistent hashing, each with whole limits; with --per-client")
	flags.DurationVar(&o.scenario.Lose, "lose", 0, "lose one of the processes or daemons after this `TIME`")
	flags.DurationVar(&o.scenario.Return, "return", 0, "bring it back, empty, after this `TIME`")
	flags.StringVar(&o.server, "server", "", "serve admitted requests at this `RATE`, and show their latency")
	o.AddFlags(cmd, "in a log, the `FIELD` that names the client", "try this `LIMIT` on the traffic; repeat the flag to compare",
		"what is offered and admitted over time, for each limit,")
	cli.Offer(cmd, "server", "100/s")
	_ = cmd.RegisterFlagCompletionFunc("traffic", cli.CompleteLimit(plain.Traffics))
	return cmd
}

// run simulates and writes the result to out.
func (o *options) run(args []string, in io.Reader, out, errs io.Writer) error {
	if len(args) > 0 {
		return cli.Misusef("put traffic and limits in quotes, after --traffic and --limit", "simulate: unexpected %q", args[0])
	}
	if err := o.Check(out); err != nil {
		return err
	}
	if !o.classic {
		return o.compare(in, out, errs)
	}
	c, err := newClassic()
	if err != nil {
		return cli.Fail(o.Of(err), "this is a bug in weir: please report it")
	}
	return o.Write(out, c.reports, nil, func(s screen.Screen, _ string) string { return c.table(s) })
}
