package announce

import (
	"net/http"
	"strings"
	"time"
)

// Numbers from these on are instants: no server asks for a wait of thirty years.
const (
	epochSeconds = 1_000_000_000
	epochMillis  = 1_000_000_000_000
)

// until returns the time from now to an instant in any of the known forms: seconds from now, seconds or milliseconds
// since the epoch, a date, or a duration such as 6m0s. A past instant is 0. It is false for a text of another form, a
// negative number, and an instant more than a year ahead.
//
// An instant in whole seconds may be cut off, so up to a second more can pass until then.
func (r *reader) until(text string) (time.Duration, bool) {
	text = strings.TrimSpace(text)
	if whole, fraction, ok := number(text); ok {
		switch {
		case whole >= epochMillis:
			return r.ahead(time.UnixMilli(whole))
		case whole >= epochSeconds && fraction == 0 && !strings.Contains(text, "."):
			return r.ahead(time.Unix(whole+1, 0))
		case whole >= epochSeconds:
			return r.ahead(time.Unix(whole, int64(fraction)))
		}
		return bounded(time.Duration(whole)*time.Second + fraction)
	}
	if d, err := time.ParseDuration(text); err == nil {
		if d < 0 || text == "" || text[0] == '+' {
			return 0, false
		}
		return bounded(d)
	}
	if at, ok := parseDate(text); ok {
		if at.Nanosecond() == 0 {
			at = at.Add(time.Second)
		}
		return r.ahead(at)
	}
	return 0, false
}

// longest returns the longest time of a field, whose values may be lists; Unknown if none can be read.
func (r *reader) longest(name string) time.Duration {
	most := time.Duration(Unknown)
	parts := strings.Split(r.field(name), ",")
	for i := range parts {
		d, ok := r.until(parts[i])
		if !ok && i > 0 { // a date has a comma of its own
			d, ok = r.until(parts[i-1] + "," + parts[i])
		}
		if ok {
			most = max(most, d)
		}
	}
	return most
}

func (r *reader) ahead(at time.Time) (time.Duration, bool) { return bounded(max(at.Sub(r.now), 0)) }

func bounded(d time.Duration) (time.Duration, bool) { return d, d >= 0 && d <= maxAhead }

// parseNumber returns a number of units of time.
func parseNumber(text string, unit time.Duration) (time.Duration, bool) {
	whole, fraction, ok := number(strings.TrimSpace(text))
	if !ok || whole > int64(maxAhead/unit) {
		return 0, false
	}
	return bounded(time.Duration(whole)*unit + fraction/(time.Second/unit))
}

// number reads digits with an optional fraction, which it returns as a part of a second. A number of more than 15
// digits is out of bounds.
func number(text string) (whole int64, fraction time.Duration, ok bool) {
	digits, decimals, point := strings.Cut(text, ".")
	if len(digits) == 0 || len(digits) > 15 || point && decimals == "" {
		return 0, 0, false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, 0, false
		}
		whole = whole*10 + int64(digits[i]-'0')
	}
	unit := time.Second
	for i := range len(decimals) {
		if decimals[i] < '0' || decimals[i] > '9' {
			return 0, 0, false
		}
		unit /= 10
		fraction += time.Duration(decimals[i]-'0') * unit
	}
	return whole, fraction, true
}

// parseDate reads a date. One of a leap second is an instant later than the second before it.
func parseDate(text string) (time.Time, bool) {
	if i := strings.LastIndex(text, ":60"); i >= 3 && text[i-3] == ':' {
		at, ok := parseUsualDate(text[:i] + ":59" + text[i+3:])
		return at.Add(time.Second), ok
	}
	return parseUsualDate(text)
}

// parseUsualDate reads an HTTP date in its three forms, the same with UTC or a numeric zone, and RFC 3339.
func parseUsualDate(text string) (time.Time, bool) {
	if len(text) < len("2006-01-02T15:04Z") {
		return time.Time{}, false
	}
	if at, err := http.ParseTime(text); err == nil {
		return at, true
	}
	for _, layout := range [...]string{time.RFC3339, "2006-01-02T15:04Z07:00", time.RFC1123Z} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, true
		}
	}
	if at, err := time.Parse(time.RFC1123, text); err == nil && strings.HasSuffix(text, " UTC") {
		return at, true
	}
	return time.Time{}, false
}
