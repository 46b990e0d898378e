package picture

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// Plot is lines over an axis of numbers or, with Names, of names.
type Plot struct {
	Title, X, Y   string
	Width, Height vg.Length // in inches
	Names         []string
	LogX, LogY    bool
	Least, Most   float64 // of the axis Y; 0 for those of the lines
	Lines         []Line
}

// Line is a line of a plot. Lines of one Colour belong together; only those with a name are in the legend.
type Line struct {
	Name          string
	X, Y          []float64
	Colour        int
	Dashed, Thick bool
}

var colours = []color.RGBA{
	{B: 220, A: 255}, {R: 200, A: 255}, {G: 120, A: 255}, {R: 220, G: 140, A: 255}, {R: 120, B: 160, A: 255}, {G: 150, B: 170, A: 255}, {R: 120, G: 90, B: 40, A: 255}, {R: 90, G: 90, B: 90, A: 255},
}

// Save draws the plot and saves it in a file.
func (p Plot) Save(path string) error {
	drawn := plot.New()
	drawn.Title.Text, drawn.X.Label.Text, drawn.Y.Label.Text = p.Title, p.X, p.Y
	if p.LogX {
		drawn.X.Scale, drawn.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	if p.LogY {
		drawn.Y.Scale, drawn.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	drawn.Add(plotter.NewGrid())
	if p.Names != nil {
		drawn.NominalX(p.Names...)
	}
	for _, l := range p.Lines {
		if err := l.add(drawn); err != nil {
			return fmt.Errorf("picture: %s: %w", l.Name, err)
		}
	}
	if p.Most > 0 {
		drawn.Y.Min, drawn.Y.Max = p.Least, p.Most
	}
	return Save(drawn, p.Width*vg.Inch, p.Height*vg.Inch, path)
}

func (l Line) add(p *plot.Plot) error {
	points := make(plotter.XYs, len(l.X))
	for i := range points {
		points[i] = plotter.XY{X: l.X[i], Y: l.Y[i]}
	}
	if len(points) == 0 {
		return nil
	}
	line, marks, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.Color, marks.Radius = colours[l.Colour%len(colours)], vg.Points(2)
	marks.Color = line.Color
	if l.Dashed {
		line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
	}
	if l.Thick {
		line.Width = vg.Points(3)
	}
	p.Add(line, marks)
	if l.Name != "" {
		p.Legend.Add(l.Name, line)
	}
	return nil
}
