package accesslog

import "testing"

func TestBoundsAreInstantsOrDurationsBack(t *testing.T) {
	const hour = int64(3600e9)
	for text, want := range map[string]int64{
		"1970-01-01T02:00:00Z": 2 * hour, "1970-01-01T03:00:00+01:00": 2 * hour, "1970-01-01 02:00:00": 2 * hour, "1970-01-01 02:00": 2 * hour,
		"1970-01-02": 24 * hour, "1h": 99 * hour, "90m": 100*hour - 3*hour/2, "0s": 100 * hour, "2d": 52 * hour, "1.5d": 64 * hour, "2d1h30m": 50*hour + hour/2, "1d0.5h": 76*hour - hour/2,
	} {
		b, err := ParseBound(text)
		if got := b.or(-1, 100*hour); err != nil || got != want {
			t.Errorf("%s: got %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "tomorrow", "-1h", "5", "1677-01-01", "2026-13-01", "-2d", "xd",
		"1h2d", "1m1d", "2d3", "2d-1h", "2d+1h", "1d1d", "d", ".d", "2d ", "+2d", "106752d", "106751d24h"} {
		if b, err := ParseBound(text); err == nil {
			t.Errorf("%q: got %+v, want an error", text, b)
		}
	}
	if got := (Bound{}).or(-1, 100); got != -1 {
		t.Errorf("no bound: got %d", got)
	}
}

func TestNoTimeIsBetweenABoundAndOneNotAfterIt(t *testing.T) {
	for _, c := range []struct {
		since, until string
		want         bool
	}{{"1h", "5h", true}, {"1h", "1h", true}, {"5h", "1h", false}, {"2026-01-02", "2026-01-01", true}, {"2026-01-01", "2026-01-01", true},
		{"2026-01-01", "2026-01-02", false}, {"1h", "2026-01-01", false}, {"2026-01-01", "1h", false}, {"1h", "", false}, {"", "1h", false}, {"", "", false}} {
		since, _ := ParseBound(c.since)
		until, _ := ParseBound(c.until)
		if got := since.NotBefore(until); got != c.want {
			t.Errorf("from %q until %q: got %t, want %t", c.since, c.until, got, c.want)
		}
	}
}

func TestASpanKeepsWhatMayBeInsideInAnyOrder(t *testing.T) {
	since, _ := ParseBound("10ns")
	until, _ := ParseBound("5ns")
	s := newSpan(since, until)
	for _, step := range []struct {
		at   int64
		want bool
	}{{100, true}, {89, false}, {90, true}, {120, true}, {109, false}, {110, true}, {119, true}} {
		if got := s.admits(step.at); got != step.want {
			t.Errorf("at %d: got %t, want %t", step.at, got, step.want)
		}
	}
	if from, to := s.within(); from != 110 || to != 115 {
		t.Errorf("got %d to %d, want 110 to 115", from, to)
	}
}
