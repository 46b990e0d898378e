// Command soak drives one memory engine for minutes with random rules, keys,
// verbs and steps of its clock, saves it and goes on with what was loaded, and
// keeps an account of its own beside it. Every difference is a violation, and
// so are an error, a goroutine left behind and memory beyond the bound.
//
//	go run ./bench/soak                        ten minutes
//	go run ./bench/soak -duration 20s -seed 7  the same rules, keys and steps again
//	go run ./bench/soak -break lost            whether it would notice
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
	flags.DurationVar(&c.duration, "duration", 10*time.Minute, "how long")
	flags.Uint64Var(&c.seed, "seed", rand.Uint64(), "of rules, keys, verbs and steps; drawn if not given")
	flags.IntVar(&c.workers, "workers", c.workers, "goroutines that ask")
	flags.IntVar(&c.maxKeys, "maxkeys", c.maxKeys, "cap on the keys of each limit")
	flags.StringVar((*string)(&c.fault), "break", "", "break this on purpose: "+strings.Join(faultNames(), ", "))
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
