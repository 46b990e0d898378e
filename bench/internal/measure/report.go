package measure

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// tookMark stands for the length of the run until it is known.
const tookMark = "TOOK"

// head writes the beginning of a report.
func (b *Bench) head(out *strings.Builder, title string, o *Options, about string) {
	fmt.Fprintf(out, "# %s\n\nWritten by the bench; do not edit.\n\n", title)
	for _, line := range Machine(o.Command) {
		fmt.Fprintf(out, "- %s\n", line)
	}
	fmt.Fprintf(out, "- %s in all\n\n%s", tookMark, about)
}

// text returns the report of a run.
func (b *Bench) text(r *Results, o *Options) string {
	var out strings.Builder
	b.head(&out, b.Title, o, fmt.Sprintf("%s\n\nFigures are medians of %d repetitions, each of which measures every row once. Ratios are of the same repetition.\n", b.About, o.Reps))
	b.targets(&out, r)
	for _, group := range distinct(r.Rows, func(row Row) string { return row.Group }) {
		rows := slices.DeleteFunc(slices.Clone(r.Rows), func(row Row) bool { return row.Group != group })
		fmt.Fprintf(&out, "\n## %s\n\n", group)
		b.table(&out, rows, func(row Row, column Column) string { return column.text(r.Series(row.Name(), column.Figure)) })
	}
	return out.String()
}

func (b *Bench) targets(out *strings.Builder, r *Results) {
	if b.Targets == nil {
		return
	}
	var lines strings.Builder
	for _, t := range b.Targets(r.Rows) {
		if measured, verdict := t.Verdict(r); measured != "-" {
			fmt.Fprintf(&lines, "| %s | %s | %s | %s |\n", t.Name, t.aim(), measured, verdict)
		}
	}
	if lines.Len() == 0 {
		return
	}
	out.WriteString("\n## Targets\n\nThe median, with the least and the greatest. A target is missed only if no repetition reached the aim.\n\n| target | aim | measured | |\n|---|---|---|---|\n")
	out.WriteString(lines.String())
}

// text returns the median and the distance of the farthest repetition in percent.
func (c Column) text(s Series) string {
	if len(s) == 0 {
		return ""
	}
	text := fmt.Sprintf(c.Format, s.Median())
	if low, high := s.Range(); low != high && s.Median() != 0 {
		text += fmt.Sprintf(" ±%.0f %%", 100*max(high-s.Median(), s.Median()-low)/math.Abs(s.Median()))
	}
	return text
}

// table writes a line for each Line. A row with a Column is one cell of it; otherwise each figure is a cell.
func (b *Bench) table(out *strings.Builder, rows []Row, text func(Row, Column) string) {
	cells := b.cells(rows, text)
	if rows[0].Column == "" {
		b.figureTable(out, rows, cells)
		return
	}
	columns := distinct(rows, func(row Row) string { return row.Column })
	writeRow(out, append([]string{""}, columns...))
	writeRule(out, len(columns))
	for _, line := range distinct(rows, func(row Row) string { return row.Line }) {
		texts := []string{line}
		for _, column := range columns {
			at := slices.IndexFunc(rows, func(row Row) bool { return row.Line == line && row.Column == column })
			cell := "-"
			if at >= 0 {
				cell = strings.Join(slices.DeleteFunc(slices.Clone(cells[at]), func(s string) bool { return s == "" }), ", ")
			}
			texts = append(texts, cell)
		}
		writeRow(out, texts)
	}
}

// cells returns the text of each figure of each row.
func (b *Bench) cells(rows []Row, text func(Row, Column) string) (cells [][]string) {
	for _, row := range rows {
		var line []string
		for _, column := range b.Columns {
			line = append(line, text(row, column))
		}
		cells = append(cells, line)
	}
	return cells
}

// figureTable leaves out figures that no row has.
func (b *Bench) figureTable(out *strings.Builder, rows []Row, cells [][]string) {
	head, shown := []string{""}, []int{}
	for i, column := range b.Columns {
		if slices.ContainsFunc(cells, func(line []string) bool { return line[i] != "" }) {
			head, shown = append(head, column.Figure), append(shown, i)
		}
	}
	writeRow(out, head)
	writeRule(out, len(shown))
	for i, row := range rows {
		texts := []string{row.Line}
		for _, at := range shown {
			texts = append(texts, cells[i][at])
		}
		writeRow(out, texts)
	}
}

func writeRow(out *strings.Builder, cells []string) {
	fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | "))
}

func writeRule(out *strings.Builder, figures int) {
	fmt.Fprintf(out, "|---%s|\n", strings.Repeat("|---:", figures))
}

// distinct returns the values in order of their first appearance.
func distinct[T any](list []T, of func(T) string) (values []string) {
	for _, one := range list {
		if v := of(one); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}
