package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/weirflow/weir/bench/internal/measure"
)

// side is a build that is measured.
type side struct{ name, program string }

// row is a workload and its figures: for each side, and each aim, those of all repetitions.
type row struct {
	workload
	figures [][]measure.Series
}

// measureAll measures the workloads, the sides in turn.
func measureAll(ctx context.Context, o options, sides []side) (rows []row, err error) {
	for _, w := range workloads() {
		if !o.only.MatchString(w.name) {
			continue
		}
		r := row{workload: w, figures: make([][]measure.Series, len(sides))}
		for n := range o.repetitions {
			for i, side := range sides {
				got, err := measureOne(ctx, side, w)
				if err != nil {
					return nil, fmt.Errorf("%s, %s: %w", w.name, side.name, err)
				}
				fmt.Fprintf(os.Stderr, "%s, %s, %d of %d: %.4g\n", w.name, side.name, n+1, o.repetitions, got)
				if r.figures[i] == nil {
					r.figures[i] = make([]measure.Series, len(got))
				}
				for j, n := range got {
					r.figures[i][j] = append(r.figures[i][j], n)
				}
			}
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func measureOne(ctx context.Context, side side, w workload) ([]float64, error) {
	s, err := newStage(ctx, side.program)
	if err != nil {
		return nil, err
	}
	defer s.end()
	return w.measure(ctx, s)
}

func report(o options, rows []row, sides []side, command string) string {
	var b strings.Builder
	b.WriteString("# Waiting on Redis\n\nCallers of several processes wait in queues for keys of one Redis, on one machine. `make bench-waiting-redis` writes this page;\n`go doc ./bench/waiting` says how.\n\n")
	for _, line := range measure.Machine(command) {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	fmt.Fprintf(&b, "- medians of %d measurements, with the lowest and the highest, on a machine that other programs may have kept busy\n\n", o.repetitions)
	b.WriteString(table(rows, sides))
	return b.String()
}

// table returns the figures beside their aims.
func table(rows []row, sides []side) string {
	var b strings.Builder
	b.WriteString("| | aim |")
	for _, side := range sides {
		fmt.Fprintf(&b, " %s | |", side.name)
	}
	b.WriteString("\n|---|---:|" + strings.Repeat("---:|---|", len(sides)) + "\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| **%s** | |%s\n", r.name, strings.Repeat(" | |", len(sides)))
		for j, aim := range r.workload.figures {
			fmt.Fprintf(&b, "| %s | %s |", aim.what, aim.bound())
			for i := range sides {
				all := r.figures[i][j]
				low, high := all.Range()
				fmt.Fprintf(&b, " %s (%s–%s) | %s |", aim.text(all.Median()), number(low), number(high), aim.verdict(all.Median()))
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func (a aim) bound() string {
	switch {
	case !math.IsNaN(a.least):
		return "≥ " + a.text(a.least)
	case !math.IsNaN(a.most):
		return "≤ " + a.text(a.most)
	}
	return ""
}

func (a aim) verdict(n float64) string {
	switch {
	case a.bound() == "":
		return ""
	case a.reached(n):
		return "reached"
	}
	return "**missed**"
}

func (a aim) text(n float64) string { return strings.TrimSpace(number(n) + " " + a.unit) }

func number(n float64) string {
	if math.Abs(n) < 10 {
		return fmt.Sprintf("%.2f", n)
	}
	return fmt.Sprintf("%.0f", n)
}
