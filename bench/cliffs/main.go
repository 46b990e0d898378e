// Command cliffs measures whether the numbers in a limit change the cost of a decision. It measures each limit beside
// 10/s, in pairs of windows of some milliseconds, and prints the median of its ns and of the ratios of the pairs. It
// panics if a decision is admitted that must be refused, or refused that must be admitted.
//
//	go run ./cliffs                      10,000 known keys, one core
//	go run ./cliffs -all                 also one key, a million keys, new keys, two cores
//	go run ./cliffs -random 100          also 100 rates drawn at random
//	go run ./cliffs -write CLIFFS.md     writes the report to a file
//	go run ./cliffs -plot CLIFFS.svg     only draws ns over the denominator of the rate
//	go run ./cliffs -waiting WAITING.svg only draws ns of a join, a leave and a grant over the waiting callers
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

// config is what the flags choose.
type config struct {
	only    string
	column  string
	mix     string
	all     bool
	random  int
	seed    uint64
	window  time.Duration
	windows int
}

func main() {
	var c config
	flag.StringVar(&c.only, "only", "", "measure only rows whose name contains this `text`")
	flag.StringVar(&c.column, "column", "", "measure only columns whose name contains this `text`")
	flag.StringVar(&c.mix, "mix", "", "measure only mixes whose name contains this `text`, of those that -all measures")
	flag.BoolVar(&c.all, "all", false, "measure all mixes, on one core and two")
	flag.IntVar(&c.random, "random", 0, "also measure `n` rates drawn at random")
	flag.Uint64Var(&c.seed, "seed", 1, "seed of the random rates")
	flag.DurationVar(&c.window, "window", 3*time.Millisecond, "length of one window")
	flag.IntVar(&c.windows, "windows", 40, "pairs of windows of each figure")
	write := flag.String("write", "", "write the report to this `file` instead of the standard output")
	plot := flag.String("plot", "", "draw ns over the denominator of the rate in this SVG `file`, and measure nothing else")
	waiting := flag.String("waiting", "", "draw ns of a join, a leave and a grant over the waiting callers in this SVG `file`, and measure nothing else")
	flag.Parse()
	if err := c.run(*write, *plot, *waiting); err != nil {
		fmt.Fprintln(os.Stderr, "cliffs:", err)
		os.Exit(1)
	}
}

func (c *config) run(write, plot, waiting string) error {
	switch {
	case plot != "":
		return drawDenominators(c, plot)
	case waiting != "":
		return drawWaiting(c, waiting)
	}
	var report bytes.Buffer
	begun := time.Now()
	results := measureAll(c)
	printReport(&report, c, results, strings.Join(append([]string{"go run ./cliffs"}, os.Args[1:]...), " "), begun)
	if write == "" {
		_, err := os.Stdout.Write(report.Bytes())
		return err
	}
	return os.WriteFile(write, report.Bytes(), 0o644)
}
