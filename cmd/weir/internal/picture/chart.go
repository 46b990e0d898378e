package picture

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/weirflow/weir/cmd/weir/internal/screen"
)

// Chart shows curves over a quantity other than the time of a run.
type Chart struct {
	Title, X, Y string
	LogX        bool // both need values above 0
	LogY        bool
	Lines       []Line
	Marks       []Mark
}

// Line is a curve, or points without a line.
type Line struct {
	Name   string
	Points []Point
	Steps  bool // the value holds until the next point
	Dots   bool // points only
	Dashed bool
}

// Point is one value of a curve.
type Point struct {
	X, Y float64
}

// Mark is a labelled line across the chart, at a value of X, or of Y if Across.
type Mark struct {
	Name   string
	At     float64
	Across bool
}

var _ Picture = Chart{}

func (c Chart) size() (width, height vg.Length) { return pageWidth, 4.6 * inch }

func (c Chart) draw(on draw.Canvas) {
	p := newPlot()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = screen.Shorten(c.Title, 90), c.X, c.Y
	p.Title.TextStyle.Font.Size = vg.Points(14)
	p.X.Tick.Marker, p.Y.Tick.Marker = numberTicks{}, numberTicks{}
	if c.LogX {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, decades{}
	}
	if c.LogY {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, decades{}
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = faint, faint
	p.Add(grid)
	c.bound(p)
	for i, line := range c.Lines {
		c.add(p, line, shade(i))
	}
	for _, mark := range c.Marks {
		p.Add(c.mark(p, mark)...)
	}
	p.Legend.Top, p.Legend.Left, p.Legend.XOffs, p.Legend.YOffs, p.Legend.ThumbnailWidth = !c.falls(), true, vg.Points(10), -vg.Points(4), vg.Points(18)
	if c.falls() {
		p.Legend.Top, p.Legend.Left, p.Legend.XOffs = true, false, -vg.Points(8)
	}
	p.Draw(draw.Crop(on, vg.Points(6), -vg.Points(14), vg.Points(4), -vg.Points(6)))
}

// falls reports whether the curves go down, so that the upper right is free.
func (c Chart) falls() bool {
	down := 0
	for _, line := range c.Lines {
		if n := len(line.Points); n > 1 && line.Points[n-1].Y < line.Points[0].Y {
			down++
		}
	}
	return 2*down > len(c.Lines)
}

// bound sets the axes so that everything is in view.
func (c Chart) bound(p *plot.Plot) {
	x, y := newBounds(c.LogX), newBounds(c.LogY)
	for _, line := range c.Lines {
		for _, point := range line.Points {
			x.see(point.X)
			y.see(point.Y)
		}
	}
	for _, mark := range c.Marks {
		if mark.Across {
			y.see(mark.At)
		} else {
			x.see(mark.At)
		}
	}
	p.X.Min, p.X.Max = x.axis()
	if c.LogX && c.falls() {
		p.X.Max *= 2 // room for the legend
	}
	p.Y.Min, p.Y.Max = y.axis()
}

type bounds struct {
	logarithmic bool
	low, high   float64
}

func newBounds(logarithmic bool) bounds { return bounds{logarithmic, math.Inf(1), math.Inf(-1)} }

func (b *bounds) see(v float64) { b.low, b.high = math.Min(b.low, v), math.Max(b.high, v) }

func (b *bounds) axis() (low, high float64) {
	switch {
	case b.low > b.high:
		return 0, 1
	case b.logarithmic:
		return b.low / 1.2, b.high * 1.4
	}
	return math.Min(0, b.low), b.high + math.Max(0.05*(b.high-math.Min(0, b.low)), 1e-9)
}

func (c Chart) add(p *plot.Plot, line Line, shade color.Color) {
	var points plotter.XYs
	for i, point := range line.Points {
		if line.Steps && i > 0 {
			points = append(points, plotter.XY{X: point.X, Y: line.Points[i-1].Y})
		}
		points = append(points, plotter.XY{X: point.X, Y: point.Y})
	}
	if line.Dots {
		dots, err := plotter.NewScatter(points)
		if err != nil {
			return
		}
		dots.Shape, dots.Radius, dots.Color = draw.CircleGlyph{}, vg.Points(4), attention
		p.Add(dots)
		p.Legend.Add(line.Name, dots)
		return
	}
	drawn := curve(points, shade)
	if line.Dashed {
		drawn.Dashes, drawn.Color = []vg.Length{vg.Points(5), vg.Points(4)}, color.RGBA{R: 120, G: 125, B: 130, A: 255}
	}
	p.Add(drawn)
	p.Legend.Add(line.Name, drawn)
}

// mark returns the line across the chart and its label.
func (c Chart) mark(p *plot.Plot, m Mark) []plot.Plotter {
	points, at := plotter.XYs{{X: m.At, Y: p.Y.Min}, {X: m.At, Y: p.Y.Max}}, plotter.XY{X: m.At, Y: p.Y.Min}
	if m.Across {
		points, at = plotter.XYs{{X: p.X.Min, Y: m.At}, {X: p.X.Max, Y: m.At}}, plotter.XY{X: p.X.Min, Y: m.At}
	}
	line := curve(points, attention)
	line.Width, line.Dashes = vg.Points(1), []vg.Length{vg.Points(3), vg.Points(3)}
	label, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{at}, Labels: []string{m.Name}})
	if err != nil {
		return []plot.Plotter{line}
	}
	label.TextStyle[0].Font, label.TextStyle[0].Color = p.Legend.TextStyle.Font, attention
	label.Offset = vg.Point{X: vg.Points(4), Y: vg.Points(4)}
	return []plot.Plotter{line, label}
}

// numberTicks marks about six round numbers.
type numberTicks struct{}

func (numberTicks) Ticks(low, high float64) (ticks []plot.Tick) {
	step := niceStep((high - low) / 6)
	for v := math.Ceil(low/step) * step; v <= high+step/1e6; v += step {
		if math.Abs(v) < step/1e6 {
			v = 0
		}
		ticks = append(ticks, plot.Tick{Value: v, Label: count(v)})
	}
	return ticks
}

// decades marks 1, 2 and 5 of each power of ten, or only powers of ten if there are many.
type decades struct{}

func (decades) Ticks(low, high float64) (ticks []plot.Tick) {
	steps := []float64{1, 2, 5}
	if high/low > 1e4 {
		steps = steps[:1]
	}
	for decade := math.Pow(10, math.Floor(math.Log10(low))); decade <= high; decade *= 10 {
		for _, step := range steps {
			if v := decade * step; v >= low && v <= high {
				ticks = append(ticks, plot.Tick{Value: v, Label: count(v)})
			}
		}
	}
	return ticks
}
