// Command hostile attacks a weir daemon that serves honest clients, and checks that the honest clients notice
// nothing.
//
// It builds the daemon from the checkout and starts it with a state file and a log pipe, and for the last quarter of
// the time on a Redis server instead. Several attacks run at once: silent, slow, stalling and vanishing clients,
// thousands of connections, floods of keys and slots, reservations that are settled in every way, clients that leave
// the line, hoards of huge keys, foreign hosts, signals, a stalled log, a wall clock that jumps, a second daemon on the
// state file, overlapping restarts, and bit flips in copies of the state. A seed determines all choices. The run is
// bounded and stays on the loopback interface. Honest clients meanwhile record every answer. These are violations:
//
//   - a request of an honest client has no answer, or was counted twice or not at all,
//   - a limit admits more than its bound, or refuses a retry at its own retry_after,
//   - an answer comes more than -late after the answer of an idle HTTP server in
//     another process to the same request,
//   - attackers hold more slots than there are, a slot stays held after all were
//     settled or their callers left, or other units than those reported are counted,
//   - the daemon takes more than half a gigabyte of memory,
//   - the daemon does not stop cleanly within its grace period, or its state file
//     differs from the answers of the honest clients.
//
// The exit code is 0 without a violation, 1 with one, and 2 if the run failed.
//
//	go run ./bench/hostile                         thirty minutes
//	go run ./bench/hostile -duration 20s -seed 7   repeat the attacks and requests of seed 7
//	go run ./bench/hostile -engine memory          without Redis
//	go run ./bench/hostile -only silent,storm      only these attacks
//	go run ./bench/hostile -break twice            check that it detects a fault
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run runs the program. The context ends a run early.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	if len(args) == 1 && args[0] == idleHandlerFlag {
		return serveIdle(os.Stdin, out, errs)
	}
	c, mode, err := parse(args, errs)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(errs, "hostile:", err)
		return 2
	}
	c.progress = func(line string) { fmt.Fprintln(errs, line) }
	code := 0
	for _, part := range c.parts() {
		r, err := hostile(ctx, part)
		if err != nil {
			fmt.Fprintln(errs, "hostile:", err)
			return 2
		}
		r.write(out, mode.json)
		if len(r.Violations) > 0 {
			fmt.Fprintln(errs, "hostile: repeat with:", part.command())
			code = 1
		}
	}
	return code
}

// modes select what the program does and how it prints the result.
type modes struct{ json bool }

func parse(args []string, errs io.Writer) (config, modes, error) {
	c, m, only := config{lanes: 4, engine: onBoth}, modes{}, ""
	flags := flag.NewFlagSet("hostile", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.DurationVar(&c.duration, "duration", 30*time.Minute, "length of the run; it continues until every attack has had a turn")
	flags.Uint64Var(&c.seed, "seed", rand.Uint64(), "seed of the attacks and honest requests; random by default")
	flags.IntVar(&c.lanes, "lanes", c.lanes, "number of concurrent attacks")
	flags.DurationVar(&c.late, "late", time.Second, "how much later than an idle handler the daemon may answer an honest client")
	flags.StringVar(&c.engine, "engine", c.engine, "engine of the daemon: `memory, redis or both`, where Redis has the last quarter of the time")
	flags.StringVar(&c.weir, "weir", "", "attack this `program` instead of one built from the checkout")
	flags.StringVar(&only, "only", "", "run only these `attacks`: "+strings.Join(attackNames(), ", "))
	flags.StringVar((*string)(&c.fault), "break", "", "commit this fault deliberately: "+strings.Join(faultNames(), ", "))
	flags.BoolVar(&m.json, "json", false, "print the report as JSON")
	if err := flags.Parse(args); err != nil {
		return c, m, err
	}
	if only != "" {
		c.only = strings.Split(only, ",")
	}
	return c, m, c.validate()
}
