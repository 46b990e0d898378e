package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/backtest"
	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/internal/replay"
)

// rules shows the refusals of each rule of each file, and its text.
func (p *rulesPage) rules() {
	if len(p.files) == 0 {
		return
	}
	s := section{ID: "rules", Question: "What would each rule have refused?"}
	if slices.ContainsFunc(p.Result.Limits, func(l replay.LimitReport) bool {
		return l.Rule != "" && !l.Beside && l.Unit == "" && l.Refused > l.InAll
	}) {
		s.Answer = []string{"A rule also counts what it refuses of requests that another rule leaves undecided. All together count those as undecided."}
	}
	says := section{ID: "says", Question: "What do the rules say?"}
	for _, f := range backtest.Figures(p.Result.Limits) {
		s.Answer = append(s.Answer, capital(f.Title)+" are "+f.Means+".")
	}
	for i := range p.files {
		f := &p.files[i]
		s.Parts = append(s.Parts, part{Heading: nameOf(f.whole), Table: p.refusals(f)})
		says.Parts = append(says.Parts, part{Heading: nameOf(f.whole), Table: p.said(f)})
	}
	p.Sections = append(p.Sections, s, says)
}

func (p *rulesPage) refusals(f *ruleFile) *table {
	limits := append([]replay.LimitReport{f.whole}, f.rules...)
	figures := backtest.Figures(limits)
	t := &table{Columns: []column{{"rule", "key"}, {"limit", "key limit"}, {"admitted", "n"}, {"refused", "n"}, {"share", "n"}, {"would notice", ""}}}
	for _, c := range figures {
		t.Columns = append(t.Columns, column{c.Title, "n"})
	}
	row := func(l replay.LimitReport, name, limit string) []string {
		cells := []string{name, limit, plain.Thousands(l.Admitted), plain.Thousands(l.Refused), backtest.Share(l), backtest.Noticing(p.Result, l)}
		for _, c := range figures {
			cells = append(cells, plain.Thousands(c.Count(l)))
		}
		return cells
	}
	for _, l := range f.rules[:min(len(f.rules), p.rows)] {
		name, limit := shorten(visible(l.Rule)), shorten(visible(l.Limit))
		if l.Unit != "" {
			limit += ", in " + visible(l.Unit)
		}
		if name == "" { // requests that no rule decides
			name, limit = limit, ""
		}
		t.Rows = append(t.Rows, row(l, name, limit))
		for _, plan := range l.Plans {
			cells := []string{name + ": " + shorten(visible(backtest.PlanName(plan))), shorten(visible(plan.Limit)), plain.Thousands(plan.Admitted), plain.Thousands(plan.Refused),
				plain.Percent(plan.Refused, plan.Admitted+plan.Refused), backtest.Of(plan.KeysRefused, plan.Keys, l.Subject)}
			t.Rows = append(t.Rows, append(cells, make([]string, len(figures))...))
		}
	}
	if len(f.rules) > 10 {
		t.What, t.First = "rules", 10
	}
	t.Sums = row(f.whole, "all together", "")
	return t
}

// mostMatch bounds the characters of the conditions of a rule.
const mostMatch = 300

// said shows the text of each rule and what its limit means.
func (p *rulesPage) said(f *ruleFile) *table {
	t := &table{Columns: []column{{"rule", "key"}, {"requests that match", "key"}, {"key", "key"}, {"what it does", "key"}}}
	all := f.Config.Rules[:min(len(f.Config.Rules), p.rows)]
	if len(all) > 10 {
		t.What, t.First = "rules", 10
	}
	for _, r := range all {
		fields := map[string]string{"match": "those that name the rule"}
		for _, field := range f.Config.Describe(r) {
			fields[field.Name] = field.Text
		}
		match := fields["match"]
		if p.names.secret != nil && !impersonal(f.Config, r) {
			match = "(hidden: it may name people)"
		}
		if runes := []rune(match); len(runes) > mostMatch {
			match = string(runes[:mostMatch-1]) + "…"
		}
		t.Rows = append(t.Rows, []string{shorten(visible(r.Name)), visible(match), visible(fields["key"]), doing(r)})
	}
	return t
}

// impersonal reports whether a rule matches only by attributes that name no people.
func impersonal(c *rules.Config, r *rules.Rule) bool {
	return !slices.ContainsFunc(c.MatchedBy(r), func(attribute string) bool {
		return !slices.Contains([]string{"method", "host", "path", "uri", "request_uri", "port", "plan", "tier", c.PlanFrom(r)}, attribute)
	})
}

// doing describes the effect of a rule, and its meaning.
func doing(r *rules.Rule) string {
	var said []string
	if r.Shadow {
		said = append(said, "A shadow, which only counts what it would refuse.")
	}
	switch {
	case r.Deny:
		said = append(said, "Refuses every request that matches.")
	case r.Unlimited:
		said = append(said, "Exempts every request that matches from all limits.")
	default:
		said = append(said, capital(r.Text())+".", meaning(rules.LimitText(r.Limit)))
	}
	for _, plan := range r.Plans() {
		said = append(said, fmt.Sprintf("On plan %s: %s.", plan.Name, rules.LimitText(plan.Limit)))
	}
	if r.Candidate != nil {
		text := rules.LimitText(r.Candidate)
		said = append(said, "Candidate: "+text+".", meaning(text))
	}
	return visible(strings.Join(slices.DeleteFunc(said, func(text string) bool { return text == "" }), " "))
}

// undecided shows what the log, or its stamps, leave open.
func (p *rulesPage) undecided() {
	s := section{ID: "undecided", Question: "What could not be decided?"}
	t := &table{Columns: []column{{"rule", "key"}, {"because the log lacks", "key"}, {"requests", "n"}}}
	for _, f := range p.files {
		decided := f.whole.Admitted + f.whole.Refused
		if n := f.whole.Undecided; n > 0 {
			s.Answer = append(s.Answer, fmt.Sprintf("By %s, %s of %s could not be decided, because the log lacks an attribute. They are neither admitted nor refused.",
				nameOf(f.whole), plain.Thousands(n), plain.Plural(decided+n, "request")))
		}
		if n := f.whole.Unsure; n > 0 {
			s.Answer = append(s.Answer, fmt.Sprintf("By %s, %s of %s depend on when exactly the requests came, within the resolution of the log and the time that they took.",
				nameOf(f.whole), plain.Thousands(n), plain.Plural(decided, "decision")))
		}
		if n := f.whole.Otherwise; n > 0 {
			s.Answer = append(s.Answer, fmt.Sprintf("By %s, %s of %s are not as the daemon decided that recorded them.", nameOf(f.whole), plain.Thousands(n), plain.Plural(decided, "decision")))
		}
		for _, l := range f.rules {
			for _, lack := range l.Lacks {
				t.Rows = append(t.Rows, []string{nameOf(l), shorten(visible(lack.Attribute)), plain.Thousands(lack.Requests)})
			}
		}
	}
	t.Rows = t.Rows[:min(len(t.Rows), p.rows)]
	if len(t.Rows) > 0 {
		s.Parts = []part{{Table: t}}
	}
	if len(s.Answer)+len(s.Parts) > 0 {
		p.Sections = append(p.Sections, s)
	}
}
