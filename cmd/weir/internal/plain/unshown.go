package plain

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirflow/weir/internal/replay"
)

// UnshownText says in a sentence that a log cannot show a limit, and what its pace would reach. one and many name keys.
func UnshownText(u replay.Unshown, one, many string) string {
	if u.Subject != "" {
		one, many = u.Subject, u.Subject+"s"
	}
	name := Printable(u.Limit)
	if u.Rule != "" {
		name = "rule " + Printable(u.Rule) + ", " + name
	}
	if u.File != "" {
		name = Printable(u.File) + ", " + name
	}
	window := lengthText(u.Window)
	if u.Unit != "" {
		window = "a " + u.Unit
	}
	text := fmt.Sprintf("the log cannot show %s: it is %s long, and the window %s; at its pace the busiest %s would reach %s of %s in %s",
		name, lengthText(u.Log), window, one, Thousands(u.Reaches), Thousands(u.Count), lengthText(u.Window))
	switch {
	case u.Keys == 1:
		text += ", and no other more than " + Thousands(u.Count)
	case u.Keys > 1:
		text += fmt.Sprintf(", and %s %s more than %s", Thousands(int64(u.Keys)), many, Thousands(u.Count))
	}
	return text
}

// UnshownLines are the first lines of an answer, for the limits that the log cannot show.
func UnshownLines(all []replay.Unshown, one, many string) string {
	var b strings.Builder
	for _, u := range all {
		b.WriteString(UnshownText(u, one, many) + "\n")
	}
	return b.String()
}

// lengthText returns a length as people say it: days and hours, or smaller units below a day.
func lengthText(seconds float64) string {
	const day = 24 * 60 * 60
	switch {
	case seconds >= 2*day && seconds/day-float64(int64(seconds/day)) < 0.05:
		return Plural(int64(seconds/day), "day")
	case seconds >= 2*day:
		return fmt.Sprintf("%.1f days", seconds/day)
	case seconds >= 2*60*60:
		return Duration(time.Duration(seconds * float64(time.Second)).Round(time.Minute))
	}
	return Duration(time.Duration(seconds * float64(time.Second)).Round(time.Second))
}
