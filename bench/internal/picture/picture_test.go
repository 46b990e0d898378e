package picture

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

func TestALegendIsBesideThePlot(t *testing.T) {
	p := plot.New()
	p.Title.Text = "a title"
	line, err := plotter.NewLine(plotter.XYs{{X: 0, Y: 0}, {X: 1, Y: 1}})
	if err != nil {
		t.Fatal(err)
	}
	p.Add(line)
	p.Legend.Add("the name of a line", line)
	name := filepath.Join(t.TempDir(), "out.svg")
	if err := Save(p, 10*vg.Inch, 5*vg.Inch, name); err != nil {
		t.Fatal(err)
	}
	checkLegend(t, name, 720)
	if err := Save(p, vg.Inch, vg.Inch, filepath.Join(t.TempDir(), "out.nothing")); err == nil {
		t.Error("an unknown format is saved")
	}
}

// The pictures in the repository are wide plots of these widths, in points.
func TestTheLegendsOfThePicturesCoverNoLine(t *testing.T) {
	for name, width := range map[string]float64{"CLIFFS.svg": 720, "WAITING.svg": 720, "RESULTS.svg": 936} {
		checkLegend(t, "../../"+name, width)
	}
}

var (
	widthText = regexp.MustCompile(`^(?s).*?<svg width="([0-9.]+)pt"`)
	pathText  = regexp.MustCompile(`<path d="([^"]*)" style="fill:none;stroke:`)
	pointText = regexp.MustCompile(`[ML]([0-9.]+),`)
	entryText = regexp.MustCompile(`<text x="([0-9.]+)"[^>]*>([^<]*)</text>`)
)

// checkLegend fails if an entry of the legend is within the width of the plot, or a line leaves it.
func checkLegend(t *testing.T, name string, width float64) {
	t.Helper()
	svg, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	whole := widthText.FindSubmatch(svg)
	if whole == nil || number(string(whole[1])) <= width {
		t.Errorf("%s is %s points wide, want more than the %v of the plot", name, whole[1], width)
	}
	entries := 0
	for _, entry := range entryText.FindAllStringSubmatch(string(svg), -1) {
		if number(entry[1]) > width {
			entries++
		}
	}
	thumbnails := 0
	for _, path := range pathText.FindAllStringSubmatch(string(svg), -1) {
		left, right := 0, 0
		for _, point := range pointText.FindAllStringSubmatch(path[1], -1) {
			if number(point[1]) > width {
				right++
			} else {
				left++
			}
		}
		if left > 0 && right > 0 {
			t.Errorf("%s: a line leaves the plot: %.60s", name, path[1])
		}
		if right == 2 && strings.Count(path[1], "L") == 1 {
			thumbnails++
		}
	}
	if entries == 0 || thumbnails < entries {
		t.Errorf("%s: %d names and %d thumbnails are beside the plot, want one for each", name, entries, thumbnails)
	}
}

func number(text string) float64 {
	n, _ := strconv.ParseFloat(text, 64)
	return n
}
