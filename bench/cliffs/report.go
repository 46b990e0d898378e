package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"
)

// printReport prints a table of all rows for each mix, and the aims that were missed.
func printReport(to io.Writer, c *config, results []result, command string, begun time.Time) {
	fmt.Fprintf(to, "# Does the cost of a decision depend on the numbers in the limit?\n\n")
	fmt.Fprintf(to, "`%s` in `bench/` wrote this on %s: %s, %s/%s, %d CPUs, %.0f s.\n\n", command, begun.UTC().Format(time.DateOnly),
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), time.Since(begun).Seconds())
	fmt.Fprintf(to, "A cell is the ns of one decision, admitted / refused, and in brackets the ratio to 10/s, which was measured beside it in\n")
	fmt.Fprintf(to, "%d pairs of windows of %s. Both are medians, the second of the ratios of the pairs. Refusals have a standing clock. For new\n", c.windows, c.window)
	fmt.Fprintf(to, "keys, each of a pair fills new tables of %d sizes. A ratio above its aim is bold.\n", stages)
	for _, m := range mixes(c) {
		of := slices.DeleteFunc(slices.Clone(results), func(r result) bool { return r.mix != m.name() })
		if len(of) > 0 {
			printMix(to, m, of)
		}
	}
}

func printMix(to io.Writer, m *mix, results []result) {
	fmt.Fprintf(to, "\n## %s\n\n| limit | Limiter | Keyed | Memory |\n|---|---:|---:|---:|\n", m.name())
	var names []string
	for _, r := range results {
		if !slices.Contains(names, r.row) && !strings.HasPrefix(r.row, randomName) {
			names = append(names, r.row)
		}
	}
	for _, name := range names {
		fmt.Fprintf(to, "| %s |", name)
		for _, column := range columns {
			fmt.Fprintf(to, " %s |", text(results, name, column.name))
		}
		fmt.Fprintln(to)
	}
	printRandom(to, results)
}

// text returns "admitted / refused" of one cell.
func text(results []result, row, column string) string {
	var ns, ratios []string
	for _, r := range results {
		if r.row == row && r.column == column {
			ns, ratios = append(ns, fmt.Sprintf("%.0f", r.ns)), append(ratios, r.ratioText())
		}
	}
	if ns == nil {
		return ""
	}
	return strings.Join(ns, " / ") + " (" + strings.Join(ratios, " / ") + ")"
}

func (r result) ratioText() string {
	if r.missed() {
		return fmt.Sprintf("**%.2f ×**", r.ratio)
	}
	return fmt.Sprintf("%.2f ×", r.ratio)
}

// printRandom prints the random rates in one line for each column.
func printRandom(to io.Writer, results []result) {
	for _, column := range columns {
		for _, admit := range []bool{true, false} {
			of := slices.DeleteFunc(slices.Clone(results), func(r result) bool {
				return r.column != column.name || r.admit != admit || !strings.HasPrefix(r.row, randomName)
			})
			if len(of) == 0 {
				continue
			}
			slices.SortFunc(of, func(a, b result) int { return cmp.Compare(a.ratio, b.ratio) })
			above := 0
			for _, r := range of {
				if r.missed() {
					above++
				}
			}
			worst := of[len(of)-1]
			fmt.Fprintf(to, "\n%d random rates, %s, %s: median %.2f ×, worst %s (%s), %d above the aim\n", len(of), column.name,
				map[bool]string{true: "admitted", false: "refused"}[admit], of[len(of)/2].ratio, worst.ratioText(), strings.TrimPrefix(worst.row, randomName), above)
		}
	}
}
