package main

import (
	"fmt"
	"image/color"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/bench/internal/picture"
	"github.com/weirflow/weir/bench/internal/workload"
)

// denominators are those of the ns that a unit takes, in lowest terms. A state with one above 10 takes two words.
var denominators = []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 17, 23, 37, 64, 101, 256, 333, 1009, 4096, 65_537, 1 << 20, 999_983}

// rateOf returns a rate of about 10 units a second. One unit takes a fraction of ns with the denominator.
func rateOf(denominator int64) weir.Rate {
	period := denominator * 100_000_000
	for common(period, denominator) != 1 {
		period++
	}
	return weir.Rate{Count: denominator, Period: time.Duration(period)}
}

func common(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// drawDenominators measures decisions at rates whose unit takes a fraction of ns, and draws the ns of a decision over
// the denominator of the fraction.
func drawDenominators(c *config, path string) error {
	p := plot.New()
	p.Title.Text = "ns per decision on one of 10,000 known keys, over the denominator of the ns that a unit takes"
	p.X.Scale, p.X.Label.Text = plot.LogScale{}, "denominator"
	p.X.Tick.Marker = plot.LogTicks{Prec: -1}
	p.Y.Min, p.Y.Label.Text = 0, "ns"
	p.Add(plotter.NewGrid())
	m := &mix{Mix: &workload.Mix{Name: "10k uniform", Keys: 10_000}, cores: 1}
	for i, column := range columns {
		for _, admit := range []bool{true, false} {
			var points plotter.XYs
			for _, denominator := range denominators {
				r := one(fmt.Sprint("denominator ", denominator), bucket(rateOf(denominator)))
				if result, ok := c.measure(column, r, m, admit); ok {
					points = append(points, plotter.XY{X: float64(denominator), Y: result.ns})
				}
			}
			line, marks, err := plotter.NewLinePoints(points)
			if err != nil {
				return fmt.Errorf("plot: %w", err)
			}
			line.Color = color.RGBA{R: uint8(200 * (i % 2)), G: uint8(120 * (i / 2)), B: uint8(220 * ((i + 1) % 2)), A: 255}
			marks.Color, marks.Radius = line.Color, vg.Points(2)
			name := column.name + ", admitted"
			if !admit {
				name = column.name + ", refused"
				line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
			}
			p.Add(line, marks)
			p.Legend.Add(name, line)
			p.Y.Max = max(p.Y.Max, 160)
		}
	}
	if err := picture.Save(p, 10*vg.Inch, 5*vg.Inch, path); err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	return nil
}
