// Program waiting measures callers of several processes that wait in queues of package pace for keys of one Redis. It
// starts its own redis-server, and the processes, on this machine. It judges the aims of scenarios.go.
//
//	go run ./bench/waiting                  seven minutes; writes bench/WAITING_REDIS.md
//	go run ./bench/waiting -base v1.0.0     the same workloads on an earlier commit beside them, in twice the time
//	go run ./bench/waiting -only 'a process of one' -reps 1    prints the rows whose workloads match
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"

	"github.com/weirflow/weir/bench/internal/localredis"
	"github.com/weirflow/weir/bench/internal/measure"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "waiting:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	repetitions int
	base        string
	only        *regexp.Regexp
	out         string
}

// callersFlag is the argument of a process of callers.
const callersFlag = "-callers"

func run(arguments []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	switch strings.Join(arguments, " ") {
	case callersFlag:
		return measure.Serve(os.Stdin, os.Stdout, func(j job) (tally, error) { return j.run(ctx) })
	case localredis.LinkFlag:
		return localredis.ServeLinks()
	}
	o, err := parse(arguments)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	sides := []side{{name: "now", program: program}}
	if o.base != "" {
		builds, err := measure.NewBuilds("bench/waiting", o.base, "bench/internal", "bench/waiting")
		if err != nil {
			return err
		}
		defer builds.Close()
		if err := builds.Build(0); err != nil {
			return err
		}
		sides = append(sides, side{name: o.base, program: builds.Before()})
	}
	rows, err := measureAll(ctx, o, sides)
	if err != nil {
		return err
	}
	if o.out == "-" {
		fmt.Print(table(rows, sides))
		return nil
	}
	return os.WriteFile(o.out, []byte(report(o, rows, sides, "go run ./bench/waiting "+strings.Join(arguments, " "))), 0o644)
}

func parse(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("waiting", flag.ContinueOnError)
	flags.IntVar(&o.repetitions, "reps", 5, "number of measurements of each workload")
	flags.StringVar(&o.base, "base", "", "measure this commit, too; it must compile with the present bench/waiting")
	only := flags.String("only", "", "measure the workloads that match this regular expression, and print them")
	flags.StringVar(&o.out, "o", "", "the file of the report; - for its table on standard output; bench/WAITING_REDIS.md unless given")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if o.repetitions < 1 || flags.NArg() > 0 {
		return o, errors.New("-reps must be positive, and there are no arguments but flags")
	}
	if o.out == "" {
		if o.out = "bench/WAITING_REDIS.md"; *only != "" {
			o.out = "-"
		}
	}
	var err error
	o.only, err = regexp.Compile(*only)
	return o, err
}
