// Package duration reads and prints durations, in limits and in errors: Parse and Text, and ParsePeriod and PeriodText
// for the period of a rate. Spoken and Rounded are for people.
package duration

import (
	"math"
	"strconv"
	"strings"
	"time"
)

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

// ParsePeriod reads a unit, which stands for one of it, or a duration.
func ParsePeriod(text string) (time.Duration, bool) {
	for _, u := range periodUnits {
		if text == u.name {
			return u.unit, true
		}
	}
	return Parse(text)
}

// Parse reads the durations of time.ParseDuration, and whole days and weeks.
func Parse(text string) (time.Duration, bool) {
	for _, u := range periodUnits[:2] {
		if digits, ok := strings.CutSuffix(text, u.name); ok {
			n, err := strconv.ParseInt(digits, 10, 64)
			if err != nil || n < 0 || n > math.MaxInt64/int64(u.unit) {
				return 0, false
			}
			return time.Duration(n) * u.unit, true
		}
	}
	d, err := time.ParseDuration(text)
	return d, err == nil
}

// PeriodText omits a count of one: s, not 1s.
func PeriodText(d time.Duration) string {
	for _, u := range periodUnits {
		if d == u.unit {
			return u.name
		}
	}
	return Text(d)
}

// Text formats d for Parse, without the zero parts that Go prints: 30d, 10s, 1h30m.
func Text(d time.Duration) string {
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

// Spoken formats d for errors: 366 days, 1h30m, 2 days 12h.
func Spoken(d time.Duration) string {
	days := "days"
	switch {
	case d < day:
		return Text(d)
	case d < 2*day:
		days = "day"
	}
	text := strconv.FormatInt(int64(d/day), 10) + " " + days
	if rest := d % day; rest > 0 {
		text += " " + Text(rest)
	}
	return text
}

// Rounded rounds d up to digits that a person reads: whole minutes above an hour, whole seconds above a minute.
func Rounded(d time.Duration) time.Duration {
	unit := time.Microsecond
	switch {
	case d >= time.Hour:
		unit = time.Minute
	case d >= time.Minute:
		unit = time.Second
	case d >= time.Second:
		unit = 10 * time.Millisecond
	case d >= time.Millisecond:
		unit = 10 * time.Microsecond
	}
	if rest := d % unit; rest > 0 && d <= math.MaxInt64-unit {
		d += unit - rest
	}
	return d
}
