// Package plain writes texts for people, wherever they read them: counts, durations, limits, and errors with hints. It knows no terminal.
package plain

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable keeps one column per rune, so that carets stand where they should
// and no control character reaches a terminal.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return utf8.RuneError
		}
		return r
	}, text)
}

// Quoted quotes a text, up to 80 characters of it.
func Quoted(text string) string {
	const most = 80
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strconv.Quote(text)
}

// Thousands formats a count of at least 0 with commas: 1,234,567.
func Thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Plural formats a count of things: 1 line, 1,234 lines.
func Plural(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return Thousands(n) + " " + what
}
