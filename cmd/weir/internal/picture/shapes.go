package picture

import (
	"image/color"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

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
