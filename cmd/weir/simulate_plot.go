package main

import (
	"github.com/weirflow/weir/cmd/weir/internal/picture"
	"github.com/weirflow/weir/simulate"
)

// comparisonPicture shows what each limit did over time.
func comparisonPicture(c simulate.Comparison) picture.Timeline {
	t := picture.Timeline{Title: printable(c.Traffic), Unit: "requests"}
	if c.Units != c.Requests {
		t.Unit = "units"
	}
	for _, l := range c.Limits {
		t.Every = l.Series.Every
		t.Panels = append(t.Panels, picture.Panel{Name: printable(l.Limit), Offered: l.Series.Offered, Admitted: l.Series.Admitted, Queued: l.Series.Queued, Refused: l.Series.Refused})
	}
	return t
}
