// Command soak runs one memory engine for minutes with random rules, keys, verbs and clock steps. It saves the
// engine, continues with the loaded one, and keeps its own account of everything. A difference is a violation. So are an
// error, and memory above the bound.
//
//	go run ./bench/soak                        ten minutes
//	go run ./bench/soak -duration 20s -seed 7  repeat the rules, keys and steps of seed 7
//	go run ./bench/soak -break lost            check that it detects a fault
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/weirflow/weir/bench/internal/trial"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, out, errs io.Writer) int {
	c := &config{Trial: trial.Trial{Program: "bench/soak", About: "soak runs one memory engine with random rules, keys, clock steps and snapshots beside accounts of its own.", Duration: 10 * time.Minute, Faults: faults}, workers: 4, maxKeys: leastKeys}
	define := func(flags *flag.FlagSet) {
		flags.IntVar(&c.workers, "workers", c.workers, "number of calling goroutines")
		flags.IntVar(&c.maxKeys, "maxkeys", c.maxKeys, "bound on the keys of each limit")
	}
	return c.Main(args, out, errs, define, func() error {
		if c.workers < 1 || c.workers > 256 || c.maxKeys < leastKeys || c.maxKeys > 1<<20 {
			return fmt.Errorf("-workers %d -maxkeys %d: want 1 to 256 workers and %d to %d keys", c.workers, c.maxKeys, leastKeys, 1<<20)
		}
		return soak(c)
	})
}

// config configures a run.
type config struct {
	trial.Trial
	workers int
	maxKeys int
	phases  int // if positive, a run has this many and no other end
}

// The faults.
const (
	lostTake     = "lost"     // the engine sometimes loses what it admitted
	doubleRecord = "doubled"  // the engine sometimes counts twice
	staleLoad    = "stale"    // the run loads an older file
	roomAtCap    = "uncapped" // a flood finds more room than the bound
	hoardedKeys  = "hoarded"  // the run keeps the keys of a flood
)

var faults = []string{lostTake, doubleRecord, staleLoad, roomAtCap, hoardedKeys}

// leastKeys is a bound that leaves each of 64 shards room for the keys of all rules that are not flooded.
const leastKeys = 4096
