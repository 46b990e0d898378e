package simulate

import (
	"bytes"
	"time"
)

const (
	commonLayout = "02/Jan/2006:15:04:05 -0700"
	commonSize   = len(commonLayout)
	maxTimeText  = 64
)

// The range of int64 nanoseconds, in seconds: from the start of 1678 until before 2262.
const (
	firstSecond = -9214560000
	endSecond   = 9214646400
)

// parseTime reads a time of the common log format, of RFC 3339, or a Unix time, in nanoseconds since the Unix epoch. A
// Unix time is in seconds, or in milli-, micro- or nanoseconds if it would be far out of range otherwise.
func parseTime(text []byte) (t int64, why string) {
	switch {
	case len(text) == 0 || len(text) > maxTimeText:
		return 0, whyBadTime
	case isNumber(text):
		return parseUnix(text)
	}
	return parseDate(text)
}

// bracketed reads a time in brackets at the start of b and returns its length with the brackets.
func bracketed(b []byte) (t int64, size int, why string) {
	end := commonSize + 1
	if len(b) <= end || b[end] != ']' {
		end = bytes.IndexByte(b[:min(len(b), maxTimeText)], ']')
		if end < 0 {
			return 0, 0, whyBadTime
		}
	}
	t, why = parseDate(b[1:end])
	return t, end + 1, why
}

func parseDate(text []byte) (int64, string) {
	layout := time.RFC3339Nano
	if len(text) == commonSize && text[2] == '/' {
		layout = commonLayout
	}
	t, err := time.Parse(layout, string(text))
	if err != nil {
		return 0, whyBadTime
	}
	return instant(t.Unix(), int64(t.Nanosecond()))
}

func instant(second, nanosecond int64) (int64, string) {
	if second < firstSecond || second >= endSecond {
		return 0, whyRange
	}
	return second*int64(time.Second) + nanosecond, ""
}

func isNumber(text []byte) bool {
	if text[0] == '-' {
		text = text[1:]
	}
	for _, c := range text {
		if !isDigit(c) && c != '.' {
			return false
		}
	}
	return true
}

// parseUnix reads a decimal number of seconds, or of a smaller unit. It is exact and drops digits below a nanosecond.
func parseUnix(text []byte) (int64, string) {
	text, negative := bytes.CutPrefix(text, []byte("-"))
	whole, fraction, point := bytes.Cut(text, []byte("."))
	if len(whole) == 0 || point && len(fraction) == 0 || bytes.IndexByte(fraction, '.') >= 0 {
		return 0, whyBadTime
	}
	var count int64
	for _, c := range whole {
		if count >= 1e18 {
			return 0, whyRange
		}
		count = count*10 + int64(c-'0')
	}
	perSecond := unitsPerSecond(count)
	unit := int64(time.Second) / perSecond
	nanos := count % perSecond * unit
	for _, c := range fraction {
		unit /= 10
		nanos += int64(c-'0') * unit
	}
	second := count / perSecond
	if negative {
		second, nanos = -second, -nanos
	}
	return instant(second, nanos)
}

// unitsPerSecond guesses the unit of a Unix time that is implausible in seconds: 1e11 seconds is the year 5138, and
// 1e11 milliseconds is 1973.
func unitsPerSecond(count int64) int64 {
	switch {
	case count < 1e11:
		return 1
	case count < 1e14:
		return 1e3
	case count < 1e17:
		return 1e6
	}
	return 1e9
}
