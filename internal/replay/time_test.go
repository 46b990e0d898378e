package replay

import (
	"testing"
	"time"
)

// allYears is a log with an event at each end of the range that logs may span, and one in between.
const allYears = `{"time":"1678-01-01T00:00:00Z","key":"a"}
{"time":"1970-01-01T00:00:00.5Z","key":"a"}
{"time":"2261-12-31T23:59:59Z","key":"b"}
{"time":"2261-12-31T23:59:59Z","key":"b"}
`

func TestAReplaySpansAllYears(t *testing.T) {
	report, err := filled(t, allYears).Replay([]Candidate{mustCandidate(t, "1/s")}, Options{Top: 9})
	if err != nil {
		t.Fatal(err)
	}
	l := report.Limits[0]
	if report.First.Year() != 1678 || report.Last.Year() != 2261 || l.Admitted != 3 || l.Refused != 1 {
		t.Errorf("from %v to %v, %d admitted, %d refused, want 1678 to 2261, 3 and 1", report.First, report.Last, l.Admitted, l.Refused)
	}
	if n := len(l.Series.Offered); n > 480 || l.Series.Offered[0] != 1 || l.Series.Offered[n-1] != 2 || total(l.Series.Offered) != 4 || total(l.Series.Admitted) != 3 {
		t.Errorf("the series is %v of %v, want all 4 requests and 1 less admitted", l.Series.Offered, l.Series.Every)
	}
	if len(l.WorstMinutes) != 1 || l.WorstMinutes[0].Minute.Format(time.DateTime) != "2261-12-31 23:59:00" || l.WorstMinutes[0].Admitted != 1 {
		t.Errorf("the worst minutes are %+v, want the last of 2261", l.WorstMinutes)
	}
}

func total(counts []int64) (sum int64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

// Events more than 292 years apart are not within one second, even if the difference overflows. Nor are those of the
// second before 1970 and the first one after.
func TestASearchKeepsSecondsApart(t *testing.T) {
	target, err := ParseTarget("at most 1/s in all")
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range []string{
		`{"time":"1678-01-01T00:00:00Z","key":"a"}` + "\n" + `{"time":"2261-12-31T23:59:59Z","key":"a"}`,
		`{"ts":-0.9,"key":"a"}` + "\n" + `{"ts":0.9,"key":"a"}`,
	} {
		traffic := filled(t, log)
		found, err := traffic.Suggest(target, nil)
		if err != nil || found.Peak != 1 {
			t.Errorf("%s: the peak is %d, %v, want 1", log, found.Peak, err)
		}
		if got := newSearch(traffic, target).mostOfAKey(); got != 1 {
			t.Errorf("%s: at most %d within a second, want 1", log, got)
		}
	}
}
