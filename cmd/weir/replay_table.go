package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/screen"
	"github.com/weirflow/weir/simulate"
)

// replayTable returns the report for people: the limits side by side, then the worst keys and minutes of each.
func replayTable(key simulate.Key, report simulate.Report, s screen.Screen) string {
	var b strings.Builder
	head := fmt.Sprintf("%s, %s by %s", plural(report.Lines, "line"), plural(int64(report.Keys), "key"), printable(key.String()))
	if report.Keys > 0 {
		const layout = "2006-01-02 15:04:05"
		head += fmt.Sprintf(", %s to %s UTC", report.First.Format(layout), report.Last.Format(layout))
	}
	b.WriteString(s.Wrap(head+"\n", 2) + "\n")
	if report.Unparsed > 0 {
		b.WriteString(s.Table(reasonTable(report)) + "\n")
	}
	b.WriteString(s.Table(limitTable(report)))
	writeDifference(&b, report, s)
	for _, l := range report.Limits {
		writeWorst(&b, l, s)
	}
	return b.String()
}

func reasonTable(report simulate.Report) screen.Table {
	t := screen.Table{Columns: []screen.Column{{Title: "unparsed lines"}, {}}}
	for _, r := range report.Reasons {
		t.Rows = append(t.Rows, []string{printable(r.Reason), thousands(r.Lines)})
	}
	return t
}

func limitTable(report simulate.Report) screen.Table {
	t := screen.Table{Columns: []screen.Column{{Title: "limit"}, {Title: "admitted", Colour: screen.Admitted}, {Title: "denied", Colour: screen.Refused},
		{Title: "share", Rank: 2}, {Title: "keys denied", Rank: 1}}}
	delayed := slices.ContainsFunc(report.Limits, func(l simulate.LimitReport) bool { return l.Delayed > 0 })
	if delayed {
		t.Columns = append(t.Columns, screen.Column{Title: "delayed", Rank: 3})
	}
	for _, l := range report.Limits {
		row := []string{printable(l.Limit), thousands(l.Admitted), thousands(l.Denied), percent(l.Denied, l.Admitted+l.Denied), thousands(int64(l.KeysDenied))}
		if delayed {
			row = append(row, thousands(l.Delayed))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// writeDifference shows which keys would notice the change from the first of two limits to the second.
func writeDifference(b *strings.Builder, report simulate.Report, s screen.Screen) {
	d := report.Difference
	if d == nil || d.OnlyFirst+d.OnlySecond+d.Both == 0 {
		return
	}
	b.WriteString(s.Wrap(fmt.Sprintf("\nfrom the first limit to the second: %s denied no longer, %s denied newly, %s by both\n",
		plural(int64(d.OnlyFirst), "key"), thousands(int64(d.OnlySecond)), thousands(int64(d.Both))), 2))
	if len(d.Keys) == 0 {
		return
	}
	t := screen.Table{Indent: "  ", Columns: []screen.Column{{Title: "keys that notice"}, {Title: "requests", Rank: 1},
		{Title: "denied", Colour: screen.Refused}, {Title: "then", Colour: screen.Refused}}}
	for _, k := range d.Keys {
		t.Rows = append(t.Rows, []string{shorten(printable(k.Key)), thousands(k.Requests), thousands(k.First), thousands(k.Second)})
	}
	b.WriteString(s.Table(t))
}

func writeWorst(b *strings.Builder, l simulate.LimitReport, s screen.Screen) {
	if len(l.WorstKeys) == 0 {
		return
	}
	b.WriteString(s.Wrap(fmt.Sprintf("\n%s\n", printable(l.Limit)), 2))
	keys, minutes := worstTable("worst keys"), worstTable("worst minutes (UTC)")
	for _, k := range l.WorstKeys {
		keys.Rows = append(keys.Rows, []string{shorten(printable(k.Key)), thousands(k.Admitted), thousands(k.Denied), bar(k.Denied, l.WorstKeys[0].Denied)})
	}
	for _, m := range l.WorstMinutes {
		minutes.Rows = append(minutes.Rows, []string{m.Minute.Format("2006-01-02 15:04"), thousands(m.Admitted), thousands(m.Denied), bar(m.Denied, l.WorstMinutes[0].Denied)})
	}
	b.WriteString(s.Table(keys) + "\n" + s.Table(minutes))
}

func worstTable(title string) screen.Table {
	return screen.Table{Indent: "  ", Columns: []screen.Column{{Title: title}, {Title: "admitted", Colour: screen.Admitted, Rank: 1},
		{Title: "denied", Colour: screen.Refused}, {Colour: screen.Refused, Rank: 2}}}
}

// shorten truncates a key to the width of its column.
func shorten(key string) string { return screen.Shorten(key, 60) }

// bar draws part as a fraction of most. A part above 0 is always visible.
func bar(part, most int64) string {
	const width = 20
	return strings.Repeat("█", max(1, int(part*width/most)))
}

func percent(part, whole int64) string {
	if whole == 0 {
		return ""
	}
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 2, 64) + "%"
}

// thousands formats a count of at least 0 with commas: 1,234,567.
func thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func plural(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return thousands(n) + " " + what
}
