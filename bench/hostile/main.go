// Command hostile attacks a weir daemon that serves honest clients, and checks that the honest clients notice
// nothing.
//
// It builds the daemon from the checkout and starts it with a state file, and for the last quarter of the time on a Redis
// server instead. Several attacks run at once: silent, slow, stalling and vanishing clients, thousands of connections,
// floods of keys and slots, reservations that are settled in every way, clients that leave the line, hoards of huge keys,
// signals, and overlapping restarts. A seed determines all choices. The run is bounded and stays on the loopback interface.
// Honest clients meanwhile record every answer. These are violations:
//
//   - a request of an honest client has no answer, or was counted twice or not at all,
//
//   - a limit admits more than its bound, or refuses a retry at its own retry_after,
//
//   - an answer comes more than -late after the answer of an idle HTTP server in
//     another process to the same request,
//
//   - attackers hold more slots than there are, a slot stays held after all were
//     settled or their callers left, or other units than those reported are counted,
//
//   - the daemon takes more than half a gigabyte of memory,
//
//   - the daemon does not stop cleanly within its grace period, or its state file
//     differs from the answers of the honest clients.
//
//     go run ./bench/hostile                         thirty minutes
//     go run ./bench/hostile -duration 20s -seed 7   repeat the attacks and requests of seed 7
//     go run ./bench/hostile -engine memory          without Redis
//     go run ./bench/hostile -only silent,storm      only these attacks
//     go run ./bench/hostile -break twice            check that it detects a fault
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

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// config configures a run.
type config struct {
	*trial.Trial
	lanes    int
	late     time.Duration
	engine   string        // of the attacked daemon: memory or redis
	duration time.Duration // on this engine
	weir     string        // the program to attack; if empty, the run builds one
	only     []string      // the attacks to run; empty means all
}

// The engines of the attacked daemon. A run on both gives Redis a quarter of the time.
const (
	onMemory = "memory"
	onRedis  = "redis"
	onBoth   = "both"
)

// The faults.
const (
	countTwice = "twice"  // sometimes sends an honest request a second time
	loseAnswer = "lost"   // sometimes does not send an honest request and counts it as answered
	delay      = "late"   // sometimes reports an answer as late
	mint       = "minted" // sometimes gives units back that an honest client has used
)

// run runs the program. The context ends a run early.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	if len(args) == 1 && args[0] == idleHandlerFlag {
		return serveIdle(os.Stdin, out, errs)
	}
	t := &trial.Trial{Program: "bench/hostile", About: "hostile attacks a daemon that serves honest clients, and checks that they notice nothing.", Duration: 30 * time.Minute, Faults: []string{countTwice, loseAnswer, delay, mint}}
	c, only := config{Trial: t, lanes: 4, engine: onBoth}, ""
	define := func(flags *flag.FlagSet) {
		flags.IntVar(&c.lanes, "lanes", c.lanes, "number of concurrent attacks")
		flags.DurationVar(&c.late, "late", time.Second, "how much later than an idle handler the daemon may answer an honest client")
		flags.StringVar(&c.engine, "engine", c.engine, "engine of the daemon: `memory, redis or both`, where Redis has the last quarter of the time")
		flags.StringVar(&c.weir, "weir", "", "attack this `program` instead of one built from the checkout")
		flags.StringVar(&only, "only", "", "run only these `attacks`: "+strings.Join(attackNames(), ", "))
	}
	return t.Main(args, out, errs, define, func() error {
		if only != "" {
			c.only = strings.Split(only, ",")
		}
		if err := c.validate(); err != nil {
			return err
		}
		for _, part := range c.parts() {
			if err := hostile(ctx, part); err != nil {
				return err
			}
		}
		return nil
	})
}

// parts returns the runs on one engine each.
func (c config) parts() []config {
	c.duration = c.Duration
	if c.engine != onBoth {
		return []config{c}
	}
	memory, redis := c, c
	memory.engine, redis.engine = onMemory, onRedis
	redis.duration = max(c.Duration/4, 1)
	memory.duration = max(c.Duration-redis.duration, 1)
	return []config{memory, redis}
}

func (c config) validate() error {
	switch {
	case c.lanes < 1 || c.lanes > 64:
		return fmt.Errorf("-lanes %d is not 1 to 64", c.lanes)
	case c.engine != onMemory && c.engine != onRedis && c.engine != onBoth:
		return fmt.Errorf("-engine %q is not memory, redis or both", c.engine)
	case c.late <= 0:
		return fmt.Errorf("-late %v is not positive", c.late)
	}
	for _, name := range c.only {
		if !slices.Contains(attackNames(), name) {
			return fmt.Errorf("-only %q: no attack has that name; choose from %s", name, strings.Join(attackNames(), ", "))
		}
	}
	return nil
}

// honestly counts outcomes of honest requests.
func (w *world) honestly(what string, n int64) { w.Count("honest requests", what, n) }

// worst is the answer of the daemon that was latest beside that of the idle handler.
type worst struct {
	by      time.Duration
	text    string
	running map[string]int // attacks
}

// timed records the times of an honest request and of its control.
func (w *world) timed(daemon, idle time.Duration, what string) {
	w.Timed("daemon on "+w.engine, daemon)
	w.Timed("idle handler", idle)
	w.mu.Lock()
	defer w.mu.Unlock()
	if late := daemon - idle; late > w.worst.by {
		var beside []string
		for name := range w.worst.running {
			beside = append(beside, name)
		}
		w.worst.by, w.worst.text = late, fmt.Sprintf("%s, besides %s", what, strings.Join(beside, ", "))
	}
}

func short(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
