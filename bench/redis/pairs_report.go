package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir/bench/internal/measure"
)

// worse is the ratio from which a figure counts as worse: of p50 above it, of decisions a second below its complement.
const worse = 0.05

// change is the change of a row.
type change struct {
	cell
	perSecond, p50 measure.Change
}

// changes returns the change of each row, in the order of the rows.
func changes(cells []cell, found map[id]*paired) (list []change) {
	for _, c := range cells {
		row := found[c.id()]
		list = append(list, change{c, measure.ChangeOf(row.perSecond), measure.ChangeOf(row.p50)})
	}
	return list
}

const pairsText = `The two builds take turns within each row, on the same servers, which are emptied before each window. Each round has new
processes and another layout of the code. A figure is the median of all windows. Its ratio is that of neighbouring windows, new
over old: the median of the rounds, and the smallest and the largest of them.

`

// pairsReport returns the text of bench/REDIS_PAIRS.md.
func pairsReport(m []string, o options, list []change, took time.Duration) string {
	var b strings.Builder
	b.WriteString("# Redis: before and after, in pairs\n\nWritten by `make bench-redis-pairs`; the rows are those of bench/REDIS.md.\n\n")
	for _, line := range m {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	fmt.Fprintf(&b, "- before: %s\n", o.base)
	fmt.Fprintf(&b, "- %d rounds, each with %d pairs of windows of a row (half as many without code of Weir) of %v, or %v for batches of one algorithm; %s in all\n\n",
		o.rounds, o.repetitions, o.duration, o.scripts, took.Round(time.Second))
	b.WriteString(pairsText)
	ours, others := byWeir(list)
	worseRows(&b, ours)
	pairsTable(&b, "Rows of Weir", ours)
	pairsTable(&b, "Rows without code of Weir, whose ratios show how far luck alone moves a figure", others)
	return b.String()
}

func byWeir(list []change) (ours, others []change) {
	for _, c := range list {
		if c.ofWeir() {
			ours = append(ours, c)
		} else {
			others = append(others, c)
		}
	}
	return ours, others
}

// worseRows lists what became worse.
func worseRows(b *strings.Builder, list []change) {
	type row struct {
		loss   float64
		text   string
		always bool // in every round
	}
	var rows []row
	for _, c := range list {
		if s := c.perSecond; s.Ratio < 1-worse {
			rows = append(rows, row{1 / s.Ratio, fmt.Sprintf("%s: decisions/s %s", c.id(), ratios(s)), s.Largest < 1-worse})
		}
		if s := c.p50; s.Ratio > 1+worse {
			rows = append(rows, row{s.Ratio, fmt.Sprintf("%s: p50 %s", c.id(), ratios(s)), s.Smallest > 1+worse})
		}
	}
	slices.SortStableFunc(rows, func(x, y row) int { return cmp.Compare(y.loss, x.loss) })
	always := len(slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return !r.always }))
	fmt.Fprintf(b, "%d of %d figures of Weir are more than 5 %% worse by their median; of these %d in every round.\n", len(rows), 2*len(list), always)
	for i, r := range rows {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(b, "- %s\n", r.text)
	}
}

func pairsTable(b *strings.Builder, title string, list []change) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n| row | decisions/s | ratio | p50 µs | ratio |\n|---|---:|---:|---:|---:|\n", title)
	for _, c := range list {
		fmt.Fprintf(b, "| %s | %.0f → %.0f | %s | %.0f → %.0f | %s |\n", c.id(),
			c.perSecond.Before, c.perSecond.After, ratios(c.perSecond), c.p50.Before, c.p50.After, ratios(c.p50))
	}
}

func ratios(c measure.Change) string {
	return fmt.Sprintf("%.3f × (%.3f to %.3f)", c.Ratio, c.Smallest, c.Largest)
}
