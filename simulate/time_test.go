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

func TestTrafficFromALogOfAllYearsEndsAfterAYear(t *testing.T) {
	for _, text := range []string{"log a.log", "log a.log speed 0.001", "log a.log speed 600", "log a.log retry every 1h"} {
		p, err := ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		p.readLog(t, "a.log", "key", allYears)
		if p.length() < 292*24*365*time.Hour/600 {
			t.Errorf("%s takes %v", text, p.length())
		}
		c, err := p.Compare([]string{"1/s"}, Scenario{Length: min(p.length(), weir.MaxPeriod)})
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
		p.readLog(t, "a.log", "key", log)
		length := 300 * 24 * time.Hour
		c, err := p.Compare([]string{"deny all"}, Scenario{Length: length})
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
	c, err := p.Compare([]string{"unlimited"}, Scenario{Length: time.Minute, Server: weir.Rate{Count: 1, Period: weir.MaxPeriod}})
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
