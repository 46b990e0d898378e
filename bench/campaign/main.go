// Command campaign breaks Redis servers under load, at random, and checks that the Redis engine keeps its promises.
//
// It starts real redis-server processes: one server, a master with a replica and three sentinels, and a cluster of six.
// Three processes ask all of them, under all limits and with all verbs, while faults follow one another on each: stalled
// and cut connections, delays, killed and hung servers, failovers, moving slots, flushed scripts and clock steps. A seed
// determines the faults. Each process records what it was admitted. Afterwards these are broken promises:
//
//   - a limit admitted more than its bound and what the table of docs/reference/redis.md grants for the faults of its key,
//   - a slot is still taken although nothing holds it, a line still has an entry, or the engine still has
//     something to undo or to renew,
//   - a caller stood in line for slots while they were free, for longer than a second and what faults and the machine
//     explain: eight times the lateness of the latest of many sleeps at that time,
//   - a call failed for a reason that no fault explains, such as a damaged state,
//   - a call, or a wait in a queue, took longer than its deadline and 50 ms, beyond what the machine explains in the same way.
//
// Some callers wait in a queue of package pace: for slots, for slots and a rate, and for rates. After every eighth fault
// the servers are left alone for ten seconds.
//
// On a busy machine servers can take long to get well after a fault. The campaign then mends them, lists that in the
// report, and continues.
//
// The exit code is 0 without a broken promise, 1 with one, and 2 if the campaign failed.
//
//	go run ./bench/campaign                         an hour on all three kinds of servers; writes bench/CAMPAIGN.md
//	go run ./bench/campaign -duration 5m -seed 7    the faults of seed 7; prints the report
//	go run ./bench/campaign -only cluster           one of: server, sentinel, cluster
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/weirflow/weir/bench/internal/trial"
)

// processFlag, as the only argument, makes this program one of the processes that ask.
const processFlag = "-process"

func main() {
	if len(os.Args) == 2 && os.Args[1] == processFlag {
		if err := serveProcess(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "campaign: process:", err)
			os.Exit(2)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// config is what the flags say.
type config struct {
	trial.Trial
	only      string
	report    string
	details   string
	processes int
}

const about = `campaign breaks Redis servers under load, at random, and checks that the Redis engine keeps its promises. It starts the servers:
one, a master with a replica and three sentinels, and a cluster of six. It needs redis-server.

  go run ./bench/campaign                         an hour on all three kinds of servers; writes bench/CAMPAIGN.md
  go run ./bench/campaign -duration 5m -seed 7    the faults of seed 7; prints the report
  go run ./bench/campaign -only cluster           one of: server, sentinel, cluster`

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	c := &config{Trial: trial.Trial{Program: "bench/campaign", About: about, Duration: time.Hour}}
	var report, details string
	define := func(flags *flag.FlagSet) {
		flags.StringVar(&c.only, "only", "", "only these servers: "+strings.Join(worldNames, ", "))
		flags.StringVar(&report, "o", "", "write the report to this `file`; the default prints it, and after an hour writes bench/CAMPAIGN.md too")
		flags.StringVar(&details, "details", "", "write the events around broken promises to this `file` (default: campaign-SEED.txt in the temporary folder)")
		flags.IntVar(&c.processes, "processes", 3, "number of processes that ask")
	}
	return c.Main(args, out, errs, define, func() error {
		if c.only != "" && !slices.Contains(worldNames, c.only) || c.processes < 1 || c.processes > 16 {
			return fmt.Errorf("-only %q -processes %d: want one of %s and 1 to 16 processes", c.only, c.processes, strings.Join(worldNames, ", "))
		}
		if c.report, c.details = report, details; details == "" {
			c.details = fmt.Sprintf("%s/campaign-%d.txt", os.TempDir(), c.Seed)
		}
		if report == "" && c.Duration >= time.Hour {
			c.report = "bench/CAMPAIGN.md"
		}
		r, err := campaign(ctx, c)
		if err != nil {
			return err
		}
		c.Report = func(out io.Writer) error { return r.publish(c, out) }
		for _, b := range r.broken {
			c.Break(b.Promise, "%s, %s; %s has what happened to each key", worldNames[b.World], b.Text, c.details)
		}
		return nil
	})
}
