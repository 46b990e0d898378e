package picture

import (
	"math"
	"strings"
	"testing"

	"github.com/weirflow/weir/cmd/weir/internal/screen"
)

// On an axis with a unit, nothing stands below one unit, at the end of the axis, and values above keep their order.
func TestAZeroHasItsPlaceBelowOne(t *testing.T) {
	s := scale{unit: 0.1}
	if at := s.part(0, 0, 100); at != 0 {
		t.Errorf("zero stands at %v, want 0", at)
	}
	if one, two := s.part(0.1, 0, 100), s.part(0.2, 0, 100); one <= 0 || two <= one || s.part(100, 0, 100) != 1 {
		t.Errorf("one stands at %v and two at %v, want them above 0 in order", one, two)
	}
	for _, s := range []scale{{}, {log: true}, {unit: 0.1}, {unit: 7}} {
		for _, v := range []float64{0, 0.05, 0.1, 1, 6.9, 7, 250} {
			if got := s.value(s.place(v)); math.Abs(got-v) > 1e-9 {
				t.Errorf("%+v: %v comes back as %v", s, v, got)
			}
		}
	}
	if ticks := s.ticks(0, 3); ticks[0] != (tick{0, "0"}) || len(ticks) < 5 {
		t.Errorf("the marks are %v, want 0 first", ticks)
	}
}

// A curve that ends at zero meets the axis: in a file at the pixel of the lower end, on a terminal in the last row, and a
// value of one unit does not.
func TestACurveMeetsTheAxisAtZero(t *testing.T) {
	c := Chart{LogX: true, UnitY: 1, Lines: []Line{{Name: "a", Points: []Point{{1, 50}, {10, 1}, {20, 0}}}, {Name: "b", Points: []Point{{1, 50}, {20, 1}}}}}
	f := c.frame()
	if zero, one := f.y.at(0), f.y.at(1); zero != f.y.from || one >= zero-10 {
		t.Errorf("zero stands at %v and one at %v, want %v and well above", zero, one, f.y.from)
	}
	rows := strings.Split(c.Terminal(screen.Screen{Columns: 60}), "\n")
	if lowest := rows[chartRows]; !strings.Contains(lowest, " 0 ┤") || !strings.Contains(lowest, "a") || strings.Contains(lowest, "b") {
		t.Errorf("the row of zero is %q, want the first line in it alone", lowest)
	}
}
