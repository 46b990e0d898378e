package replay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/backtest"
	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/picture"
	"github.com/weirflow/weir/cmd/weir/internal/screen"
	"github.com/weirflow/weir/internal/accesslog"
	"github.com/weirflow/weir/internal/replay"
)

// reportTable returns the report for people: the limits side by side, then the worst keys and minutes of each.
func reportTable(key replay.Key, report replay.Report, s screen.Screen) string {
	var b strings.Builder
	who := backtest.SubjectOfKey(key.String())
	b.WriteString(s.Wrap(cli.UnshownLines(report.Unshown, who, who+"s"), 2))
	writeHead(&b, fmt.Sprintf("%s by %s", cli.Plural(int64(report.Keys), who), cli.Printable(key.String())), report, s)
	b.WriteString(s.Table(limitTable(report, who)))
	if len(report.Holds) > 0 {
		b.WriteString("\n" + s.Table(holdTable(report)))
	}
	writeDifference(&b, report, who, s)
	for _, l := range report.Limits {
		writeWorst(&b, who, l, s)
	}
	return b.String()
}

// writeHead writes what the log has.
func writeHead(b *strings.Builder, keys string, report replay.Report, s screen.Screen) {
	head := fmt.Sprintf("%s, %s", cli.Plural(report.Lines, "line"), keys)
	if report.Keys > 0 {
		const layout = "2006-01-02 15:04:05"
		head += fmt.Sprintf(", %s to %s UTC", report.First.Format(layout), report.Last.Format(layout))
	}
	if report.LeftOut > 0 {
		head += ", " + cli.Thousands(report.LeftOut) + " left out"
	}
	b.WriteString(s.Wrap(head+"\n", 2) + cli.LogLines(report.Logs, s) + "\n")
	if report.Unparsed > 0 {
		b.WriteString(s.Table(reasonTable(report.Reasons)) + "\n")
	}
}

func titleOf(l replay.LimitReport) string {
	if l.RuleReport != nil {
		return backtest.Title(l)
	}
	return l.Limit
}

func reasonTable(reasons []accesslog.Reason) screen.Table {
	t := screen.Table{Columns: []screen.Column{{Title: "unparsed lines"}, {}}}
	for _, r := range reasons {
		t.Rows = append(t.Rows, []string{cli.Printable(r.Reason), cli.Thousands(r.Lines)})
	}
	return t
}

func limitTable(report replay.Report, who string) screen.Table {
	t := screen.Table{Columns: []screen.Column{{Title: "limit"}, {Title: "admitted", Colour: screen.Admitted}, {Title: "refused", Colour: screen.Refused},
		{Title: "share", Rank: 2}, {Title: who + "s refused", Rank: 1}}}
	delayed := slices.ContainsFunc(report.Limits, func(l replay.LimitReport) bool { return l.Delayed > 0 })
	if delayed {
		t.Columns = append(t.Columns, screen.Column{Title: "delayed", Rank: 3})
	}
	for _, l := range report.Limits {
		row := []string{cli.Printable(l.Limit), cli.Thousands(l.Admitted), cli.Thousands(l.Refused), cli.Percent(l.Refused, l.Admitted+l.Refused), cli.Thousands(int64(l.KeysRefused))}
		if delayed {
			row = append(row, cli.Thousands(l.Delayed))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// writeDifference shows who would notice the change from the first of two limits to the second.
func writeDifference(b *strings.Builder, report replay.Report, who string, s screen.Screen) {
	d := report.Difference
	if d == nil || d.OnlyFirst+d.OnlySecond+d.Both == 0 {
		return
	}
	b.WriteString(s.Wrap(fmt.Sprintf("\nfrom the first limit to the second: %s refused no longer, %s refused newly, %s by both\n",
		cli.Plural(int64(d.OnlyFirst), who), cli.Thousands(int64(d.OnlySecond)), cli.Thousands(int64(d.Both))), 2))
	b.WriteString(backtest.Changes(who+"s", d, s))
}

func writeWorst(b *strings.Builder, who string, l replay.LimitReport, s screen.Screen) {
	if len(l.WorstKeys) == 0 && l.Bans == nil {
		return
	}
	b.WriteString(s.Wrap(fmt.Sprintf("\n%s\n", cli.Printable(titleOf(l))), 2))
	keys, minutes := worstTable("worst "+who+"s"), worstTable("worst minutes (UTC)")
	planned := slices.ContainsFunc(l.WorstKeys, func(k replay.KeyReport) bool { return k.Plan != "" })
	needed := slices.ContainsFunc(l.WorstKeys, func(k replay.KeyReport) bool { return k.Needs > 0 })
	if planned {
		keys.Columns = append(keys.Columns, screen.Column{Title: "plan", Rank: 3})
	}
	if needed {
		keys.Columns = append(keys.Columns, screen.Column{Title: "would need", Rank: 4})
	}
	for _, k := range l.WorstKeys {
		row := []string{cli.Shorten(cli.Printable(k.Called())), cli.Thousands(k.Admitted), cli.Thousands(k.Refused), bar(k.Refused, l.WorstKeys[0].Refused)}
		if planned {
			row = append(row, cli.Printable(k.Plan))
		}
		if needed {
			row = append(row, numberText(k.Needs))
		}
		keys.Rows = append(keys.Rows, row)
	}
	for _, m := range l.WorstMinutes {
		minutes.Rows = append(minutes.Rows, []string{m.Minute.Format("2006-01-02 15:04"), cli.Thousands(m.Admitted), cli.Thousands(m.Refused), bar(m.Refused, l.WorstMinutes[0].Refused)})
	}
	if len(keys.Rows) > 0 {
		b.WriteString(s.Table(keys) + "\n" + s.Table(minutes))
	}
	b.WriteString(backtest.BanText(l, who, s))
}

func worstTable(title string) screen.Table {
	return screen.Table{Indent: "  ", Columns: []screen.Column{{Title: title}, {Title: "admitted", Colour: screen.Admitted, Rank: 1},
		{Title: "refused", Colour: screen.Refused}, {Colour: screen.Refused, Rank: 2}}}
}

func numberText(n int64) string {
	if n == 0 {
		return ""
	}
	return cli.Thousands(n)
}

// bar draws part as a fraction of most. A part above 0 is always visible.
func bar(part, most int64) string {
	const width = 20
	return strings.Repeat("█", max(1, int(part*width/most)))
}

// timelineOf shows what each limit would have done over time.
func timelineOf(names []string, report replay.Report) picture.Timeline {
	t := picture.Timeline{Title: cli.Printable(strings.Join(names, ", ")), Start: report.First, Unit: "requests"}
	for _, l := range report.Limits {
		t.Every = l.Series.Every
		t.Panels = append(t.Panels, picture.Panel{Name: cli.Printable(titleOf(l)), Offered: l.Series.Offered, Admitted: l.Series.Admitted, Queued: l.Series.Queued, Refused: l.Series.Refused})
	}
	return t
}
