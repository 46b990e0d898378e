package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weirflow/weir/simulate"
)

// replayTable returns the report for people: the limits side by side, then the worst keys and minutes of each.
func replayTable(key simulate.Key, report simulate.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s by %s", plural(report.Lines, "line"), plural(int64(report.Keys), "key"), printable(key.String()))
	if report.Keys > 0 {
		const layout = "2006-01-02 15:04:05"
		fmt.Fprintf(&b, ", %s to %s UTC", report.First.Format(layout), report.Last.Format(layout))
	}
	b.WriteString("\n\n")
	if report.Unparsed > 0 {
		writeReasons(&b, report)
	}
	writeLimits(&b, report)
	writeDifference(&b, report)
	for _, l := range report.Limits {
		writeWorst(&b, l)
	}
	return b.String()
}

func writeReasons(b *strings.Builder, report simulate.Report) {
	rows := [][]string{{"unparsed lines", ""}}
	for _, r := range report.Reasons {
		rows = append(rows, []string{printable(r.Reason), thousands(r.Lines)})
	}
	writeRows(b, "", rows)
	b.WriteString("\n")
}

func writeLimits(b *strings.Builder, report simulate.Report) {
	rows := [][]string{{"limit", "admitted", "denied", "share", "keys denied"}}
	delayed := false
	for _, l := range report.Limits {
		delayed = delayed || l.Delayed > 0
		rows = append(rows, []string{printable(l.Limit), thousands(l.Admitted), thousands(l.Denied), percent(l.Denied, l.Admitted+l.Denied), thousands(int64(l.KeysDenied))})
	}
	if delayed {
		rows[0] = append(rows[0], "delayed")
		for i, l := range report.Limits {
			rows[i+1] = append(rows[i+1], thousands(l.Delayed))
		}
	}
	writeRows(b, "", rows)
}

// writeDifference shows which keys would notice the change from the first of two limits to the second.
func writeDifference(b *strings.Builder, report simulate.Report) {
	d := report.Difference
	if d == nil || d.OnlyFirst+d.OnlySecond+d.Both == 0 {
		return
	}
	fmt.Fprintf(b, "\nfrom the first limit to the second: %s denied no longer, %s denied newly, %s by both\n",
		plural(int64(d.OnlyFirst), "key"), thousands(int64(d.OnlySecond)), thousands(int64(d.Both)))
	if len(d.Keys) == 0 {
		return
	}
	rows := [][]string{{"keys that notice", "requests", "denied", "then"}}
	for _, k := range d.Keys {
		rows = append(rows, []string{shorten(printable(k.Key)), thousands(k.Requests), thousands(k.First), thousands(k.Second)})
	}
	writeRows(b, "  ", rows)
}

func writeWorst(b *strings.Builder, l simulate.LimitReport) {
	if len(l.WorstKeys) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", printable(l.Limit))
	rows := [][]string{{"worst keys", "admitted", "denied", ""}}
	for _, k := range l.WorstKeys {
		rows = append(rows, []string{shorten(printable(k.Key)), thousands(k.Admitted), thousands(k.Denied), bar(k.Denied, l.WorstKeys[0].Denied)})
	}
	writeRows(b, "  ", rows)
	rows = [][]string{{"worst minutes (UTC)", "admitted", "denied", ""}}
	for _, m := range l.WorstMinutes {
		rows = append(rows, []string{m.Minute.Format("2006-01-02 15:04"), thousands(m.Admitted), thousands(m.Denied), bar(m.Denied, l.WorstMinutes[0].Denied)})
	}
	b.WriteString("\n")
	writeRows(b, "  ", rows)
}

// writeRows aligns the columns: the first to the left, numbers to the right. It does not align a last column without
// a title.
func writeRows(b *strings.Builder, indent string, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		line := indent
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			switch {
			case i == 0:
				line += cell + pad
			case i == len(row)-1 && rows[0][i] == "":
				line += "  " + cell
			default:
				line += "  " + pad + cell
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// shorten truncates a key to the width of its column.
func shorten(key string) string {
	const most = 60
	if utf8.RuneCountInString(key) <= most {
		return key
	}
	return string([]rune(key)[:most-1]) + "…"
}

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
