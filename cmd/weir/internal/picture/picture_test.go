package picture

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/weirflow/weir/cmd/weir/internal/screen"
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
		"chart": Chart{Title: "trade-off", X: "units", Y: "share", LogX: true, UnitY: 0.01,
			Lines: []Line{{Name: "1/s", Points: []Point{{1, 0.5}, {10, 0.01}, {20, 0}}}, {Name: "chosen", Dots: true, Points: []Point{{5, 0.1}}}},
			Marks: []Mark{{Name: "target", At: 0.1, Across: true}}},
		"steps":  Chart{Lines: []Line{{Name: "a", Steps: true, Points: []Point{{0, 0}, {1, 5}, {2, 5}}}, {Name: "b", Dashed: true, Points: []Point{{0, 0}, {2, 2}}}}},
		"points": Chart{Lines: []Line{{Name: "one", Points: []Point{{3, 3}}}, {Name: "empty"}}},
	}
}

// Every picture is a whole SVG, twice the same, with its texts in it.
func TestPicturesAreWholeFiles(t *testing.T) {
	for name, p := range examples() {
		var first, second bytes.Buffer
		if err := errors.Join(Write(&first, p), Write(&second, p)); err != nil {
			t.Fatal(err)
		}
		svg := first.Bytes()
		if !bytes.Equal(svg, second.Bytes()) {
			t.Errorf("%s: two drawings differ", name)
		}
		if bytes.Contains(svg, []byte("NaN")) || bytes.Contains(svg, []byte("Inf")) {
			t.Errorf("%s: a place that is no number: %s", name, svg)
		}
		decoder := xml.NewDecoder(bytes.NewReader(svg))
		var err error
		for err == nil {
			_, err = decoder.Token()
		}
		if err != io.EOF {
			t.Errorf("%s: the SVG is broken: %v", name, err)
		}
		if strings.HasPrefix(name, "timeline") && !bytes.Contains(svg, []byte("burst &lt;200/s&gt; &amp; more")) {
			t.Errorf("%s: the title is missing", name)
		}
	}
}

func TestATerminalGetsNoLineThatIsTooLong(t *testing.T) {
	for name, p := range examples() {
		for columns := 1; columns <= 200; columns += 1 + columns/9 {
			for line := range strings.Lines(p.Terminal(screen.Screen{Columns: columns})) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > max(columns, 40) {
					t.Fatalf("%s: a line of %d columns on a terminal of %d: %q", name, n, columns, line)
				}
			}
		}
	}
}

func TestBarsShowSharesAndNeverHideAValue(t *testing.T) {
	var b strings.Builder
	bars{values: []float64{0, 0.01, 4, 8, 16, 0}, behind: []float64{0, 16, 16, 16, 16, 8}}.write(&b, screen.Screen{}, 2, 16)
	const want = "     16 ┤ ░░░█\n      0 ┤ ▁▄██░\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

// One refusal of a thousand requests, or in one of many steps that share a column, is marked: above the bar, or in place
// of its top.
func TestAColumnWithARefusalShowsIt(t *testing.T) {
	var b strings.Builder
	bars{values: []float64{0, 1, 16, 15.9, 8}, behind: []float64{0.1, 1.1, 16, 16, 8}, refused: []float64{1, 1, 1, 1, 0}}.write(&b, screen.Screen{}, 2, 16)
	const want = "     16 ┤ ░░░\n      0 ┤░▁███\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	steps := make([]int64, 240)
	for i := range steps {
		steps[i] = 100
	}
	refused, admitted := make([]int64, 240), append([]int64{}, steps...)
	refused[101], admitted[101] = 1, 99
	panel := Panel{Name: "1/s", Offered: steps, Admitted: admitted, Refused: refused}
	for columns := 40; columns <= 200; columns += 5 {
		drawn := Timeline{Every: time.Second, Panels: []Panel{panel}}.Terminal(screen.Screen{Columns: columns})
		if n := strings.Count(drawn, "░"); n < 2 { // one is the legend
			t.Fatalf("at %d columns the refusal is not to be seen:\n%s", columns, drawn)
		}
	}
	if got := panel.visible(2)[101]; got != 101 {
		t.Errorf("a file shows %d above, want 101", got)
	}
}

// The steps of a timeline may be of 1 ns, and span more years than a time.Duration.
func TestATimelineMayBeOfAnyLength(t *testing.T) {
	for _, every := range []time.Duration{1, 7, time.Microsecond, time.Second, 24 * time.Hour, 889 * 24 * time.Hour} {
		for _, n := range []int{1, 2, 240} {
			for _, start := range []time.Time{{}, time.Date(1678, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2261, 12, 31, 23, 59, 59, 999999999, time.UTC)} {
				counts := make([]int64, n)
				counts[n-1] = 1
				p := Timeline{Start: start, Every: every, Unit: "requests", Panels: []Panel{{Name: "1/s", Offered: counts, Admitted: counts, Queued: counts}}}
				if ticks := (timeTicks{start: start, labels: true}).ticks(0, p.seconds()); len(ticks) < 1 || len(ticks) > 12 {
					t.Errorf("%d steps of %v from %v have %d marks", n, every, start, len(ticks))
				}
				if !strings.Contains(p.Terminal(screen.Screen{Columns: 80}), "█") {
					t.Errorf("%d steps of %v from %v show no bar", n, every, start)
				}
				if err := Write(io.Discard, p); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func TestSeveralLinesAreOneChartOfLetters(t *testing.T) {
	c := Chart{X: "burst", Y: "refused, %", Lines: []Line{
		{Name: "1/s", Points: []Point{{0, 10}, {10, 0}}},
		{Name: "2/s", Points: []Point{{0, 5}, {5, 0}}},
		{Name: "suggested", Dots: true, Points: []Point{{5, 5}}},
	}, Marks: []Mark{{Name: "target", At: 2, Across: true}}}
	const want = `refused, %
     10 ┤aa
        ┤  aa
        ┤    a
        ┤     aa
        ┤       aa
        ┤         a●
        ┤bb         a
        ┤  bb        aa
        ┤    b         aa
        ┤┄┄┄┄┄bb┄┄┄┄┄┄┄┄┄a┄┄┄┄
        ┤       bb        aa
      0 ┤         bb        aa
         0       burst      10
┄ target: 2  ● suggested
a 1/s  b 2/s
`
	if got := c.Terminal(screen.Screen{Columns: 30}); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestMarksAreRound(t *testing.T) {
	labels := func(ticks timeTicks, high float64) (text string) {
		for _, tick := range ticks.ticks(0, high) {
			text += tick.label + " "
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
	if got := labels(timeTicks{start: start, labels: true}, 100*year.Seconds()); got != "2020 2040 2060 2080 2100 " {
		t.Errorf("a century has the marks %s", got)
	}
	for v, want := range map[float64]string{0: "0", 0.02: "0.02", 12: "12", 1000: "1k", 1234: "1234", 12345: "12.35k", 2e6: "2M"} {
		if got := count(v); got != want {
			t.Errorf("%v is written %s, want %s", v, got, want)
		}
	}
}
