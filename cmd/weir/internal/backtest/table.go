package backtest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/cmd/weir/internal/screen"
	"github.com/weirflow/weir/internal/replay"
)

// Text returns the report for people: what each file and each of its rules would have decided, what could not be decided, and of
// two files which clients would notice the change. A price above 0 is that of each unit of a cost.
func Text(report replay.Report, price float64, s screen.Screen) string {
	var b strings.Builder
	for _, limits := range ByFile(report.Limits) {
		for _, sentence := range slices.Concat(Answer(report, limits), Bill(limits, price)) {
			b.WriteString(s.Wrap(plain.Printable(sentence)+"\n", 2))
		}
	}
	b.WriteString("\n" + s.Table(ruleTable(report)) + "\n")
	for _, f := range Figures(report.Limits) {
		b.WriteString(s.Wrap(f.Title+": "+f.Means+"\n", 2))
	}
	for _, l := range report.Limits {
		if l.RuleReport != nil && l.ByName {
			b.WriteString(s.Wrap(fmt.Sprintf("\n%s has no match: only callers that name it ask it, and a log has none of them\n", plain.Printable(l.Rule)), 0))
		}
	}
	for _, l := range report.Limits {
		if l.RuleReport != nil && l.Instead != "" {
			b.WriteString(s.Wrap(fmt.Sprintf("\nreplayed otherwise: %s %s\n", plain.Printable(l.Rule), l.Instead), 0))
		}
	}
	if lacks := lackTable(report.Limits); len(lacks.Rows) > 0 {
		b.WriteString("\n" + s.Table(lacks))
		if slices.ContainsFunc(lacks.Rows, func(row []string) bool { return row[1] == "host" || row[1] == "port" }) {
			b.WriteString(s.Wrap("--host NAME, or --host NAME:PORT, says it for all lines; weir rules import nginx --log-format has what nginx should log\n", 2))
		}
	}
	if d := report.Difference; d != nil {
		writeDifference(&b, d, Who(report), files(report.Limits), s)
	}
	return b.String()
}

// Title returns what the report of a rules file is of.
func Title(l replay.LimitReport) string {
	switch {
	case l.Rule != "":
		return l.Rule + ": " + l.Limit
	case OfFile(l):
		return "all of " + l.File
	}
	return l.Limit
}

// OfFile reports whether the report is that of all rules of a file together.
func OfFile(l replay.LimitReport) bool {
	return l.RuleReport != nil && l.Rule == "" && l.Limit == allTogether
}

const allTogether = "all rules together"

func files(limits []replay.LimitReport) (names []string) {
	for _, l := range limits {
		if OfFile(l) {
			names = append(names, plain.Printable(l.File))
		}
	}
	return names
}

func has(limits []replay.LimitReport, count func(replay.LimitReport) int64) bool {
	return slices.ContainsFunc(limits, func(l replay.LimitReport) bool { return count(l) > 0 })
}

// Figure is a column that only some reports have.
type Figure struct {
	Title string
	Means string // in words
	Count func(replay.LimitReport) int64
}

// Figures returns the columns that some of the reports have.
func Figures(limits []replay.LimitReport) []Figure {
	return slices.DeleteFunc(slices.Clone(figures), func(f Figure) bool { return !has(limits, f.Count) })
}

var figures = []Figure{
	{"refused by others", "requests that a rule decided and another one refused", func(l replay.LimitReport) int64 { return l.Elsewhere }},
	{"paid by others", "requests that a rule refused and another one paid for in its place", func(l replay.LimitReport) int64 { return l.Paid }},
	{"not as recorded", "requests that the daemon of the recording decided otherwise", func(l replay.LimitReport) int64 { return l.Otherwise }},
	{"unsure", "decisions that depend on when exactly the requests came, within the resolution of the log and the time that they took", func(l replay.LimitReport) int64 { return l.Unsure }},
	{"undecided", "requests without an attribute in the log that a rule depends on", func(l replay.LimitReport) int64 { return l.Undecided }},
	{"delayed", "requests that were admitted after a wait", func(l replay.LimitReport) int64 { return l.Delayed }},
}

