// Command hostile attacks a weir daemon while honest clients use it, and checks
// that the honest clients notice nothing.
//
// It builds the daemon from the checkout and starts it with a state file and a
// log pipe. Several attacks run at once: silent, slow and vanishing clients,
// thousands of connections, floods of keys and slots, foreign hosts, signals, a
// log that nobody reads, a second daemon on the state file, restarts that
// overlap, and bit flips of copies of the state. Everything is drawn from a seed, bounded,
// and stays on the loopback interface. Beside the attacks, honest clients keep
// an account of every answer. It is a violation if
//
//   - a request of an honest client has no answer, or was counted twice or not at all,
//   - a limit admits more than its bound, or refuses at the time it told to come back,
//   - an answer comes more than -late after the answer of an idle HTTP server in
//     another process that was asked at the same time,
//   - the daemon does not stop cleanly within its grace, or its state file differs
//     from what the honest clients were told.
//
// The exit code is 0 if there is no violation, 1 if there is one, and 2 if the
// run could not be made.
//
//	go run ./bench/hostile                         thirty minutes
//	go run ./bench/hostile -duration 20s -seed 7   the same attacks and requests again
//	go run ./bench/hostile -only silent,storm      these attacks alone
//	go run ./bench/hostile -break twice            whether it would notice
//	go run ./bench/hostile -repro                  a table of known faults, on this build
package main

import (
	"context"
	"encoding/json"
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

// run returns the program. The context ends a run early.
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
	if mode.repro {
		return printRepro(ctx, c, out, errs)
	}
	c.progress = func(line string) { fmt.Fprintln(errs, line) }
	r, err := hostile(ctx, c)
	if err != nil {
		fmt.Fprintln(errs, "hostile:", err)
		return 2
	}
	if mode.json {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		_ = encoder.Encode(r)
	} else {
		r.print(out)
	}
	if len(r.Violations) > 0 {
		fmt.Fprintln(errs, "hostile: repeat with:", c.command())
		return 1
	}
	return 0
}

// modes are what the program does and how it prints, apart from the run.
type modes struct{ json, repro bool }

func parse(args []string, errs io.Writer) (config, modes, error) {
	c, m, only := config{lanes: 4}, modes{}, ""
	flags := flag.NewFlagSet("hostile", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.DurationVar(&c.duration, "duration", 30*time.Minute, "how long to attack; it goes on until every attack had a turn")
	flags.Uint64Var(&c.seed, "seed", rand.Uint64(), "of attacks and honest requests; drawn if not given")
	flags.IntVar(&c.lanes, "lanes", c.lanes, "attacks at once")
	flags.DurationVar(&c.late, "late", time.Second, "how much later than an idle handler the daemon may answer an honest client")
	flags.StringVar(&c.weir, "weir", "", "attack this `program` instead of one built from the checkout")
	flags.StringVar(&only, "only", "", "run these `attacks` alone: "+strings.Join(attackNames(), ", "))
	flags.StringVar((*string)(&c.fault), "break", "", "break this on purpose: "+strings.Join(faultNames(), ", "))
	flags.BoolVar(&m.json, "json", false, "print the report as JSON")
	flags.BoolVar(&m.repro, "repro", false, "print what known faults show on this build, as a table, and attack nothing else")
	if err := flags.Parse(args); err != nil {
		return c, m, err
	}
	if only != "" {
		c.only = strings.Split(only, ",")
	}
	return c, m, c.validate()
}
