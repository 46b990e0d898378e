package cli

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weirflow/weir/cmd/weir/internal/screen"
)

// Printable keeps one column per rune, so that carets stand where they should
// and no control character reaches the terminal.
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

// Duration returns "1m" for a minute, where Go prints "1m0s".
func Duration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// Shorten truncates a key to the width of its column.
func Shorten(key string) string { return screen.Shorten(key, 60) }

// Percent formats a share, or nothing of nothing. Only none is 0.00%, and only all is 100.00%.
func Percent(part, whole int64) string {
	if whole == 0 {
		return ""
	}
	switch text := strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 2, 64) + "%"; {
	case text == "0.00%" && part > 0:
		return "<0.01%"
	case text == "100.00%" && part < whole:
		return ">99.99%"
	default:
		return text
	}
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

// Fixed formats a figure with two decimals.
func Fixed(figure float64) string { return strconv.FormatFloat(figure, 'f', 2, 64) }
