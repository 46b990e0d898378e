package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weirflow/weir/simulate"
)

// neverEnds stands for the figures of a phase in which a caller gave up.
const neverEnds = "never"

// table returns the run for people: rates, seconds and bursts of each phase, then the notes.
func (c classic) table() string {
	var b strings.Builder
	b.WriteString("Limits of 10/s with a burst of 10. Each column offers requests for 10 s at its rate, to a fresh state.\n" +
		"A refused caller retries every 10 ms until admitted, for up to a minute.\n\n")
	c.write(&b, "requests per second", func(r simulate.PhaseReport) string { return fixed(r.Rate) })
	c.write(&b, "seconds", func(r simulate.PhaseReport) string { return fixed(r.Seconds) })
	c.write(&b, "most in any second", func(r simulate.PhaseReport) string { return thousands(r.Most) })
	fmt.Fprintf(&b, "%s: a caller retried for a minute and was not admitted, so the phase stopped.\n\nnotes\n", neverEnds)
	writeNotes(&b, c.limits)
	b.WriteString("\nbad examples\n")
	writeNotes(&b, c.bad)
	b.WriteString("\nrounding\n")
	for _, f := range c.faults {
		fmt.Fprintf(&b, "  %s, at %d/s, polled every %s for %s: admits %s where %s are due\n",
			f.Name, f.PerSecond, shortDuration(f.Every), shortDuration(f.Over), thousands(f.Admitted), thousands(f.Due))
	}
	return b.String()
}

// write adds one figure of all subjects in all phases.
func (c classic) write(b *strings.Builder, title string, figure func(simulate.PhaseReport) string) {
	head := []string{title}
	for _, p := range c.phases {
		head = append(head, fmt.Sprintf("%d/s", p.PerSecond))
	}
	rows := [][]string{head}
	for i := 0; i < len(c.reports); i += len(c.phases) {
		if i == len(c.limits)*len(c.phases) {
			rows = append(rows, append([]string{"bad examples:"}, make([]string, len(c.phases))...))
		}
		row := []string{c.reports[i].Algorithm}
		for _, r := range c.reports[i : i+len(c.phases)] {
			cell := neverEnds
			if r.Ended {
				cell = figure(r)
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	writeRows(b, "", rows)
	b.WriteString("\n")
}

func writeNotes(b *strings.Builder, subjects []simulate.Subject) {
	for _, s := range subjects {
		if s.Note != "" {
			fmt.Fprintf(b, "  %s: %s\n", s.Name, s.Note)
		}
	}
}

// fixed formats a figure with two decimals.
func fixed(figure float64) string { return strconv.FormatFloat(figure, 'f', 2, 64) }
