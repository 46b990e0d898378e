package main

import (
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/picture"
	"github.com/weirflow/weir/simulate"
)

// replayPicture shows what each limit would have done over time.
func replayPicture(names []string, report simulate.Report) picture.Timeline {
	t := picture.Timeline{Title: printable(strings.Join(names, ", ")), Start: report.First, Unit: "requests"}
	for _, l := range report.Limits {
		t.Every = l.Series.Every
		t.Panels = append(t.Panels, picture.Panel{Name: printable(l.Limit), Offered: l.Series.Offered, Admitted: l.Series.Admitted, Queued: l.Series.Queued, Refused: l.Series.Refused})
	}
	return t
}
