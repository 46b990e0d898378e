// Program waiting measures callers of several processes that wait in queues of package pace for keys of one Redis, and for slots
// on MariaDB and SQLite. It starts its own servers, and the processes, on this machine. It judges the aims of scenarios.go.
//
//	go run ./bench/waiting                  half an hour; writes bench/WAITING_REDIS.md
//	go run ./bench/waiting -base v1.0.0     the same workloads beside those of an earlier commit, in turns
//	go run ./bench/waiting -only 'a process of one' -reps 1    prints the rows whose workloads match
//	go run ./bench/waiting -only 'questions' -reps 1 -window 3s    questions by the number of callers, five minutes
//	go run ./bench/waiting -only 'ms on '    how equally processes share slots
package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/weirflow/weir/bench/internal/measure"
)

// callersFlag is the argument of a process of callers.
const callersFlag = "-callers"

func main() {
	if len(os.Args) != 2 || os.Args[1] != callersFlag {
		bench.Main()
	} else if err := measure.Serve(os.Stdin, os.Stdout, func(j job) (tally, error) { return j.run(context.Background()) }); err != nil {
		fmt.Fprintln(os.Stderr, "waiting:", err)
		os.Exit(1)
	}
}

var bench = &measure.Bench{
	Program: "bench/waiting", Title: "Waiting on Redis", Report: "bench/WAITING_REDIS.md", Pairs: "bench/WAITING_REDIS.md",
	About: "Callers of several processes wait in queues for keys of one Redis, or of the database that a row names, on one machine.",
	Reps:  3, PairReps: 1, Rounds: 1, Window: 6 * time.Second, PairWindow: 6 * time.Second,
	Rows: func(*measure.Options) (list []measure.Row, err error) {
		for _, w := range workloads() {
			list = append(list, measure.Row{Group: w.name, Line: "all callers", Ours: true, Measure: w.row})
		}
		return append(list, questionRows()...), nil
	},
	Columns: append(columns(), measure.Column{Figure: asked{}.figure(), Format: "%.2f"}),
	Targets: targets,
}

// row measures a workload on a server of its own.
func (w workload) row(ctx context.Context, o *measure.Options) (measure.Figures, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s, err := newStage(program)
	if err != nil {
		return nil, err
	}
	defer s.end()
	s.measured = o.Window
	got, err := w.measure(ctx, s)
	if err != nil {
		return nil, err
	}
	f := measure.Figures{}
	for i, n := range got {
		f[w.figures[i].figure()] = n
	}
	return f, nil
}

// columns are the figures of all workloads.
func columns() (list []measure.Column) {
	for _, w := range workloads() {
		for _, a := range w.figures {
			if !slices.ContainsFunc(list, func(c measure.Column) bool { return c.Figure == a.figure() }) {
				list = append(list, measure.Column{Figure: a.figure(), Format: "%.2f", More: !math.IsNaN(a.least)})
			}
		}
	}
	return list
}

func targets([]measure.Row) (list []measure.Target) {
	for _, w := range workloads() {
		for _, a := range w.figures {
			t := measure.Target{Name: w.name + ": " + a.what, Figure: a.figure(), Format: "%.2f", Bound: a.most, Cases: []measure.Case{{Row: "all callers, " + w.name}}}
			if !math.IsNaN(a.least) {
				t.Bound, t.AtLeast = a.least, true
			}
			if !math.IsNaN(t.Bound) {
				list = append(list, t)
			}
		}
	}
	return list
}

func (a aim) figure() string {
	if a.unit == "" {
		return a.what
	}
	return a.what + ", " + a.unit
}
