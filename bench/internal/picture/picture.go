// Package picture saves the plots of the benchmarks.
package picture

import (
	"image/color"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The distances of a legend.
const (
	gap   = 10 * vg.Inch / 72 // to the plot and to the edge
	below = 20 * vg.Inch / 72 // the title
)

// Save saves the plot in a file, as its name says. The legend is to the right of the plot, where it covers no line, and
// adds to the width.
func Save(p *plot.Plot, width, height vg.Length, path string) (err error) {
	legend := p.Legend
	p.Legend = plot.NewLegend()
	defer func() { p.Legend = legend }()
	legend.Top, legend.Left, legend.XOffs, legend.YOffs = true, true, 0, 0
	room := legend.Rectangle(draw.Canvas{}).Size().X + 2*gap
	canvas, err := draw.NewFormattedCanvas(width+room, height, strings.TrimPrefix(filepath.Ext(path), "."))
	if err != nil {
		return err
	}
	c := draw.New(canvas)
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	p.Draw(draw.Crop(c, 0, -room, 0, 0))
	legend.Draw(draw.Crop(c, width+gap, 0, 0, -below))
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err = canvas.WriteTo(file); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}
