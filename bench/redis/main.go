// Program redis compares the Redis engine with other limiters and with bare scripts. It starts its own redis-servers
// on the loopback interface: a single server and a cluster of three masters. It judges the Redis targets of
// docs/performance.md.
//
//	go run ./bench/redis            everything, five minutes; writes bench/REDIS.md
//	go run ./bench/redis -quick     a trial; prints figures that mean nothing
//	go run ./bench/redis -only '128 callers, 10000'    prints the rows whose names match
//	go run ./bench/redis -distance  compares with bare EVALSHA through a link that delays, five minutes; prints a table, and
//	                                whether each aim was reached at each distance; with -only '^3ms$', at one of them
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "redis:", err)
		os.Exit(1)
	}
}

func run() error {
	var (
		repetitions = flag.Int("reps", 5, "number of measurements of every peer")
		duration    = flag.Duration("d", 900*time.Millisecond, "length of each measurement")
		scripts     = flag.Duration("scripts", 400*time.Millisecond, "length of each measurement of an algorithm's batches")
		quick       = flag.Bool("quick", false, "a trial: one repetition of 50 ms, to standard output")
		only        = flag.String("only", "", "measure the rows, or with -distance the round trips, that match this regular expression, and print them")
		distance    = flag.Bool("distance", false, "compare with bare EVALSHA at round trips up to 20 ms, and print the table")
		out         = flag.String("o", "bench/REDIS.md", "the file of the report; - for standard output")
	)
	flag.Parse()
	if *quick {
		*repetitions, *duration, *scripts, *out = 1, 50*time.Millisecond, 50*time.Millisecond, "-"
	}
	matching, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	server, err := startServer(ctx)
	if err != nil {
		return err
	}
	defer server.end()
	if *distance {
		return printDistances(ctx, server.addr, *duration, *repetitions, matching)
	}
	cells := slices.DeleteFunc(allCells(*duration, *scripts), func(c cell) bool { return !matching.MatchString(c.id().String()) })
	if len(cells) == 0 {
		return fmt.Errorf("-only %q: no row matches; a row is named like %q", *only, allCells(0, 0)[0].id())
	}
	cluster, err := startCluster(ctx)
	if err != nil {
		return err
	}
	defer cluster.end()
	m := machine("go run ./bench/redis " + strings.Join(os.Args[1:], " "))
	began := time.Now()
	results, err := measureAll(ctx, servers{server.addr, cluster.addrs()}, cells, *repetitions, func(line string) { fmt.Fprintln(os.Stderr, line) })
	if err != nil {
		return err
	}
	if *only != "" {
		fmt.Print(rows(cells, results))
		return nil
	}
	text := report(m, results, *repetitions, time.Since(began))
	if *out == "-" {
		_, err = fmt.Print(text)
		return err
	}
	return os.WriteFile(*out, []byte(text), 0o644)
}
