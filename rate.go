package weir

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/weirflow/weir/internal/duration"
)

// Rate is Count units in every Period. It is kept as given and never reduced: 60/m differs from 1/s, because the
// count is also the default burst and the capacity of a window.
type Rate struct {
	Count  int64         // 1 to MaxCount
	Period time.Duration // 1 ns to MaxPeriod
}

// PerSecond returns the rate of n units a second.
func PerSecond(n int64) Rate { return Rate{n, time.Second} }

// PerMinute returns the rate of n units a minute.
func PerMinute(n int64) Rate { return Rate{n, time.Minute} }

// PerHour returns the rate of n units an hour.
func PerHour(n int64) Rate { return Rate{n, time.Hour} }

// PerDay returns the rate of n units in 24 hours.
func PerDay(n int64) Rate { return Rate{n, 24 * time.Hour} }

// Per returns the rate of n units in every period.
func Per(n int64, period time.Duration) Rate { return Rate{n, period} }

// Of returns the time of n units at the rate, with n from 0, rounded up, or Never if it is longer than a Duration.
func (r Rate) Of(n int64) time.Duration {
	hi, lo := bits.Mul64(uint64(n), uint64(r.Period))
	lo, carry := bits.Add64(lo, uint64(r.Count)-1, 0)
	if hi += carry; hi >= uint64(r.Count) {
		return Never
	}
	q, _ := bits.Div64(hi, lo, uint64(r.Count))
	return time.Duration(min(q, math.MaxInt64))
}

// check returns every field of r that is out of bounds. A comparison of the count with the nanoseconds is enough for
// the rate, because MaxRate is one unit per nanosecond.
func (r Rate) check(limit string) (problems []error) {
	bad := func(field, reason string) {
		problems = append(problems, &LimitError{Limit: limit, Field: field, Code: CodeBounds, Reason: reason})
	}
	if r.Count < 1 || r.Count > MaxCount {
		bad("rate", fmt.Sprintf("count %d is not within 1 and %d", r.Count, int64(MaxCount)))
	}
	if r.Period < 1 || r.Period > MaxPeriod {
		bad("period", fmt.Sprintf("%s is not within 1ns and %s", duration.Spoken(r.Period), duration.Spoken(MaxPeriod)))
	}
	if len(problems) == 0 && r.Count > int64(r.Period) {
		bad("rate", fmt.Sprintf("is above %d/s", int64(MaxRate)))
	}
	return problems
}

// String prints the rate as ParseRate reads it: 10/s, 5/10s, 1000/h, 1/1h30m.
func (r Rate) String() string {
	return strconv.FormatInt(r.Count, 10) + "/" + duration.PeriodText(r.Period)
}

// MarshalText returns the text of String.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the text with ParseRate.
func (r *Rate) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRate(string(text))
	return err
}

// ParseRate reads count/period, where the period is a unit (ns us ms s m h d w), a number of units (10s, 30d) or a Go
// duration (1h30m). The error is a *SyntaxError. The constructor of a limit checks the bounds.
func ParseRate(text string) (Rate, error) {
	rate, err := parseRate(text)
	return rate, withMeant(err, text, reads(parseRate))
}

func parseRate(text string) (Rate, error) {
	s := scannerOf(text)
	rate, err := s.rate()
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return Rate{}, err
	}
	return rate, nil
}

// rated reads the rate after the name, and then the rest.
func rated(read func(*scanner, Rate) (Limit, error)) func(*scanner) (Limit, error) {
	return func(s *scanner) (Limit, error) {
		rate, err := s.rate()
		if err != nil {
			return nil, err
		}
		return read(s, rate)
	}
}

func (s *scanner) rate() (Rate, error) {
	const want = "a rate such as 10/s, 5/10s or 1/1h30m"
	count, period, ok := strings.Cut(s.Peek(), "/")
	if !ok {
		return Rate{}, s.unexpected(want)
	}
	n, err := parseCount(count)
	if err != nil {
		return Rate{}, s.unexpected(want)
	}
	d, ok := duration.ParsePeriod(period)
	if !ok {
		return Rate{}, s.unexpected(wantsRate(count, period, want))
	}
	s.Next()
	return Rate{Count: n, Period: d}, nil
}

// wantsRate returns what to write instead of a period that is a unit of a Quota alone.
func wantsRate(count, period, want string) string {
	days := map[CalendarUnit]string{Month: "30", Quarter: "90", Year: "365"}[unitNamed(period)]
	if days == "" {
		return want
	}
	return fmt.Sprintf("a rate such as %s/%sd, any %s days", count, days, days)
}

// revivedRate returns the rate of a limit whose window is its period.
func revivedRate(window string, capacity int64) Rate {
	period, _ := duration.ParsePeriod(window)
	return Rate{Count: capacity, Period: period}
}
