// Program middleware compares the middleware of httplimit with those of its rivals, and measures the interceptor of
// grpclimit. It judges their targets.
//
//	go run ./bench/middleware          a minute; writes bench/HTTP.md
//	go run ./bench/middleware -quick   a trial; prints figures that mean nothing
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "middleware:", err)
		os.Exit(1)
	}
}

func run() error {
	var (
		rounds = flag.Int("rounds", 25, "number of rounds")
		each   = flag.Duration("d", 200*time.Millisecond, "length of a row in a round")
		quick  = flag.Bool("quick", false, "a trial: two short rounds, to standard output")
		out    = flag.String("o", "bench/HTTP.md", "the file of the report; - for standard output")
	)
	flag.Parse()
	if *quick {
		*rounds, *each, *out = 2, 5*time.Millisecond, "-"
	}
	began := time.Now()
	list, err := subjects()
	if err != nil {
		return err
	}
	if err := measure(list, *rounds, *each, func(line string) { fmt.Fprintln(os.Stderr, line) }); err != nil {
		return err
	}
	text := report(list, *rounds, time.Since(began))
	if *out == "-" {
		_, err = fmt.Print(text)
		return err
	}
	return os.WriteFile(*out, []byte(text), 0o644)
}
