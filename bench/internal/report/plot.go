package report

import (
	"fmt"
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/weirflow/weir/bench/internal/measure"
	"github.com/weirflow/weir/bench/internal/peers"
	"github.com/weirflow/weir/bench/internal/picture"
)

// Plot draws the time of an allowed decision by mix and cores, for the floor, Weir's token buckets and the rivals,
// and saves the plot in a file.
func Plot(r *measure.Results, path string) error {
	p := plot.New()
	p.Title.Text = "ns per allowed decision (less is better)"
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, decades{}
	p.Y.Label.Text = "ns"
	p.Add(plotter.NewGrid())

	var columns []column
	var names []string
	for _, cores := range r.Config.Cores {
		for _, mix := range r.Config.Mixes {
			columns = append(columns, column{mix: mix.Name, cores: cores})
			names = append(names, fmt.Sprintf("%s\n%d core(s)", mix.Name, cores))
		}
	}
	p.NominalX(names...)
	drawn := 0
	for _, peer := range r.Config.Keyeds {
		if peer.Kind == peers.Ours && !strings.HasSuffix(peer.Name, "tokenbucket") {
			continue
		}
		if err := addPeer(p, r, peer.Info, columns, drawn); err != nil {
			return fmt.Errorf("report: plot: %s: %w", peer.Name, err)
		}
		drawn++
	}
	if err := picture.Save(p, 13*vg.Inch, 8*vg.Inch, path); err != nil {
		return fmt.Errorf("report: plot: %w", err)
	}
	return nil
}

func addPeer(p *plot.Plot, r *measure.Results, info peers.Info, columns []column, index int) error {
	var points plotter.XYs
	for x, c := range columns {
		if series := r.Series(c.of(info.Name)); len(series) > 0 {
			points = append(points, plotter.XY{X: float64(x), Y: series.Median()})
		}
	}
	if len(points) == 0 {
		return nil
	}
	line, marks, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.Color, marks.Color = shade(info.Kind, index), shade(info.Kind, index)
	marks.Shape, marks.Radius = shapes[index%len(shapes)], vg.Points(4)
	if info.Kind == peers.Ours {
		line.Width = vg.Points(3)
	}
	if info.Kind == peers.Floor || info.Kind == peers.Harness {
		line.Dashes = []vg.Length{vg.Points(5), vg.Points(4)}
	}
	p.Add(line, marks)
	p.Legend.Add(info.Name, line, marks)
	return nil
}

var shapes = []draw.GlyphDrawer{
	draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.PlusGlyph{}, draw.CrossGlyph{}, draw.RingGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{},
}

// shade returns a dark colour for the floor, blue for Weir, and other colours for rivals.
func shade(kind peers.Kind, index int) color.Color {
	switch kind {
	case peers.Harness, peers.Floor:
		return color.Gray{Y: 90}
	case peers.Ours:
		return color.RGBA{B: 220, G: uint8(40 * (index % 4)), A: 255}
	}
	return color.RGBA{R: uint8(120 + 35*(index%4)), G: uint8(35 * (index % 5)), B: uint8(30 * (index % 3)), A: 255}
}

// decades marks 1, 2 and 5 of each power of ten.
type decades struct{}

func (decades) Ticks(low, high float64) (ticks []plot.Tick) {
	for decade := 0.1; decade <= high; decade *= 10 {
		for _, step := range []float64{1, 2, 5} {
			if v := decade * step; v >= low && v <= high {
				ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprint(v)})
			}
		}
	}
	return ticks
}
