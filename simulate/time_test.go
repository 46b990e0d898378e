package simulate

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weirflow/weir"
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
	if n := len(l.Series.Offered); n > 2*seriesSteps || l.Series.Offered[0] != 1 || l.Series.Offered[n-1] != 2 || total(l.Series.Offered) != 4 || total(l.Series.Admitted) != 3 {
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

func TestTrafficFromALogOfAllYearsEndsAfterAYear(t *testing.T) {
	for _, text := range []string{"log a.log", "log a.log speed 0.001", "log a.log speed 600", "log a.log retry every 1h"} {
		p, err := ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.UseLog("a.log", filled(t, allYears)); err != nil {
			t.Fatal(err)
		}
		if p.Length() < 292*24*365*time.Hour/600 {
			t.Errorf("%s takes %v", text, p.Length())
		}
		c, err := p.Compare([]Candidate{mustCandidate(t, "1/s")}, Scenario{Length: min(p.Length(), weir.MaxPeriod)})
		if err != nil {
			t.Fatal(err)
		}
		want := int64(1)
		if strings.Contains(text, "600") {
			want = 4
		}
		if c.Requests != want {
			t.Errorf("%s: %d requests in a year, want %d", text, c.Requests, want)
		}
	}
}

// Runs of refusals count before 1970, and beyond the last instant, where time stands still.
func TestALogCountsRunsOfRefusalsInEveryYear(t *testing.T) {
	for _, year := range []string{"1678-01-01", "1969-12-31", "1970-01-01", "2261-12-31"} {
		log := strings.Repeat(`{"time":"`+year+`T00:00:00Z","key":"a"}`+"\n", 3)
		p, err := ParsePattern("log a.log retry every 24h")
		if err != nil {
			t.Fatal(err)
		}
		if err := p.UseLog("a.log", filled(t, log)); err != nil {
			t.Fatal(err)
		}
		length := 300 * 24 * time.Hour
		c, err := p.Compare([]Candidate{mustCandidate(t, "deny all")}, Scenario{Length: length})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Limits[0].Starved; got != length.Seconds() {
			t.Errorf("%s: starved for %v seconds, want %v", year, got, length.Seconds())
		}
	}
}

// A server so slow that its queue outlasts all time still has an end.
func TestAServerMayBeSlowerThanTimeLasts(t *testing.T) {
	p, err := ParsePattern("storm 1000 at 0s")
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Compare([]Candidate{mustCandidate(t, "unlimited")}, Scenario{Length: time.Minute, Server: weir.Rate{Count: 1, Period: weir.MaxPeriod}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.Limits[0].LatencyP99, time.Duration(math.MaxInt64).Seconds(); got != want || c.Limits[0].Queue != 999 {
		t.Errorf("latency %v, %d in the queue, want %v and 999", got, c.Limits[0].Queue, want)
	}
}

// The share of one of many processes has a period that no rate can have. It does not wrap around to a short one.
func TestAShareOfASlowRateIsRefused(t *testing.T) {
	for _, text := range []string{"token bucket 1/366d burst 1000", "sliding log 1000/366d gap 366d", "bursty 1/366d over 1s"} {
		limit, err := weir.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		for n := 2; n <= maxProcesses; n++ {
			if part, err := share(limit, 0, n); err == nil {
				t.Errorf("one of %d processes gets %v of %s, want an error", n, part, text)
			}
		}
	}
}
