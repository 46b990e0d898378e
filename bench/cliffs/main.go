// Command cliffs measures whether the numbers in a limit change the cost of a decision. It measures each limit beside
// 10/s, in pairs of windows of some milliseconds. A run fails if a decision is admitted that must be refused, or refused
// that must be admitted.
//
//	go run ./bench/cliffs                10,000 known keys, one core
//	go run ./bench/cliffs -all           also one key, a million keys, new keys, two cores
//	go run ./bench/cliffs -random 100    also 100 rates drawn at random
package main

import (
	"context"
	"flag"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/bench/internal/workload"
)

// config is what the flags choose.
type config struct {
	all    bool
	random int
	seed   uint64
}

var c config

func main() { cliffs.Main() }

const (
	ns    = "ns"
	ratio = "×"
)

var cliffs = &measure.Bench{
	Program: "bench/cliffs", Title: "Does the cost of a decision depend on the numbers in the limit?", Report: "bench/CLIFFS.md", Reps: 1, Window: 240 * time.Millisecond,
	About: `A cell is the ns of one decision, and its ratio to 10/s, which was measured beside it in 40 pairs of windows. Both are medians, the
second of the ratios of the pairs. Refusals have a standing clock. For new keys, each of a pair fills new tables of 4 sizes.`,
	Flags: func(flags *flag.FlagSet) {
		flags.BoolVar(&c.all, "all", false, "measure all mixes, on one core and two")
		flags.IntVar(&c.random, "random", 0, "also measure `n` rates drawn at random")
		flags.Uint64Var(&c.seed, "seed", 1, "seed of the random rates")
	},
	Rows:    measuredRows,
	Columns: []measure.Column{{Figure: ns, Format: "%.0f"}, {Figure: ratio, Format: "%.2f ×"}},
	Targets: func([]measure.Row) []measure.Target { return targets },
}

// targets are those of the rows that are measured: one for each column and aim.
var targets []measure.Target

func aimAt(name string, bound float64, row measure.Row) {
	at := slices.IndexFunc(targets, func(t measure.Target) bool { return t.Name == name && t.Bound == bound })
	if at < 0 {
		at = len(targets)
		targets = append(targets, measure.Target{Name: name, Figure: ratio, Format: "%.2f ×", Bound: bound})
	}
	targets[at].Cases = append(targets[at].Cases, measure.Case{Row: row.Name()})
}

func measuredRows(*measure.Options) (list []measure.Row, err error) {
	for _, m := range mixes() {
		all := rows(&c, m)
		for _, r := range all {
			for _, column := range columns {
				for _, admit := range []bool{true, false} {
					skip := m.Fresh && !admit || column.name == "Limiter" && (m.Keys != 10_000) != r.list || column.make(r, admit) == nil
					if skip {
						continue
					}
					one := r.measured(column, m, admit)
					if list = append(list, one); r.aims.of(column.name, m) > 0 {
						aimAt(column.name+" over 10/s", r.aims.of(column.name, m), one)
					}
				}
			}
		}
	}
	return list, nil
}

func (r row) measured(column column, m *mix, admit bool) measure.Row {
	group := m.name()
	if strings.HasPrefix(r.name, randomName) {
		group += ", " + r.name[:strings.Index(r.name, ":")]
	}
	one := measure.Row{Group: group, Line: r.name, Column: columnName(column, admit)}
	one.Measure = func(_ context.Context, o *measure.Options) (measure.Figures, error) {
		found := m.compare(column, r, admit, o.Window/(2*windows))
		return measure.Figures{ns: found.ns.Median(), ratio: found.ratios.Median()}, nil
	}
	return one
}

func columnName(column column, admit bool) string {
	if admit {
		return column.name + ", admitted"
	}
	return column.name + ", refused"
}

// mixes returns those to measure. The first is the one of the table of all rows.
func mixes() (chosen []*mix) {
	for cores := 1; cores <= 2; cores++ {
		for _, m := range []*workload.Mix{
			{Name: "10k uniform", Keys: 10_000}, {Name: "one key", Keys: 1}, {Name: "1M uniform", Keys: 1_000_000},
			{Name: "1M zipf", Keys: 1_000_000, Skew: 1.01}, {Name: "never seen", Keys: 1 << 18, Fresh: true},
		} {
			first, contended := m.Keys == 10_000 && cores == 1, cores > 1 && m.Keys == 1 // one key is one word, which cores pass to each other
			if first || c.all && !contended {
				chosen = append(chosen, &mix{m, cores, map[string]*subject{}})
			}
		}
	}
	return chosen
}
