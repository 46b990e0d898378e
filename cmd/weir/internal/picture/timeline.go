package picture

import (
	"fmt"
	"image/color"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/weirflow/weir/cmd/weir/internal/screen"
)

// Timeline shows over time what several limits do to the same traffic: a panel for each, and the queues below.
type Timeline struct {
	Title string
	Start time.Time // of the first step; zero if the time is made up
	Every time.Duration
	Unit  string // what is counted: requests
	// Panels are at least one, with steps of equal number.
	Panels []Panel
}

// Panel is what one limit does in each step.
type Panel struct {
	Name                      string
	Offered, Admitted, Queued []int64 // without Queued, the panel has no queue
	Refused                   []int64 // steps with anything refused are marked, however little it is
}

var _ Picture = Timeline{}

const panelHeight = 1.45 * inch

func (t Timeline) size() (width, height vg.Length) {
	rows := len(t.Panels)
	if t.queues() {
		rows++
	}
	return pageWidth, vg.Length(rows)*panelHeight + 0.75*inch
}

// queues reports whether anything ever waits.
func (t Timeline) queues() bool {
	return slices.ContainsFunc(t.Panels, func(p Panel) bool {
		return slices.ContainsFunc(p.Queued, func(n int64) bool { return n > 0 })
	})
}

func (t Timeline) draw(c draw.Canvas) {
	var rows [][]*plot.Plot
	var names []string
	highest := t.highest()
	for i, panel := range t.Panels {
		p := t.plot(i == len(t.Panels)-1 && !t.queues())
		p.Y.Label.Text = "per " + shortTime(t.Every)
		offered := panel.visible(highest / 50)
		p.Y.Min, p.Y.Max = 0, float64(max(highest, slices.Max(offered)))
		p.Add(filled(t.steps(offered), refused), filled(t.steps(panel.Admitted), admitted))
		rows, names = append(rows, []*plot.Plot{p}), append(names, panel.Name+"  ·  "+share(panel))
	}
	if t.queues() {
		rows, names = append(rows, []*plot.Plot{t.queue()}), append(names, "waiting requests")
	}
	t.heading(c)
	c = draw.Crop(c, vg.Points(6), -vg.Points(16), vg.Points(4), -vg.Points(42))
	tiles := draw.Tiles{Rows: len(rows), Cols: 1, PadY: vg.Points(4)}
	for i, at := range plot.Align(rows, tiles, c) {
		p := rows[i][0]
		p.Draw(at[0])
		style := p.Title.TextStyle
		style.XAlign, style.YAlign = draw.XLeft, draw.YTop
		at[0].FillText(style, vg.Point{X: p.DataCanvas(at[0]).Min.X, Y: at[0].Max.Y - vg.Points(3)}, screen.Shorten(names[i], 90))
	}
}

// queue is the panel of all queues, with a legend of the limits that have one.
func (t Timeline) queue() *plot.Plot {
	p := t.plot(true)
	p.Y.Min = 0
	p.Legend.Top, p.Legend.ThumbnailWidth, p.Legend.YOffs = true, vg.Points(16), vg.Points(16)
	for i, panel := range t.Panels {
		if slices.Max(panel.Queued) == 0 {
			continue
		}
		line := curve(t.steps(panel.Queued), shade(i))
		p.Add(line)
		p.Legend.Add(panel.Name, line)
	}
	return p
}

// heading writes the title and the meaning of the colours.
func (t Timeline) heading(c draw.Canvas) {
	p := newPlot()
	style := p.Title.TextStyle
	style.Font.Size, style.YAlign = vg.Points(14), draw.YTop
	style.XAlign = draw.XLeft
	c.FillText(style, vg.Point{X: c.Min.X + vg.Points(8), Y: c.Max.Y - vg.Points(7)}, screen.Shorten(t.Title, 90))
	style = p.Legend.TextStyle
	style.XAlign, style.YAlign = draw.XLeft, draw.YCenter
	x, y := c.Min.X+vg.Points(10), c.Max.Y-vg.Points(32)
	for _, entry := range []struct {
		color color.Color
		text  string
	}{{admitted, "admitted"}, {refused, "asked for, but refused then"}, {color.White, "(" + t.Unit + ")"}} {
		c.FillPolygon(entry.color, []vg.Point{{X: x, Y: y - 4}, {X: x + 12, Y: y - 4}, {X: x + 12, Y: y + 5}, {X: x, Y: y + 5}})
		c.FillText(style, vg.Point{X: x + 17, Y: y}, entry.text)
		x += style.Width(entry.text) + 38
	}
}

func (t Timeline) plot(last bool) *plot.Plot {
	p := newPlot()
	p.X.Min, p.X.Max = 0, t.seconds()
	p.X.Tick.Marker = timeTicks{start: t.Start, labels: last}
	p.Y.Tick.Marker = countTicks{}
	p.Title.Text = " " // room for the name
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = faint, faint
	p.Add(grid)
	return p
}

// seconds returns the length of the timeline, which may exceed a time.Duration.
func (t Timeline) seconds() float64 { return float64(len(t.Panels[0].Offered)) * t.Every.Seconds() }

func (t Timeline) highest() (n int64) {
	for _, panel := range t.Panels {
		n = max(n, slices.Max(panel.Offered), slices.Max(panel.Admitted))
	}
	return max(n, 1)
}

// visible returns what is asked for. Where something is refused, that is at least so much above what is admitted.
func (p Panel) visible(least int64) []int64 {
	offered := slices.Clone(p.Offered)
	for i, n := range p.Refused {
		if n > 0 {
			offered[i] = max(offered[i], p.Admitted[i]+least)
		}
	}
	return offered
}

// steps returns the outline of the counts.
func (t Timeline) steps(counts []int64) (outline plotter.XYs) {
	every := t.Every.Seconds()
	for i, n := range counts {
		outline = append(outline, plotter.XY{X: float64(i) * every, Y: float64(n)}, plotter.XY{X: float64(i+1) * every, Y: float64(n)})
	}
	return outline
}

func share(p Panel) string {
	offered, admitted := int64(0), int64(0)
	for i := range p.Offered {
		offered += p.Offered[i]
		admitted += p.Admitted[i]
	}
	if offered == 0 {
		return "nothing asked for"
	}
	return fmt.Sprintf("%.1f %% admitted", 100*float64(admitted)/float64(offered))
}
