// Package picture draws what simulations and replays measure: to a PNG or SVG file, or with characters on a terminal.
package picture

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/weirflow/weir/cmd/weir/internal/screen"
)

// Picture is a Timeline or a Chart.
type Picture interface {
	// size returns the size of the picture in a file.
	size() (width, height vg.Length)
	draw(draw.Canvas)
	// Terminal draws the picture with characters, no wider than the screen if that has 30 columns.
	Terminal(screen.Screen) string
}

// Formats are the endings of the files that Write knows.
var Formats = []string{".png", ".svg"}

// Format returns the ending of a file name that Write knows.
func Format(name string) (format string, ok bool) {
	format = strings.ToLower(filepath.Ext(name))
	for _, known := range Formats {
		ok = ok || format == known
	}
	return format, ok
}

// Write draws the picture in the format, which is one of Formats.
func Write(w io.Writer, format string, p Picture) error {
	width, height := p.size()
	switch format {
	case ".png":
		const perInch = 144 // twice as sharp as a screen, so that it can be enlarged
		c := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(perInch))
		p.draw(draw.New(c))
		_, err := vgimg.PngCanvas{Canvas: c}.WriteTo(w)
		return err
	case ".svg":
		c := vgsvg.New(width, height)
		p.draw(draw.New(c))
		var svg bytes.Buffer
		if _, err := c.WriteTo(&svg); err != nil {
			return err
		}
		// Most machines lack the font, and have one of the same widths.
		_, err := w.Write(bytes.ReplaceAll(svg.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")))
		return err
	}
	return fmt.Errorf("picture: %q is no format: want one of %s", format, strings.Join(Formats, ", "))
}

const (
	inch      = vg.Inch
	pageWidth = 9 * inch
)

// The colours tell apart what is asked for, what goes ahead, and several limits.
var (
	ink       = color.RGBA{R: 40, G: 44, B: 52, A: 255}
	faint     = color.RGBA{R: 225, G: 228, B: 232, A: 255}
	refused   = color.RGBA{R: 240, G: 168, B: 140, A: 255}
	admitted  = color.RGBA{R: 49, G: 116, B: 178, A: 255}
	attention = color.RGBA{R: 192, G: 57, B: 43, A: 255}
	palette   = []color.RGBA{
		{R: 49, G: 116, B: 178, A: 255}, {R: 214, G: 110, B: 38, A: 255}, {R: 60, G: 140, B: 80, A: 255}, {R: 140, G: 90, B: 170, A: 255},
		{R: 120, G: 80, B: 60, A: 255}, {R: 200, G: 80, B: 140, A: 255}, {R: 90, G: 100, B: 110, A: 255}, {R: 160, G: 150, B: 30, A: 255},
		{R: 20, G: 150, B: 160, A: 255}, {R: 80, G: 60, B: 150, A: 255},
	}
)

func shade(i int) color.Color { return palette[i%len(palette)] }

// newPlot returns an empty plot in the style of all pictures.
func newPlot() *plot.Plot {
	p := plot.New()
	face := func(size vg.Length) font.Font {
		return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
	}
	p.BackgroundColor = color.White
	p.Title.TextStyle.Font, p.Title.TextStyle.Color = face(vg.Points(12)), ink
	p.Title.Padding = vg.Points(6)
	p.Legend.TextStyle.Font, p.Legend.TextStyle.Color = face(vg.Points(10)), ink
	p.Legend.Padding = vg.Points(2)
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font, axis.Label.TextStyle.Color = face(vg.Points(10)), ink
		axis.Tick.Label.Font, axis.Tick.Label.Color = face(vg.Points(9)), ink
		axis.LineStyle.Color, axis.Tick.LineStyle.Color = ink, ink
		axis.LineStyle.Width, axis.Tick.LineStyle.Width = vg.Points(0.6), vg.Points(0.6)
		axis.Padding = vg.Points(2)
		axis.Label.Padding = vg.Points(3)
	}
	return p
}

// filled is the area below an outline.
func filled(outline plotter.XYs, c color.Color) *plotter.Polygon {
	if n := len(outline); n > 0 {
		outline = append(outline, plotter.XY{X: outline[n-1].X}, plotter.XY{X: outline[0].X})
	}
	area, err := plotter.NewPolygon(outline)
	if err != nil { // only for numbers that are not finite
		return &plotter.Polygon{}
	}
	area.Color, area.LineStyle.Width = c, 0
	return area
}

// curve is a line through the points.
func curve(points plotter.XYs, c color.Color) *plotter.Line {
	line, err := plotter.NewLine(points)
	if err != nil { // only for numbers that are not finite
		return &plotter.Line{}
	}
	line.Color, line.Width = c, vg.Points(1.4)
	return line
}
