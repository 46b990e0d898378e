package weir

import (
	"strconv"
	"strings"
	"time"
)

// This file reads and prints durations, in limits and in errors.

const (
	day  = 24 * time.Hour
	week = 7 * day
)

var periodUnits = []struct {
	name string
	unit time.Duration
}{
	{"w", week}, {"d", day}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second},
	{"ms", time.Millisecond}, {"us", time.Microsecond}, {"ns", time.Nanosecond},
}

func parsePeriod(text string) (time.Duration, bool) {
	for _, u := range periodUnits {
		if text == u.name {
			return u.unit, true
		}
	}
	return parseDuration(text)
}

// parseDuration reads the durations of time.ParseDuration, and whole days and weeks.
func parseDuration(text string) (time.Duration, bool) {
	for _, u := range periodUnits[:2] {
		if digits, ok := strings.CutSuffix(text, u.name); ok {
			n, err := strconv.ParseInt(digits, 10, 64)
			if err != nil || n < 0 || n > int64(Never/u.unit) {
				return 0, false
			}
			return time.Duration(n) * u.unit, true
		}
	}
	d, err := time.ParseDuration(text)
	return d, err == nil
}

// periodText omits a count of one: s, not 1s.
func periodText(d time.Duration) string {
	for _, u := range periodUnits {
		if d == u.unit {
			return u.name
		}
	}
	return durationText(d)
}

// durationText formats d for parseDuration, without the zero parts that Go prints: 30d, 10s, 1h30m.
func durationText(d time.Duration) string {
	for _, u := range periodUnits[:2] {
		if d > 0 && d%u.unit == 0 {
			return strconv.FormatInt(int64(d/u.unit), 10) + u.name
		}
	}
	text := strings.Replace(d.String(), "µs", "us", 1)
	if rest, ok := strings.CutSuffix(text, "m0s"); ok {
		text = rest + "m"
	}
	if rest, ok := strings.CutSuffix(text, "h0m"); ok {
		text = rest + "h"
	}
	return text
}

// spokenDuration formats d for errors: 366 days, 1h30m, 2 days 12h.
func spokenDuration(d time.Duration) string {
	days := "days"
	switch {
	case d < day:
		return durationText(d)
	case d < 2*day:
		days = "day"
	}
	text := strconv.FormatInt(int64(d/day), 10) + " " + days
	if rest := d % day; rest > 0 {
		text += " " + durationText(rest)
	}
	return text
}
