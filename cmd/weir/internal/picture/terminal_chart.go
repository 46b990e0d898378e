package picture

import (
	"fmt"
	"math"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/screen"
)

// Terminal draws a single line of the chart as bars, and several lines with a letter for each.
func (c Chart) Terminal(s screen.Screen) string {
	var lines []Line
	for _, line := range c.Lines {
		if !line.Dots && !line.Dashed && len(line.Points) > 0 {
			lines = append(lines, line)
		}
	}
	if len(lines) > 1 {
		return c.letters(s, lines)
	}
	var b strings.Builder
	width := widthOf(s)
	for _, line := range lines {
		x, _ := c.spans(lines, nil)
		values := make([]float64, width)
		for i := range values {
			values[i] = line.at(x.at((float64(i) + 0.5) / float64(width)))
		}
		b.WriteString(s.Wrap(fmt.Sprintf("%s: %s\n", line.Name, c.Y), 0))
		bars{values: values}.write(&b, s, chartRows, maxOf(values))
		b.WriteString(c.below(x, width))
	}
	for _, mark := range c.Marks {
		fmt.Fprintf(&b, "%s: %s\n", mark.Name, count(round(mark.At)))
	}
	return b.String()
}

// The runes of a chart of letters, besides the letters.
const (
	dot   = '●'
	level = '┄'
)

var chartColours = map[rune]screen.Colour{dot: screen.Admitted, level: screen.Refused}

// letters draws all lines in one chart, with the marks across it below them and the dots above. The legend follows.
func (c Chart) letters(s screen.Screen, lines []Line) string {
	x, y := c.spans(c.Lines, c.Marks)
	width, legend := widthOf(s), []string{}
	cells := make([][]rune, chartRows) // from the bottom
	for row := range cells {
		cells[row] = []rune(strings.Repeat(" ", width))
	}
	for _, mark := range c.Marks {
		if mark.Across {
			cells[y.cell(mark.At, chartRows)] = []rune(strings.Repeat(string(level), width))
			legend = append(legend, fmt.Sprintf("%c %s: %s", level, mark.Name, count(round(mark.At))))
		}
	}
	var names []string
	for i, line := range lines {
		letter := rune('a' + i%26)
		names = append(names, fmt.Sprintf("%c %s", letter, line.Name))
		first, last := line.Points[0].X, line.Points[len(line.Points)-1].X
		for column := x.cell(first, width); column <= x.cell(last, width); column++ {
			v := line.at(min(max(first, x.at((float64(column)+0.5)/float64(width))), last))
			cells[y.cell(v, chartRows)][column] = letter
		}
	}
	for _, line := range c.Lines {
		for _, p := range line.Points {
			if line.Dots {
				cells[y.cell(p.Y, chartRows)][x.cell(p.X, width)] = dot
			}
		}
		if line.Dots {
			legend = append(legend, fmt.Sprintf("%c %s", dot, line.Name))
		}
	}
	var b strings.Builder
	b.WriteString(s.Wrap(c.Y+"\n", 0))
	for row := chartRows - 1; row >= 0; row-- {
		label := ""
		if row == chartRows-1 || row == 0 {
			label = count(round(y.at(float64(row) / (chartRows - 1))))
		}
		fmt.Fprintf(&b, "%7s ┤%s\n", label, s.PaintRunes(strings.TrimRight(string(cells[row]), " "), chartColours))
	}
	b.WriteString(c.below(x, width))
	b.WriteString(wrapWhole(s, append(legend, names...)))
	return b.String()
}

// wrapWhole writes the parts one after the other, and breaks lines only between them.
func wrapWhole(s screen.Screen, parts []string) string {
	const blank = "\u00a0"
	for i, part := range parts {
		parts[i] = strings.ReplaceAll(part, " ", blank)
	}
	wrapped := s.Wrap(strings.Join(parts, "  ")+"\n", 0)
	return s.PaintRunes(strings.ReplaceAll(wrapped, blank, " "), chartColours)
}

// below returns the line below a chart: the ends of the axis, and its unit.
func (c Chart) below(x bounds, width int) string {
	low, high := count(round(x.low)), count(round(x.high))
	left := max(2, (width-len([]rune(c.X)))/2-len(low))
	right := max(2, width-len(low)-left-len([]rune(c.X))-len(high))
	return fmt.Sprintf("%*s%s%*s%s%*s%s\n", margin, "", low, left, "", c.X, right, "", high)
}

// at returns the value at a part of the range, from 0 to 1.
func (b bounds) at(part float64) float64 {
	low, high := b.place(b.low), b.place(b.high)
	return b.value(low + part*(high-low))
}

// cell returns which of n equal parts of the range holds a value.
func (b bounds) cell(v float64, n int) int {
	part := b.part(v, b.low, b.high)
	if math.IsNaN(part) { // the range is one value
		return 0
	}
	return int(max(0, min(part*float64(n), float64(n-1))))
}

// at returns the value of the line, which has a point.
func (l Line) at(x float64) float64 {
	i := 0
	for i+1 < len(l.Points) && l.Points[i+1].X <= x {
		i++
	}
	p := l.Points[i]
	if l.Steps || i+1 == len(l.Points) || l.Points[i+1].X <= p.X {
		return p.Y
	}
	next := l.Points[i+1]
	return p.Y + (next.Y-p.Y)*max(0, x-p.X)/(next.X-p.X)
}
