package replay

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// logOf returns a log of some days in which each client makes a number of requests an hour.
func logOf(days int, perHour ...int) string {
	var b strings.Builder
	start := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for hour := range 24 * days {
		for client, n := range perHour {
			for i := range n {
				at := start.Add(time.Duration(hour)*time.Hour + time.Duration(i)*time.Hour/time.Duration(n))
				fmt.Fprintf(&b, "192.0.2.%d - - [%s] \"GET / HTTP/1.1\" 200 1\n", client+1, at.Format("02/Jan/2006:15:04:05 -0700"))
			}
		}
	}
	return b.String()
}

func TestAQuotaLongerThanTheLogIsToldWithWhatThePaceReaches(t *testing.T) {
	replayed := func(log string, limits ...string) Report {
		t.Helper()
		key, err := ParseKey("ip")
		if err != nil {
			t.Fatal(err)
		}
		traffic := NewTraffic(nil, key)
		if err := traffic.ReadLog("log", strings.NewReader(log)); err != nil {
			t.Fatal(err)
		}
		var candidates []Candidate
		for _, text := range limits {
			c, err := ParseCandidate(text)
			if err != nil {
				t.Fatal(err)
			}
			candidates = append(candidates, c)
		}
		report, err := traffic.Replay(candidates, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	week := logOf(7, 12, 5, 7)
	for _, c := range []struct {
		limit, want string
	}{
		{"quota 5000/month", "quota 5000/month 5000 in 2592000s: 2016 reach 8644, 2 keys beyond"}, // 12 and 7 an hour, over 30 days 8,640 and 5,040; the log ends five minutes early
		{"5000/30d", "token bucket 5000/30d 5000 in 2592000s: 2016 reach 8644, 2 keys beyond"},
		{"10/s and quota 100000/year", "quota 100000/year 100000 in 31536000s: 2016 reach 105171, 1 keys beyond"},
		{"fixed window 9000/30d", "fixed window 9000/30d 9000 in 2592000s: 2016 reach 8644, 0 keys beyond"},
		{"sliding log 20/14d", "sliding log 20/2w 20 in 1209600s: 2016 reach 4033, 3 keys beyond"},
		{"quota 400/week", ""},
		{"fixed window 400/d", ""},
		{"unlimited", ""},
		{"deny all", ""},
		{"token bucket 10/s burst 20", ""},
	} {
		got := ""
		for _, u := range replayed(week, c.limit).Unshown {
			got += fmt.Sprintf("%s %d in %.0fs: %d reach %d, %d keys beyond", u.Limit, u.Count, u.Window, u.Most, u.Reaches, u.Keys)
		}
		if got != c.want {
			t.Errorf("%s on seven days: got %q, want %q", c.limit, got, c.want)
		}
	}
	if got := replayed(logOf(28, 1), "quota 10/month").Unshown; len(got) > 0 {
		t.Errorf("a month on a February: got %+v", got)
	}
	if got := replayed(logOf(1, 1)[:len(logOf(1, 1))/24], "quota 10/month", "quota 10/month"); len(got.Unshown) != 1 || got.Unshown[0].Reaches != 30*24*60*60 {
		t.Errorf("one line: got %+v", got.Unshown)
	}
	if got := replayed("", "quota 10/month").Unshown; len(got) > 0 {
		t.Errorf("an empty log: got %+v", got)
	}
}
