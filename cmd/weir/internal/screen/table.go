package screen

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Table is a table of text. A row has a cell for each column, or only the first ones.
type Table struct {
	Indent  string
	Columns []Column
	Rows    [][]string
}

// Column is a column of a table. The first one is aligned to the left and the others to the right, except a last one
// without a title, which holds bars.
type Column struct {
	Title  string
	Colour Colour // of cells other than 0
	Rank   int    // a narrow screen omits the columns of the highest rank first, and never one of rank 0
}

// Table returns the table as text. If it is too wide for the screen, it loses columns by rank, and a line below names
// them. Then the cells of the first column are cut.
func (s Screen) Table(t Table) string {
	kept, widths := s.fit(t)
	var b strings.Builder
	title := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		title[i] = c.Title
	}
	b.WriteString(t.line(Screen{}, title, kept, widths))
	for _, row := range t.Rows {
		b.WriteString(t.line(s, row, kept, widths))
	}
	b.WriteString(s.omitted(t, kept))
	return b.String()
}

// fit returns which columns the screen shows and how wide they are.
func (s Screen) fit(t Table) (kept []bool, widths []int) {
	kept, widths = make([]bool, len(t.Columns)), make([]int, len(t.Columns))
	for i, c := range t.Columns {
		kept[i], widths[i] = true, utf8.RuneCountInString(c.Title)
		for _, row := range t.Rows {
			if i < len(row) {
				widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
			}
		}
	}
	if s.Columns == 0 {
		return kept, widths
	}
	for {
		room := s.Columns - len(t.Indent)
		for i := 1; i < len(widths); i++ {
			if kept[i] {
				room -= widths[i] + 2
			}
		}
		worst := t.leastImportant(kept)
		if room >= min(widths[0], s.Columns/2) || worst == 0 {
			widths[0] = max(1, min(widths[0], room))
			return kept, widths
		}
		kept[worst] = false
	}
}

// leastImportant returns the column to omit next, or 0 if all must stay.
func (t Table) leastImportant(kept []bool) (worst int) {
	for i := 1; i < len(kept); i++ {
		if kept[i] && t.Columns[i].Rank > 0 && (worst == 0 || t.Columns[i].Rank >= t.Columns[worst].Rank) {
			worst = i
		}
	}
	return worst
}

func (t Table) line(s Screen, row []string, kept []bool, widths []int) string {
	line := t.Indent
	last := len(t.Columns) - 1
	for i, cell := range row {
		if !kept[i] {
			continue
		}
		cell = Shorten(cell, widths[i])
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		if cell != "0" {
			cell = s.Paint(cell, t.Columns[i].Colour)
		}
		switch {
		case i == 0:
			line += cell + pad
		case i == last && t.Columns[i].Title == "":
			line += "  " + cell
		default:
			line += "  " + pad + cell
		}
	}
	return strings.TrimRight(line, " ") + "\n"
}

// omitted names the columns that the screen has no room for.
func (s Screen) omitted(t Table, kept []bool) string {
	var names []string
	for i, c := range t.Columns {
		if !kept[i] && c.Title != "" {
			names = append(names, c.Title)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return s.Wrap(fmt.Sprintf("%s(not shown in %d columns: %s)\n", t.Indent, s.Columns, strings.Join(names, ", ")), len(t.Indent)+1)
}
