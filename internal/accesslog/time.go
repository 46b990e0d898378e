package accesslog

import (
	"bytes"
	"slices"
	"time"
)

const maxTimeText = 64

// The range of int64 nanoseconds, in seconds: from the start of 1678 until before 2262.
const (
	firstSecond = -9214560000
	endSecond   = 9214646400
)

// stamp is a time as a line has it, in nanoseconds since the Unix epoch, and the finest step that its text can tell.
type stamp struct {
	at       int64
	step     time.Duration
	zoneless bool // read as UTC
}

// tells returns the finest step that the stamp certainly resolves: zeros may stand for digits that were not measured.
func (s stamp) tells() time.Duration {
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if s.at%int64(unit) == 0 {
			return max(unit, s.step)
		}
	}
	return s.step
}

// earliest is the first Unix time, in 1973, that a field which may hold a duration can have for its time.
const earliest = int64(1e8 * time.Second)

// parseTimeOf reads the time of a variable. A small number is no time where it may be a duration.
func parseTimeOf(name string, text []byte) (s stamp, why string) {
	s, why = parseTime(text)
	if why == "" && s.at < earliest && s.at > -earliest && isNumber(text) && slices.Contains(durationNames, name) {
		return s, whyEarly
	}
	return s, why
}

// parseTime reads a time of the common log format, of RFC 3339 with or without a zone, or a Unix time. A Unix time is in
// seconds, or in milli-, micro- or nanoseconds if it would be far out of range otherwise.
func parseTime(text []byte) (s stamp, why string) {
	switch {
	case len(text) < 1 || len(text) > maxTimeText:
		return s, whyBadTime
	case isCompactDate(text):
		return s, whyCompact
	case isNumber(text):
		return parseUnix(text)
	}
	return parseDate(text)
}

// parseDate reads a date and a clock: 02/Jan/2006:15:04:05 or 2006-01-02T15:04:05, a fraction, and a zone.
func parseDate(text []byte) (s stamp, why string) {
	var year, day, at int
	var month time.Month
	ok := true
	number := func(digits int) (n int) {
		for ; digits > 0; digits-- {
			if at >= len(text) || !isDigit(text[at]) {
				ok = false
				return 0
			}
			n = 10*n + int(text[at]-'0')
			at++
		}
		return n
	}
	skip := func(chars string) {
		if at >= len(text) || bytes.IndexByte([]byte(chars), text[at]) < 0 {
			ok = false
			return
		}
		at++
	}
	if len(text) > 6 && text[2] == '/' && text[6] == '/' {
		day = number(2)
		month = monthOf(text[3:6])
		at = 7
		year = number(4)
		skip(":")
	} else {
		year = number(4)
		skip("-/")
		month = time.Month(number(2))
		skip("-/")
		day = number(2)
		skip("Tt ")
	}
	hour := number(2)
	skip(":")
	minute := number(2)
	skip(":")
	second := number(2)
	if !ok || month < 1 || month > 12 || hour > 23 || minute > 59 || second > 60 || second == 60 && minute%15 != 14 { // a leap second ends an hour of UTC, and zones differ by quarters
		return s, whyBadTime
	}
	date := time.Date(year, month, day, hour, minute, 0, 0, time.UTC)
	if date.Day() != day {
		return s, whyBadTime // no month has this day
	}
	nanos, step, size := fraction(text[at:])
	offset, zoneless, ok := zone(text[at+size:])
	if !ok {
		return s, whyBadTime
	}
	s = stamp{step: step, zoneless: zoneless}
	s.at, why = instant(date.Unix()+int64(second)-offset, nanos)
	return s, why
}

func monthOf(text []byte) time.Month {
	const names = "JanFebMarAprMayJunJulAugSepOctNovDec"
	for i := 0; i < len(names); i += 3 {
		if string(text) == names[i:i+3] {
			return time.Month(i/3 + 1)
		}
	}
	return 0
}

// fraction reads the digits behind a second. It drops those below a nanosecond.
func fraction(text []byte) (nanos int64, step time.Duration, size int) {
	step = time.Second
	if len(text) < 2 || (text[0] != '.' && text[0] != ',') || !isDigit(text[1]) {
		return 0, step, 0
	}
	for size = 1; size < len(text) && isDigit(text[size]); size++ {
		if step > 1 {
			step /= 10
			nanos += int64(text[size]-'0') * int64(step)
		}
	}
	return nanos, step, size
}

// zone reads Z, an offset such as +0100, +01:00 or -07, with or without a space before it, or nothing.
func zone(text []byte) (offset int64, zoneless, ok bool) {
	text = bytes.TrimPrefix(text, []byte(" "))
	switch {
	case len(text) == 0:
		return 0, true, true
	case string(text) == "Z" || string(text) == "z" || string(text) == "UTC":
		return 0, false, true
	case text[0] != '+' && text[0] != '-':
		return 0, false, false
	}
	sign := int64(1)
	if text[0] == '-' {
		sign = -1
	}
	digits := 0
	for i, c := range text[1:] {
		switch {
		case isDigit(c):
			offset, digits = 10*offset+int64(c-'0'), digits+1
		case c != ':' || i != 2:
			return 0, false, false
		}
	}
	if digits == 2 {
		offset, digits = offset*100, 4
	}
	hours, minutes := offset/100, offset%100
	return sign * (hours*3600 + minutes*60), false, digits == 4 && hours <= 24 && minutes < 60
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

// isCompactDate reports whether a text is a date such as 20231011, with or without a clock behind it. As a number it would be
// a time in the 1970s, or after 2261.
func isCompactDate(text []byte) bool {
	const layout = "20060102150405"
	if n := len(text); n != len("20060102") && n != len("200601021504") && n != len(layout) {
		return false
	}
	t, err := time.Parse(layout[:len(text)], string(text))
	return err == nil && t.Year() >= 1900 && t.Year() < 2100
}

// parseUnix reads a decimal number of seconds, or of a smaller unit. It is exact and drops digits below a nanosecond.
func parseUnix(text []byte) (s stamp, why string) {
	text, negative := bytes.CutPrefix(text, []byte("-"))
	whole, decimals, point := bytes.Cut(text, []byte("."))
	if len(whole) == 0 || point && len(decimals) == 0 || bytes.IndexByte(decimals, '.') >= 0 {
		return s, whyBadTime
	}
	var count int64
	for _, c := range whole {
		if count >= 1e18 {
			return s, whyRange
		}
		count = count*10 + int64(c-'0')
	}
	perSecond := unitsPerSecond(count)
	unit := int64(time.Second) / perSecond
	nanos := count % perSecond * unit
	for _, c := range decimals {
		unit /= 10
		nanos += int64(c-'0') * unit
	}
	second := count / perSecond
	if negative {
		second, nanos = -second, -nanos
	}
	s.step = time.Duration(max(unit, 1))
	s.at, why = instant(second, nanos)
	return s, why
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

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
