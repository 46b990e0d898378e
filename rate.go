package weir

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Rate is Count units in every Period. It is kept as given, never reduced:
// 60/m is not 1/s, because the count is also the default burst and the capacity
// of a window.
type Rate struct {
	Count  int64         // 1 to MaxCount
	Period time.Duration // 1 ns to MaxPeriod
}

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// PerSecond is the rate of n units a second.
func PerSecond(n int64) Rate { return Rate{n, time.Second} }

// PerMinute is the rate of n units a minute.
func PerMinute(n int64) Rate { return Rate{n, time.Minute} }

// PerHour is the rate of n units an hour.
func PerHour(n int64) Rate { return Rate{n, time.Hour} }

// PerDay is the rate of n units in 24 hours.
func PerDay(n int64) Rate { return Rate{n, day} }

// Per is the rate of n units in every period.
func Per(n int64, period time.Duration) Rate { return Rate{n, period} }

// check reports every field of r that is out of bounds. Comparing counts with
// nanoseconds is enough for the rate: MaxRate is one unit per nanosecond.
func (r Rate) check(limit string) (problems []error) {
	bad := func(field, reason string) {
		problems = append(problems, &LimitError{Limit: limit, Field: field, Code: CodeBounds, Reason: reason})
	}
	if r.Count < 1 || r.Count > MaxCount {
		bad("rate", fmt.Sprintf("count %d is not within 1 and %d", r.Count, int64(MaxCount)))
	}
	if r.Period < 1 || r.Period > MaxPeriod {
		bad("period", fmt.Sprintf("%s is not within 1ns and %s", spokenDuration(r.Period), spokenDuration(MaxPeriod)))
	}
	if len(problems) == 0 && r.Count > int64(r.Period) {
		bad("rate", fmt.Sprintf("is above %d/s", int64(MaxRate)))
	}
	return problems
}

// String prints the rate as ParseRate reads it: 10/s, 5/10s, 1000/h, 1/1h30m.
func (r Rate) String() string {
	return strconv.FormatInt(r.Count, 10) + "/" + periodText(r.Period)
}

// MarshalText is String.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText is ParseRate.
func (r *Rate) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRate(string(text))
	return err
}

// ParseRate reads count/period, where the period is a unit (ns us ms s m h d
// w), a number of units (10s, 30d) or a Go duration (1h30m). The error is a
// *SyntaxError. Bounds are checked when a limit is made of the rate.
func ParseRate(text string) (Rate, error) {
	s := scanner{text: text}
	rate, err := s.rate()
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return Rate{}, err
	}
	return rate, nil
}

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

// parseDuration reads what time.ParseDuration reads, and whole days and weeks.
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

// periodText leaves out a count of one: s, not 1s.
func periodText(d time.Duration) string {
	for _, u := range periodUnits {
		if d == u.unit {
			return u.name
		}
	}
	return durationText(d)
}

// durationText prints d as parseDuration reads it, without the zero parts that
// Go prints: 30d, 10s, 1h30m.
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

// spokenDuration prints d as errors tell it: 366 days, 1h30m, 2 days 12h.
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
