package plain

import (
	"strconv"
	"strings"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/screen"
)

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

// Wait formats a time to wait as people read it, rounded up to milliseconds, or to tenths of a second from a second on.
func Wait(d time.Duration) string {
	unit := time.Millisecond
	if d >= time.Second {
		unit = 100 * time.Millisecond
	}
	if rounded := d.Truncate(unit); rounded < d {
		d = rounded + unit
	}
	return Duration(d)
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

// Fixed formats a figure with two decimals.
func Fixed(figure float64) string { return strconv.FormatFloat(figure, 'f', 2, 64) }
