package main

import (
	"fmt"
	"io"
)

// printTable prints the figures as a Markdown table, "admitted / refused". With earlier figures it prints earlier
// and new ones.
func printTable(to io.Writer, figures, earlier map[string]float64) {
	fmt.Fprintln(to, "| limit | Limiter | Keyed | Memory |")
	fmt.Fprintln(to, "|---|---:|---:|---:|")
	for _, r := range rows() {
		if _, measured := figures[cell(r.name, "Memory", true)]; !measured {
			continue
		}
		fmt.Fprintf(to, "| %s |", r.name)
		for _, column := range []string{"Limiter", "Keyed", "Memory"} {
			fmt.Fprintf(to, " %s |", text(figures, earlier, r.name, column))
		}
		fmt.Fprintln(to)
	}
}

// text returns "admitted / refused" of one cell, with the ratios to 10/s and, if known, the earlier figures.
func text(figures, earlier map[string]float64, row, column string) string {
	admitted, ok := figures[cell(row, column, true)]
	if !ok {
		return ""
	}
	refused := figures[cell(row, column, false)]
	t := fmt.Sprintf("%.0f / %.0f", admitted, refused)
	first := rows()[0].name
	if a, ok := figures[cell(first, column, true)]; ok && row != first {
		t += fmt.Sprintf(" (%.2f × / %.2f ×)", admitted/a, refused/figures[cell(first, column, false)])
	}
	if before, ok := earlier[cell(row, column, true)]; ok {
		t += fmt.Sprintf(", was %.0f / %.0f", before, earlier[cell(row, column, false)])
	}
	return t
}
