package accesslog

import (
	"errors"
	"math"
	"strings"
	"time"
)

// Bound is an instant, or a duration back from the end of the logs. The zero Bound bounds nothing.
type Bound struct {
	kind bound
	at   int64 // the instant, or the duration
}

type bound uint8

const (
	unbounded bound = iota
	instantly
	back
)

// ParseBound reads an instant, such as 2026-11-27T08:00:00Z or 2026-11-27 08:00 in UTC, a day, or a duration such as
// 90m, 7d or 2d12h.
func ParseBound(text string) (Bound, error) {
	if d, ok := parseBack(text); ok {
		return Bound{back, int64(d)}, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", time.DateTime, "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			at, why := instant(t.Unix(), int64(t.Nanosecond()))
			if why != "" {
				return Bound{}, errors.New("is outside the years 1678 to 2261")
			}
			return Bound{instantly, at}, nil
		}
	}
	return Bound{}, errors.New("is neither an instant nor a duration")
}

// parseBack reads a duration that is not negative. It may begin with a number of days.
func parseBack(text string) (time.Duration, bool) {
	days, rest, found := strings.Cut(text, "d")
	if !found {
		d, err := time.ParseDuration(text)
		return d, err == nil && d >= 0
	}
	const most = math.MaxInt64 / 24
	d, err := time.ParseDuration(days + "h")
	if strings.Trim(days, "0123456789.") != "" || err != nil || d > most {
		return 0, false
	}
	if d *= 24; rest == "" {
		return d, true
	}
	more, err := time.ParseDuration(rest)
	return d + more, err == nil && (isDigit(rest[0]) || rest[0] == '.') && more <= math.MaxInt64-d
}

// span is the time that counts. Bounds back from the end move with the latest time so far.
type span struct {
	since, until Bound
	last         int64
}

func newSpan(since, until Bound) span { return span{since, until, math.MinInt64} }

// admits reports whether a time may be inside once all logs are read.
func (s *span) admits(at int64) bool {
	s.last = max(s.last, at)
	from, to := s.within()
	return at >= from && (at < to || s.until.kind == back) // the end may be later yet
}

// within returns the time that counts if no later time comes: from the first instant until before the second.
func (s *span) within() (from, to int64) {
	return s.since.or(math.MinInt64, s.last), s.until.or(math.MaxInt64, s.last)
}

// or returns the instant of the bound, or the given one for no bound.
func (b Bound) or(none, end int64) int64 {
	switch {
	case b.kind == unbounded:
		return none
	case b.kind == instantly:
		return b.at
	case end < math.MinInt64+b.at:
		return math.MinInt64
	}
	return end - b.at
}

// NotBefore reports whether no time is between b and until, for any end of the logs.
func (b Bound) NotBefore(until Bound) bool {
	switch {
	case b.kind != until.kind:
		return false
	case b.kind == back:
		return b.at <= until.at
	}
	return b.kind == instantly && b.at >= until.at
}

// Span returns the time that counts, after all logs are read: from the first instant until before the second. With bounds
// back from the end, entries have been passed on that are outside.
func (r *Reader) Span() (from, to int64) { return r.span.within() }
