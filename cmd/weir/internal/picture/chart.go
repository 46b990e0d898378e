package picture

import (
	"math"

	"github.com/weirflow/weir/cmd/weir/internal/screen"
)

// Chart shows curves over a quantity other than the time of a run.
type Chart struct {
	Title, X, Y string
	LogX        bool    // the values of X are above 0
	UnitY       float64 // if above 0, Y is linear from 0 to this, and logarithmic above it
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

func (c Chart) draw() *drawing {
	d := &drawing{height: 442}
	f := c.frame()
	d.text(xy{pageWidth / 2, 24}, centred, ink, 18, screen.Shorten(c.Title, 90))
	d.text(xy{(f.x.from + f.x.to) / 2, d.height - 10}, centred, ink, 13, c.X)
	d.upright(xy{16, (f.y.from + f.y.to) / 2}, 13, c.Y)
	d.grid(f, f.x.ticks(f.x.low, f.x.high), f.y.ticks(f.y.low, f.y.high))
	for i, line := range c.Lines {
		line.draw(d, f, line.colour(i))
	}
	for _, mark := range c.Marks {
		mark.draw(d, f)
	}
	c.legend(d, f)
	return d
}

// legend names the curves where they leave room.
func (c Chart) legend(d *drawing, f frame) {
	thumb, text, anchor := f.x.from+12, f.x.from+42, after
	if c.falls() {
		thumb, text, anchor = f.x.to-34, f.x.to-40, before
	}
	for i, line := range c.Lines {
		y := f.y.to + 14 + 17*float64(i)
		if line.Dots {
			d.dot(xy{thumb + 12, y}, line.colour(i))
		} else {
			d.line([]xy{{thumb, y}, {thumb + 24, y}}, line.colour(i), 2, line.dashes())
		}
		d.text(xy{text, y + 4}, anchor, ink, 13, line.Name)
	}
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

// frame has axes with everything in view.
func (c Chart) frame() frame {
	x, y := c.spans(c.Lines, c.Marks)
	f := frame{x: axis{scale: x.scale, from: 74, to: pageWidth - 20}, y: axis{scale: y.scale, from: 394, to: 40}}
	f.x.low, f.x.high = x.axis()
	if c.LogX && c.falls() {
		f.x.high *= 2 // room for the legend
	}
	f.y.low, f.y.high = y.axis()
	return f
}

// spans returns the ranges of both coordinates of the lines and of the marks.
func (c Chart) spans(lines []Line, marks []Mark) (x, y bounds) {
	x, y = newBounds(scale{log: c.LogX}), newBounds(scale{unit: c.UnitY})
	for _, line := range lines {
		for _, point := range line.Points {
			x.see(point.X)
			y.see(point.Y)
		}
	}
	for _, mark := range marks {
		if mark.Across {
			y.see(mark.At)
		} else {
			x.see(mark.At)
		}
	}
	return x, y
}

type bounds struct {
	scale
	low, high float64
}

func newBounds(s scale) bounds {
	if s.unit > 0 {
		return bounds{s, 0, s.unit}
	}
	return bounds{s, math.Inf(1), math.Inf(-1)}
}

func (b *bounds) see(v float64) { b.low, b.high = math.Min(b.low, v), math.Max(b.high, v) }

func (b *bounds) axis() (low, high float64) {
	switch {
	case b.low > b.high:
		return 0, 1
	case b.unit > 0:
		return 0, b.high * 1.4
	case b.log:
		return b.low / 1.2, b.high * 1.4
	}
	return math.Min(0, b.low), b.high + math.Max(0.05*(b.high-math.Min(0, b.low)), 1e-9)
}

func (l Line) colour(i int) string {
	switch {
	case l.Dots:
		return attention
	case l.Dashed:
		return grey
	}
	return shade(i)
}

func (l Line) dashes() string {
	if l.Dashed {
		return "7,5"
	}
	return ""
}

func (l Line) draw(d *drawing, f frame, colour string) {
	var points []xy
	for i, p := range l.Points {
		if l.Steps && i > 0 {
			points = append(points, f.at(p.X, l.Points[i-1].Y))
		}
		points = append(points, f.at(p.X, p.Y))
	}
	if !l.Dots {
		d.line(points, colour, 1.9, l.dashes())
		return
	}
	for _, at := range points {
		d.dot(at, colour)
	}
}

// draw draws the line across the chart and its label.
func (m Mark) draw(d *drawing, f frame) {
	from, to := f.at(m.At, f.y.low), f.at(m.At, f.y.high)
	if m.Across {
		from, to = f.at(f.x.low, m.At), f.at(f.x.high, m.At)
	}
	d.line([]xy{from, to}, attention, 1.3, "4,4")
	label, anchor := xy{from.x + 5, from.y - 5}, after
	if from.x > f.x.to-100 {
		label.x, anchor = from.x-5, before
	}
	d.text(label, anchor, attention, 13, m.Name)
}
