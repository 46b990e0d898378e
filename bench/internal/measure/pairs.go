package measure

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"
)

// Pair asks two builds for a measurement of a row each. Every second turn begins with the later build, so that neither
// always follows the other. The earlier build may fail, with the error old.
func Pair[Row, Figures any](turn int, before, after Asker[Row, Figures], row Row) (b, a Figures, old, err error) {
	asks := [2]func(){func() { b, old = before.Ask(row) }, func() { a, err = after.Ask(row) }}
	asks[turn%2]()
	asks[1-turn%2]()
	return b, a, old, err
}

// paired is one figure of neighbouring measurements of two builds, from one round.
type paired struct{ before, after Series }

// change is a figure before and after, and the ratios of its measurements.
type change struct {
	row                      Row
	column                   Column
	before, after            float64 // medians of all measurements; before is NaN if a measurement failed
	ratio, smallest, largest float64 // of the rounds; a round counts with the median ratio of neighbours
}

func changeOf(row Row, column Column, rounds []paired) change {
	var before, after, ratios Series
	for _, r := range rounds {
		before, after = append(before, r.before...), append(after, r.after...)
		ratios = append(ratios, r.after.Over(r.before).Median())
	}
	smallest, largest := ratios.Range()
	c := change{row, column, before.Median(), after.Median(), ratios.Median(), smallest, largest}
	if slices.ContainsFunc(before, math.IsNaN) {
		c.before, c.ratio = math.NaN(), math.NaN()
	}
	return c
}

// found are the figures of each row, round by round.
type found map[string]map[string][]paired

// comparePairs has two builds take turns within each row, and returns the report. Each round has new builds, whose
// functions lie in another order, and new processes, because the places of keys and of code are luck that a process
// keeps.
func (b *Bench) comparePairs(ctx context.Context, o *Options, rows []Row, arguments []string) (string, error) {
	rows = slices.DeleteFunc(rows, func(row Row) bool { return row.Once })
	builds, err := NewBuilds(b.Program, o.Base, "bench/internal", b.Program)
	if err != nil {
		return "", err
	}
	defer builds.Close()
	all, p := found{}, &progress{began: time.Now()}
	for round := range o.Rounds {
		p.tell("round %d of %d: %d rows", round+1, o.Rounds, len(rows))
		if err := builds.Build(round); err != nil {
			return "", err
		}
		if err := b.startRound(ctx, o, builds, rows, arguments, all, p); err != nil {
			return "", err
		}
	}
	return b.pairsText(o, rows, all), nil
}

func (b *Bench) startRound(ctx context.Context, o *Options, builds *Builds, rows []Row, arguments []string, all found, p *progress) error {
	arguments = append([]string{"-serve", "-place", o.Place}, arguments...)
	before, err := StartChild[string, Figures](builds.Before(), arguments...)
	if err != nil {
		return err
	}
	defer before.Stop()
	after, err := StartChild[string, Figures](builds.After(), arguments...)
	if err != nil {
		return err
	}
	defer after.Stop()
	return all.round(ctx, before, after, rows, o.Reps, p)
}

// round measures each row. A row without code of Weir shows luck alone, and has half of the measurements. The first
// measurements prepare what a row needs, and do not count.
func (all found) round(ctx context.Context, before, after Asker[string, Figures], rows []Row, reps int, p *progress) error {
	turn := 0
	for _, row := range rows {
		p.tell("%s", row.Name())
		count := reps
		if !row.Ours {
			count = max(1, reps/2)
		}
		round := map[string]paired{}
		for i := range count + 1 {
			if err := ctx.Err(); err != nil {
				return err
			}
			x, y, old, err := Pair(turn, before, after, row.Name())
			if err != nil {
				return err
			}
			turn++
			if old != nil {
				fmt.Fprintln(os.Stderr, old)
			}
			for figure := range y {
				was, n := round[figure], x[figure]
				if old != nil {
					n = math.NaN()
				}
				if i > 0 {
					round[figure] = paired{append(was.before, n), append(was.after, y[figure])}
				}
			}
		}
		if all[row.Name()] == nil {
			all[row.Name()] = map[string][]paired{}
		}
		for figure, p := range round {
			all[row.Name()][figure] = append(all[row.Name()][figure], p)
		}
	}
	return nil
}

const pairsAbout = `The two builds take turns within each row. Each round has new processes and another layout of the code. A figure is the median of
all measurements. Its ratio is that of neighbouring measurements, new over old: the median of the rounds, and the smallest and
the largest of them. Rows without code of Weir show how far luck alone moves a figure. The earlier build failed where it says so.

`

// worse is the share by which a figure has become worse when it is listed.
const worse = 0.05

func (b *Bench) pairsText(o *Options, rows []Row, all found) string {
	var out strings.Builder
	b.head(&out, b.Title+": before and after, in pairs", o, fmt.Sprintf("Before: %s. %d rounds, each with %d pairs of %v.\n\n%s", o.Base, o.Rounds, o.Reps, o.Window, pairsAbout))
	changes := map[string]change{}
	var ours []change
	for _, row := range rows {
		for _, column := range b.Columns {
			if rounds := all[row.Name()][column.Figure]; len(rounds) > 0 {
				c := changeOf(row, column, rounds)
				changes[row.Name()+column.Figure] = c
				if row.Ours {
					ours = append(ours, c)
				}
			}
		}
	}
	listWorse(&out, ours)
	for _, group := range distinct(rows, func(row Row) string { return row.Group }) {
		some := slices.DeleteFunc(slices.Clone(rows), func(row Row) bool { return row.Group != group })
		fmt.Fprintf(&out, "\n## %s\n\n", group)
		b.table(&out, some, func(row Row, column Column) string {
			if c, known := changes[row.Name()+column.Figure]; known {
				return c.String()
			}
			return ""
		})
	}
	return out.String()
}

// loss returns by how many times the figure has become worse, by one of its ratios.
func (c change) loss(ratio float64) float64 {
	if c.column.More {
		return 1 / ratio
	}
	return ratio
}

// listWorse lists what became worse, the worst first.
func listWorse(out *strings.Builder, all []change) {
	list := slices.DeleteFunc(slices.Clone(all), func(c change) bool { return !(c.loss(c.ratio) > 1+worse) })
	slices.SortStableFunc(list, func(x, y change) int { return cmp.Compare(y.loss(y.ratio), x.loss(x.ratio)) })
	always := 0
	for _, c := range list {
		if min(c.loss(c.smallest), c.loss(c.largest)) > 1+worse {
			always++
		}
	}
	fmt.Fprintf(out, "%d of %d figures of Weir are more than 5 %% worse by their median; of these %d in every round.\n", len(list), len(all), always)
	for i, c := range list {
		if i == 0 {
			out.WriteString("\n")
		}
		fmt.Fprintf(out, "- %s, %s: %s\n", c.row.Name(), c.column.Figure, c)
	}
}

func (c change) String() string {
	if math.IsNaN(c.before) {
		return fmt.Sprintf("failed → "+c.column.Format, c.after)
	}
	return fmt.Sprintf(c.column.Format+" → "+c.column.Format+" (%.2f ×, %.2f to %.2f)", c.before, c.after, c.ratio, c.smallest, c.largest)
}

// progress writes what a run measures to standard error, a line a second at most.
type progress struct{ began, told time.Time }

func (p *progress) tell(format string, values ...any) {
	if now := time.Now(); now.Sub(p.told) > time.Second {
		p.told = now
		fmt.Fprintf(os.Stderr, "%6.1f s  %s\n", now.Sub(p.began).Seconds(), fmt.Sprintf(format, values...))
	}
}
