// Program redis compares the Redis engine with other limiters and with bare scripts. It starts its own redis-servers
// on the loopback interface: a single server and a cluster of three masters. It judges the Redis targets of
// docs/performance.md.
//
//	go run ./bench/redis            everything, five minutes; writes bench/REDIS.md
//	go run ./bench/redis -base v1.0.0    every row before and after, in pairs of windows, seven minutes; writes
//	                                bench/REDIS_PAIRS.md
//	go run ./bench/redis -quick     a trial; prints figures that mean nothing
//	go run ./bench/redis -only '128 callers, 10000'    prints the rows whose names match
//	go run ./bench/redis -distance  compares with bare EVALSHA through a link that delays, five minutes; prints a table, and
//	                                whether each aim was reached at each distance; with -only '^3ms$', at one of them
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir/bench/internal/localredis"
	"github.com/weirflow/weir/bench/internal/measure"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "redis:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	repetitions       int
	duration, scripts time.Duration
	quick, distance   bool
	only              *regexp.Regexp
	out               string
	base              string
	rounds            int
	serve, link       bool
}

func run(arguments []string) error {
	o, err := parse(arguments)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if o.serve {
		return measure.Serve(os.Stdin, os.Stdout, func(w window) (figure, error) { return w.measure(ctx) })
	}
	if o.link {
		return localredis.ServeLinks()
	}
	server, err := localredis.Start(ctx)
	if err != nil {
		return err
	}
	defer server.End()
	if o.distance {
		return printDistances(ctx, server.Addr, o.duration, o.repetitions, o.only)
	}
	cells, err := o.cells()
	if err != nil {
		return err
	}
	cluster, err := startCluster(ctx)
	if err != nil {
		return err
	}
	defer cluster.end()
	text, err := o.text(ctx, servers{server.Addr, cluster.addrs()}, cells, "go run ./bench/redis "+strings.Join(arguments, " "))
	if err != nil {
		return err
	}
	if o.out == "-" {
		_, err = fmt.Print(text)
		return err
	}
	return os.WriteFile(o.out, []byte(text), 0o644)
}

func parse(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("redis", flag.ContinueOnError)
	flags.IntVar(&o.repetitions, "reps", 5, "number of measurements of every peer; with -base, pairs of windows of a row in each round, 2 unless given")
	flags.DurationVar(&o.duration, "d", 900*time.Millisecond, "length of each measurement; with -base, 250 ms unless given")
	flags.DurationVar(&o.scripts, "scripts", 400*time.Millisecond, "length of each measurement of an algorithm's batches; with -base, 150 ms unless given")
	flags.BoolVar(&o.quick, "quick", false, "a trial: one repetition of 50 ms, to standard output")
	only := flags.String("only", "", "measure the rows, or with -distance the round trips, that match this regular expression, and print them")
	flags.BoolVar(&o.distance, "distance", false, "compare with bare EVALSHA at round trips up to 20 ms, and print the table")
	flags.StringVar(&o.base, "base", "", "compare with this commit in pairs of windows, and write bench/REDIS_PAIRS.md")
	flags.IntVar(&o.rounds, "rounds", 4, "rounds for -base")
	flags.BoolVar(&o.serve, "serve", false, "measure the windows of rows on standard input; -base starts such processes")
	flags.BoolVar(&o.link, localredis.LinkFlag[1:], false, "start the links that standard input asks for; -distance starts such processes")
	flags.StringVar(&o.out, "o", "", "the file of the report; - for standard output; bench/REDIS.md or bench/REDIS_PAIRS.md unless given")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	o.defaults(flags, *only != "")
	if o.repetitions < 1 || o.duration <= 0 || o.scripts <= 0 || o.rounds < 1 || flags.NArg() > 0 {
		return o, fmt.Errorf("-reps, -rounds, -d and -scripts must be positive, and the arguments %q are not flags", flags.Args())
	}
	if o.base != "" && o.distance {
		return o, errors.New("-base compares the rows of bench/REDIS.md, so it cannot go with -distance")
	}
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, fmt.Errorf("-only: %w", err)
	}
	return o, nil
}

// defaults sets flags that are not given and depend on others.
func (o *options) defaults(flags *flag.FlagSet, some bool) {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if o.base != "" && !given["reps"] {
		o.repetitions = 2
	}
	if o.base != "" && !given["d"] {
		o.duration = 250 * time.Millisecond
	}
	if o.base != "" && !given["scripts"] {
		o.scripts = 150 * time.Millisecond
	}
	if o.quick {
		o.repetitions, o.duration, o.scripts, o.rounds = 1, 50*time.Millisecond, 50*time.Millisecond, 1
	}
	switch {
	case given["o"]:
	case o.quick || some:
		o.out = "-"
	case o.base != "":
		o.out = "bench/REDIS_PAIRS.md"
	default:
		o.out = "bench/REDIS.md"
	}
}

// cells returns the selected rows.
func (o options) cells() ([]cell, error) {
	all := allCells(o.duration, o.scripts)
	cells := slices.DeleteFunc(slices.Clone(all), func(c cell) bool { return !o.only.MatchString(c.id().String()) })
	if len(cells) == 0 {
		return nil, fmt.Errorf("-only %q: no row matches; a row is named like %q", o.only, all[0].id())
	}
	return cells, nil
}

// text measures, and returns the report.
func (o options) text(ctx context.Context, on servers, cells []cell, command string) (string, error) {
	m, began := measure.Machine(command), time.Now()
	if o.base != "" {
		p := pairs{options: o, on: on, cells: cells, log: progress}
		found, err := p.run(ctx)
		if err != nil {
			return "", err
		}
		return pairsReport(m, o, changes(cells, found), time.Since(began)), nil
	}
	results, err := measureAll(ctx, on, cells, o.repetitions, progress)
	if err != nil {
		return "", err
	}
	if o.only.String() != "" {
		return rows(cells, results), nil
	}
	return report(m, results, o.repetitions, time.Since(began)), nil
}

func progress(line string) { fmt.Fprintln(os.Stderr, line) }
