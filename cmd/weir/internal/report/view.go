package report

import (
	_ "embed"
	"fmt"
	"strings"
)

// view is a page: its words and tables, which markup writes, and its charts, which the script draws.
type view struct {
	Title    string
	Kind     string // the command, and its input
	Headline string
	Lead     []string
	About    string // the traffic, in a line
	Sections []section
	Notes    []string // how the numbers came about
	Charts   []chart  `json:"-"`
}

// section answers a question.
type section struct {
	ID, Question string
	Answer       []string
	Choices      []choice // of parts; one is shown
	Parts        []part
}

// choice is a button that shows one of several parts.
type choice struct {
	Part, Name string
	Chosen     bool
}

// part is a picture, several small ones, or a table, below a heading.
type part struct {
	ID, Heading, Text string
	Hidden            bool // until it is chosen
	Figures           []figure
	Table             *table
}

// figure is the place of a chart, and says the same in words.
type figure struct{ ID, Title, Text string }

// table has a row for each thing, and the sums over all things, not only over those shown.
type table struct {
	Caption string
	What    string // what the rows are: clients
	First   int    // rows that are shown at first
	Columns []column
	Rows    [][]string
	Links   []string // of the first cell of each row: the ID of a figure, or ""; nil without any
	Sums    []string
}

// Link returns the ID that the first cell of a row leads to, or "".
func (t *table) Link(row int) string {
	if row < len(t.Links) {
		return t.Links[row]
	}
	return ""
}

type column struct {
	Title string
	Class string // n: numbers; key: long texts; key limit: those that should stay on one line
}

// Long reports whether the column has texts of any direction.
func (c column) Long() bool { return strings.HasPrefix(c.Class, "key") }

//go:embed report.js
var script string

// add puts a chart into a figure of the page.
func (v *view) add(c chart) figure {
	c.ID = fmt.Sprint("chart-", len(v.Charts))
	v.Charts = append(v.Charts, c)
	return figure{c.ID, c.Title, c.Answer}
}
