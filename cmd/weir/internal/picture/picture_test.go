package picture

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func examples() map[string]Picture {
	timeline := Timeline{Title: "burst <200/s> & more", Every: time.Second, Unit: "requests", Panels: []Panel{
		{Name: "token bucket", Offered: []int64{0, 10, 20, 0}, Admitted: []int64{0, 10, 5, 0}, Queued: []int64{0, 0, 7, 1}},
		{Name: "none", Offered: []int64{0, 0, 0, 0}, Admitted: []int64{0, 0, 0, 0}, Queued: []int64{0, 0, 0, 0}},
	}}
	dated := timeline
	dated.Start, dated.Every = time.Date(2015, 5, 17, 10, 5, 0, 0, time.UTC), 6*time.Hour
	return map[string]Picture{
		"timeline": timeline,
		"dated":    dated,
		"chart": Chart{Title: "trade-off", X: "units", Y: "share", LogX: true, LogY: true,
			Lines: []Line{{Name: "1/s", Points: []Point{{1, 0.5}, {10, 0.01}}}, {Name: "chosen", Dots: true, Points: []Point{{5, 0.1}}}},
			Marks: []Mark{{Name: "target", At: 0.1, Across: true}}},
		"steps":  Chart{Lines: []Line{{Name: "a", Steps: true, Points: []Point{{0, 0}, {1, 5}, {2, 5}}}, {Name: "b", Dashed: true, Points: []Point{{0, 0}, {2, 2}}}}},
		"points": Chart{Lines: []Line{{Name: "one", Points: []Point{{3, 3}}}, {Name: "empty"}}},
	}
}

// Every picture is a whole PNG and a whole SVG, twice the same, with its texts in it.
func TestPicturesAreWholeFiles(t *testing.T) {
	for name, p := range examples() {
		draw := func(format string) []byte {
			var first, second bytes.Buffer
			if err := errors.Join(Write(&first, format, p), Write(&second, format, p)); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(first.Bytes(), second.Bytes()) {
				t.Errorf("%s: two drawings of a %s differ", name, format)
			}
			return first.Bytes()
		}
		decoded, err := png.Decode(bytes.NewReader(draw(".png")))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if size := decoded.Bounds(); size.Dx() < 1200 || size.Dy() < 400 {
			t.Errorf("%s: a picture of %v, want 1200 points across at least", name, size)
		}
		svg := draw(".svg")
		decoder := xml.NewDecoder(bytes.NewReader(svg))
		for err = nil; err == nil; {
			_, err = decoder.Token()
		}
		if err != io.EOF {
			t.Errorf("%s: the SVG is broken: %v", name, err)
		}
		if strings.HasPrefix(name, "timeline") && !bytes.Contains(svg, []byte("burst &lt;200/s&gt; &amp; more")) {
			t.Errorf("%s: the title is missing", name)
		}
	}
	if err := Write(io.Discard, ".gif", examples()["chart"]); err == nil {
		t.Error("a .gif is written, want an error")
	}
}

func TestATerminalGetsNoLineThatIsTooLong(t *testing.T) {
	for name, p := range examples() {
		for _, columns := range []int{40, 80, 100, 500} {
			for line := range strings.Lines(p.Terminal(columns)) {
				if n := utf8.RuneCountInString(line); n > max(columns, 80)+12 {
					t.Errorf("%s: a line of %d columns on a terminal of %d: %q", name, n, columns, line)
				}
			}
		}
	}
}

func TestBarsShowSharesAndNeverHideAValue(t *testing.T) {
	var b strings.Builder
	writeBars(&b, 2, 16, []float64{0, 0.01, 4, 8, 16, 0}, []float64{0, 16, 16, 16, 16, 8})
	const want = "     16 ┤ ░░░█\n      0 ┤ ▁▄██░\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestMarksAreRound(t *testing.T) {
	labels := func(ticks timeTicks, high float64) (text string) {
		for _, tick := range ticks.Ticks(0, high) {
			text += tick.Label + " "
		}
		return text
	}
	if got := labels(timeTicks{labels: true}, 60); got != "0s 10s 20s 30s 40s 50s 1m " {
		t.Errorf("a minute has the marks %s", got)
	}
	start := time.Date(2015, 5, 17, 10, 5, 0, 0, time.UTC)
	if got := labels(timeTicks{start: start, labels: true}, (83 * time.Hour).Seconds()); got != "12:00 18 May 12:00 19 May 12:00 20 May 12:00 " {
		t.Errorf("three days and a half have the marks %s", got)
	}
	for v, want := range map[float64]string{0: "0", 0.02: "0.02", 12: "12", 1000: "1k", 1234: "1234", 12345: "12.35k", 2e6: "2M"} {
		if got := count(v); got != want {
			t.Errorf("%v is written %s, want %s", v, got, want)
		}
	}
}
