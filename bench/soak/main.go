// Command soak runs one memory engine for minutes with random rules, keys, verbs and clock steps. It saves the
// engine, continues with the loaded one, and keeps its own account of everything. A difference is a violation. So are
// an error, a leaked goroutine, and memory above the bound.
//
//	go run ./bench/soak                        ten minutes
//	go run ./bench/soak -duration 20s -seed 7  repeat the rules, keys and steps of seed 7
//	go run ./bench/soak -break lost            check that it detects a fault
package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// progressEvery is the time between two lines on a terminal.
const progressEvery = 5 * time.Second

func run(args []string, out io.Writer, errs *os.File) int {
	c := config{workers: 4, maxKeys: 4096}
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.DurationVar(&c.duration, "duration", 10*time.Minute, "length of the run")
	flags.Uint64Var(&c.seed, "seed", rand.Uint64(), "seed of rules, keys, verbs and steps; random by default")
	flags.IntVar(&c.workers, "workers", c.workers, "number of calling goroutines")
	flags.IntVar(&c.maxKeys, "maxkeys", c.maxKeys, "bound on the keys of each limit")
	flags.StringVar((*string)(&c.fault), "break", "", "commit this fault deliberately: "+strings.Join(faultNames(), ", "))
	if flags.Parse(args) != nil {
		return 2
	}
	if err := c.validate(); err != nil {
		fmt.Fprintln(errs, "soak:", err)
		return 2
	}
	if info, err := errs.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		c.progress = func(s summary) { fmt.Fprintln(errs, s.line()) }
	}
	fmt.Fprintf(out, "soak: seed %d, %v, %d workers, %d keys a limit\n", c.seed, c.duration, c.workers, c.maxKeys)
	s := soak(c)
	s.print(out)
	if len(s.violations) == 0 {
		return 0
	}
	for _, v := range s.violations {
		fmt.Fprintln(errs, "soak: violation:", v)
	}
	fmt.Fprintf(errs, "soak: repeat with: go run ./bench/soak -duration %v -seed %d -workers %d -maxkeys %d\n", c.duration, c.seed, c.workers, c.maxKeys)
	return 1
}