func ruleTable(report replay.Report) screen.Table {
	limits := report.Limits
	t := screen.Table{Columns: []screen.Column{{Title: "rule"}, {Title: "limit", Rank: 3}, {Title: "admitted", Colour: screen.Admitted}, {Title: "refused", Colour: screen.Refused},
		{Title: "share", Rank: 2}, {Title: "would notice", Rank: 1}}}
	shown := Figures(limits)
	for _, c := range shown {
		t.Columns = append(t.Columns, screen.Column{Title: c.Title, Rank: 1})
	}
	for _, l := range limits {
		name, text := "  "+plain.Printable(l.Rule), plain.Printable(l.Limit)
		if l.Rule == "" {
			name, text = plain.Printable(Title(l)), ""
		}
		row := []string{name, text, Amount(l.Admitted, l.Unit), Amount(l.Refused, l.Unit), Share(l), Noticing(report, l)}
		for _, c := range shown {
			row = append(row, plain.Thousands(c.Count(l)))
		}
		t.Rows = append(t.Rows, row)
		if l.RuleReport == nil {
			continue
		}
		for _, p := range l.Plans {
			t.Rows = append(t.Rows, []string{"    " + plain.Printable(PlanName(p)), plain.Printable(p.Limit), Amount(p.Admitted, l.Unit), Amount(p.Refused, l.Unit),
				plain.Percent(p.Refused, p.Admitted+p.Refused), Of(p.KeysRefused, p.Keys, cmp.Or(l.Subject, key))})
		}
	}
	return t
}

// Amount returns a number of requests, or of units of a cost with their name.
func Amount(n int64, unit string) string {
	if unit == "" {
		return plain.Thousands(n)
	}
	return Counted(n, unit)
}

// PlanName returns what a plan is called in tables.
func PlanName(p replay.PlanReport) string {
	return (&plan{name: p.Plan, own: p.Own}).called()
}

// Share returns the share of refused requests among those that a rule decided.
func Share(l replay.LimitReport) string {
	if l.Unit != "" {
		return plain.Percent(l.Refused, l.Admitted+l.Refused)
	}
	return plain.Percent(l.Refused, l.Admitted+l.Refused+l.Elsewhere+l.Paid)
}

// lackTable says what the log lacks.
func lackTable(limits []replay.LimitReport) screen.Table {
	t := screen.Table{Columns: []screen.Column{{Title: "undecided"}, {Title: "because the log lacks"}, {Title: "requests"}}}
	for _, l := range limits {
		for _, lack := range l.Lacks {
			if l.Rule != "" {
				t.Rows = append(t.Rows, []string{plain.Printable(l.Rule), plain.Printable(lack.Attribute), plain.Thousands(lack.Requests)})
			}
		}
	}
	return t
}

func writeDifference(b *strings.Builder, d *replay.Difference, who string, files []string, s screen.Screen) {
	b.WriteString(s.Wrap(fmt.Sprintf("\nfrom %s to %s: %s refused newly, %s refused no longer, %s by both\n", files[0], files[1],
		plain.Plural(int64(d.OnlySecond), who), plain.Thousands(int64(d.OnlyFirst)), plain.Thousands(int64(d.Both))), 2))
	b.WriteString(Changes(who+"s", d, s))
}

// Changes returns the table of those that would notice a change; it is empty if there are none.
func Changes(who string, d *replay.Difference, s screen.Screen) string {
	if len(d.Keys) == 0 {
		return ""
	}
	t := screen.Table{Indent: "  ", Columns: []screen.Column{{Title: who + " that notice"}, {Title: "requests", Rank: 1},
		{Title: "refused", Colour: screen.Refused}, {Title: "then", Colour: screen.Refused}}}
	for _, k := range d.Keys {
		t.Rows = append(t.Rows, []string{plain.Shorten(plain.Printable(k.Called())), plain.Thousands(k.Requests), plain.Thousands(k.First), plain.Thousands(k.Second)})
	}
	return s.Table(t)
}
