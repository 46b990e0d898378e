package picture

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// The rows of a panel on a terminal.
const (
	panelRows = 6
	chartRows = 12
)

// Terminal draws each panel with bars: full blocks for what is admitted, light ones for what is refused.
func (t Timeline) Terminal(columns int) string {
	var b strings.Builder
	const margin = 8
	width := max(20, min(columns, 120)-margin-1)
	highest := 0.0
	panels := make([][3][]float64, len(t.Panels))
	for i, panel := range t.Panels {
		panels[i] = [3][]float64{resample(panel.Offered, width), resample(panel.Admitted, width), resample(panel.Queued, width)}
		for _, values := range panels[i][:2] {
			for _, v := range values {
				highest = math.Max(highest, v)
			}
		}
	}
	fmt.Fprintf(&b, "█ admitted  ░ asked for, but refused then; %s per %s\n", t.Unit, shortTime(t.Every))
	for i, panel := range t.Panels {
		fmt.Fprintf(&b, "\n%s  ·  %s\n", panel.Name, share(panel))
		writeBars(&b, panelRows, highest, panels[i][1], panels[i][0])
		if highestQueue := maxOf(panels[i][2]); highestQueue > 0 {
			fmt.Fprintf(&b, "%7s ┤ waiting requests, up to %s\n", "", count(highestQueue))
			writeBars(&b, panelRows/2, highestQueue, panels[i][2], nil)
		}
	}
	b.WriteString(t.axis(width))
	return b.String()
}

// axis returns the line of times below the panels.
func (t Timeline) axis(width int) string {
	total := time.Duration(len(t.Panels[0].Offered)) * t.Every
	ticks := timeTicks{start: t.Start, labels: true}
	line, next := []rune(strings.Repeat(" ", width+20)), 0
	for _, tick := range ticks.Ticks(0, total.Seconds()) {
		at := int(math.Round(tick.Value / total.Seconds() * float64(width)))
		if at >= next {
			copy(line[at:], []rune(tick.Label))
			next = at + len([]rune(tick.Label)) + 2
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

var eighths = []rune(" ▁▂▃▄▅▆▇█")

// writeBars draws a bar for each value, with a light bar up to the value behind it.
func writeBars(b *strings.Builder, rows int, highest float64, values, behind []float64) {
	for row := rows; row > 0; row-- {
		label := ""
		switch row {
		case rows:
			label = count(round(highest))
		case 1:
			label = "0"
		}
		line := make([]rune, len(values))
		for i, v := range values {
			line[i] = cell(v, highest, rows, row)
			if line[i] == ' ' && behind != nil && behind[i]/highest*float64(rows) > float64(row)-0.5 {
				line[i] = '░'
			}
		}
		fmt.Fprintf(b, "%7s ┤%s\n", label, strings.TrimRight(string(line), " "))
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

// Terminal draws each line of the chart by itself, as bars.
func (c Chart) Terminal(columns int) string {
	var b strings.Builder
	width := max(20, min(columns, 120)-9)
	x := newBounds(c.LogX)
	for _, line := range c.Lines {
		for _, point := range line.Points {
			x.see(point.X)
		}
	}
	for _, line := range c.Lines {
		if line.Dots || line.Dashed || len(line.Points) == 0 {
			continue
		}
		values := line.sample(x, width)
		fmt.Fprintf(&b, "%s: %s\n", line.Name, c.Y)
		writeBars(&b, chartRows, maxOf(values), values, nil)
		low, high := count(round(x.low)), count(round(x.high))
		fmt.Fprintf(&b, "%8s %-*s%s  %s\n", "", max(1, width-len(high)), low, high, c.X)
	}
	for _, mark := range c.Marks {
		fmt.Fprintf(&b, "%s: %s\n", mark.Name, count(round(mark.At)))
	}
	return b.String()
}

// sample returns the value of the line at each column.
func (l Line) sample(x bounds, columns int) []float64 {
	values, at := make([]float64, columns), 0
	for i := range values {
		part := (float64(i) + 0.5) / float64(columns)
		v := x.low + part*(x.high-x.low)
		if x.logarithmic {
			v = x.low * math.Pow(x.high/x.low, part)
		}
		for at+1 < len(l.Points) && l.Points[at+1].X <= v {
			at++
		}
		values[i] = l.Points[at].Y
		if !l.Steps && at+1 < len(l.Points) && l.Points[at+1].X > l.Points[at].X {
			values[i] += (l.Points[at+1].Y - l.Points[at].Y) * math.Max(0, v-l.Points[at].X) / (l.Points[at+1].X - l.Points[at].X)
		}
	}
	return values
}
