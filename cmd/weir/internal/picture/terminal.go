package picture

import (
	"fmt"
	"math"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/screen"
)

// The rows of a panel on a terminal.
const (
	panelRows = 6
	chartRows = 12
)

// The columns of a picture with characters.
const (
	usualColumns = 100 // of a pipe
	mostColumns  = 120
	leastColumns = 30
	margin       = 9 // of the numbers on the left
)

// widthOf returns the columns right of the margin.
func widthOf(s screen.Screen) int {
	columns := s.Columns
	if columns == 0 {
		columns = usualColumns
	}
	return max(leastColumns, min(columns, mostColumns)) - margin
}

// light is the rune of refused units.
const light = '░'

var eighths = []rune(" ▁▂▃▄▅▆▇█")

// barColours returns the colours of the runes of bars.
func barColours() map[rune]screen.Colour {
	colours := map[rune]screen.Colour{light: screen.Refused}
	for _, r := range eighths[1:] {
		colours[r] = screen.Admitted
	}
	return colours
}

// Terminal draws each panel with bars: full blocks for admitted units, light ones for refused units.
func (t Timeline) Terminal(s screen.Screen) string {
	var b strings.Builder
	width := widthOf(s)
	highest := float64(t.highest())
	legend := fmt.Sprintf("█ admitted  ░ asked for, but refused then; %s per %s\n", t.Unit, shortTime(t.Every))
	b.WriteString(s.PaintRunes(s.Wrap(legend, 0), barColours()))
	for _, panel := range t.Panels {
		admitted := "  ·  " + share(panel)
		fmt.Fprintf(&b, "\n%s%s\n", screen.Shorten(panel.Name, max(1, width+margin-len([]rune(admitted)))), admitted)
		bars{values: resample(panel.Admitted, width), behind: resample(panel.Offered, width), refused: resample(panel.Refused, width)}.write(&b, s, panelRows, highest)
		queued := bars{values: resample(panel.Queued, width)}
		if highestQueue := maxOf(queued.values); highestQueue > 0 {
			fmt.Fprintf(&b, "%7s ┤ waiting requests, up to %s\n", "", count(highestQueue))
			queued.write(&b, screen.Screen{}, panelRows/2, highestQueue)
		}
	}
	b.WriteString(t.axis(width))
	return b.String()
}

// axis returns the line of times below the panels.
func (t Timeline) axis(width int) string {
	seconds := t.seconds()
	ticks := timeTicks{start: t.Start, labels: true}
	line, next := []rune(strings.Repeat(" ", width)), 0
	for _, tick := range ticks.ticks(0, seconds) {
		label := []rune(tick.label)
		at := min(int(math.Round(tick.value/seconds*float64(width))), width-len(label))
		if at >= next {
			copy(line[at:], label)
			next = at + len(label) + 2
		}
	}
	return strings.Repeat(" ", 9) + strings.TrimRight(string(line), " ") + "\n"
}

// resample returns as many values as there are columns: the largest of the steps of each, or each step several times.
func resample(steps []int64, columns int) []float64 {
	if len(steps) == 0 {
		return nil
	}
	values := make([]float64, columns)
	for i := range values {
		from := i * len(steps) / columns
		to := max(from+1, (i+1)*len(steps)/columns)
		for _, n := range steps[from:to] {
			values[i] = math.Max(values[i], float64(n))
		}
	}
	return values
}

func maxOf(values []float64) (most float64) {
	for _, v := range values {
		most = math.Max(most, v)
	}
	return most
}

// bars has a bar for each value, and a light one up to the value behind it. A column with anything refused shows it,
// even if it is too little to see beside the rest.
type bars struct {
	values, behind, refused []float64
}

func (v bars) write(b *strings.Builder, s screen.Screen, rows int, highest float64) {
	cells := make([][]rune, rows) // from the bottom
	for row := range cells {
		cells[row] = make([]rune, len(v.values))
	}
	for i := range v.values {
		v.column(cells, i, highest)
	}
	for row := rows - 1; row >= 0; row-- {
		label := ""
		switch row {
		case rows - 1:
			label = count(round(highest))
		case 0:
			label = "0"
		}
		fmt.Fprintf(b, "%7s ┤%s\n", label, s.PaintRunes(strings.TrimRight(string(cells[row]), " "), barColours()))
	}
}

// column fills one column of the cells.
func (v bars) column(cells [][]rune, i int, highest float64) {
	rows, top, lit := len(cells), 0, false
	for row := range cells {
		c := cell(v.values[i], highest, rows, row+1)
		switch {
		case c != ' ':
			top = row + 1
		case v.behind != nil && v.behind[i]/highest*float64(rows) > float64(row)+0.5:
			c, lit = light, true
		}
		cells[row][i] = c
	}
	if v.refused != nil && v.refused[i] > 0 && !lit {
		cells[min(top, rows-1)][i] = light
	}
}

// cell returns the part of a bar in one row, counted from the bottom. A value above 0 is always visible.
func cell(v, highest float64, rows, row int) rune {
	if highest <= 0 || v <= 0 {
		return ' '
	}
	part := int(math.Round((v/highest*float64(rows) - float64(row-1)) * 8))
	if row == 1 {
		part = max(1, part)
	}
	return eighths[max(0, min(8, part))]
}

func round(v float64) float64 {
	if v >= 100 {
		return math.Round(v)
	}
	return math.Round(v*100) / 100
}
