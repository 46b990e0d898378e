package report

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/backtest"
	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/internal/replay"
)

// Replay is the effect that limits would have had on a log.
type Replay struct {
	Logs        []string // names of files
	Key         string   // the fields that make the key
	Costs       bool     // lines have costs, so that units are not requests
	Result      replay.Report
	Suggestions *replay.Suggestions // if they were searched for
	Names       bool                // show keys instead of masks
}

// replayPage makes the page of a replay.
type replayPage struct {
	Replay
	view
	rows     int
	names    names
	who      noun
	days     map[string]string    // by key: the figure of its requests over time
	drawn    []int                // the limits with pictures, by place in Result.Limits
	compared []replay.LimitReport // those that Result.Difference compares
}

func (r Replay) view(rows int) view {
	p := replayPage{Replay: r, days: map[string]string{}, rows: rows, names: newNames(r.Names), who: nounOf(r.Key), compared: r.Result.Limits}
	all := make([]int, len(r.Result.Limits))
	for i := range all {
		all[i] = i
	}
	p.draw(all)
	p.head(p.headline())
	p.limits()
	p.overTime()
	p.busiest()
	p.suggestions()
	p.change()
	p.bans()
	p.worst()
	p.holds()
	p.notes()
	return p.view
}

// draw gives pictures to limits: to all, or to those that refuse most. Those of all rules of a file come first.
func (p *replayPage) draw(all []int) {
	if len(all) > mostDrawn {
		rank := func(at int) int64 {
			if l := p.Result.Limits[at]; !backtest.OfFile(l) {
				return l.Refused
			}
			return math.MaxInt64
		}
		slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(rank(b), rank(a)) })
		all = all[:mostDrawn]
		slices.Sort(all)
	}
	p.drawn = all
}

// requests is the number of lines that count, or of calls that rules decide.
func (p *replayPage) requests() int64 {
	if len(p.compared) > 0 && p.compared[0].RuleReport != nil {
		return p.compared[0].Admitted + p.compared[0].Refused + p.compared[0].Undecided
	}
	return p.Result.Lines - p.Result.Unparsed - p.Result.LeftOut
}

func (p *replayPage) head(headline string, lead []string) {
	var logs []string
	for _, name := range p.Logs {
		logs = append(logs, shorten(visible(filepath.Base(name))))
	}
	read := strings.Join(logs, ", ")
	if read == "-" || read == "" {
		read = "standard input"
	}
	p.Title, p.Kind = "Report of "+read, "weir replay · "+read
	p.Headline, p.Lead = headline, lead
	if all := p.Result.Unshown; len(all) > 0 { // what follows says less than it seems to
		var first []string
		for _, u := range all[:min(len(all), mostDrawn)] {
			if u.File != "" {
				u.File = filepath.Base(u.File)
			}
			first = append(first, capital(plain.UnshownText(u, p.who.one, p.who.many))+".")
		}
		p.Headline, p.Lead = first[0], slices.Concat(first[1:], []string{headline}, lead)
	}
	p.About = fmt.Sprintf("%s of %s", plain.Plural(p.requests(), "request"), p.seen())
	if !p.Result.First.IsZero() {
		p.About += fmt.Sprintf(", from %s to %s UTC", instant(p.Result.First), instant(p.Result.Last))
	}
	if p.Result.Unparsed > 0 {
		p.About += fmt.Sprintf("; %s could not be read", plain.Plural(p.Result.Unparsed, "further line"))
	}
	if p.Result.LeftOut > 0 {
		p.About += fmt.Sprintf("; %s left out", plain.Plural(p.Result.LeftOut, "line"))
	}
	p.About += "."
}

func instant(at time.Time) string { return at.UTC().Format("2 January 2006, 15:04:05") }

// limits lists all limits, with their meaning.
func (p *replayPage) limits() {
	all := p.Result.Limits
	if len(all) == 0 {
		return
	}
	t := &table{Columns: []column{{"limit", "key limit"}, {"requests refused", "n"}, {"share", "n"}, {p.who.many + " refused", "n"}, {"share", "n"}}}
	if len(all) > 10 {
		t.What, t.First = "limits", 10
	}
	delayed := slices.ContainsFunc(all, func(l replay.LimitReport) bool { return l.Delayed > 0 })
	if delayed {
		t.Columns = append(t.Columns, column{"delayed", "n"})
	}
	for _, l := range all[:min(len(all), max(p.rows, 1))] {
		row := []string{nameOf(l), plain.Thousands(l.Refused), plain.Percent(l.Refused, l.Admitted+l.Refused), plain.Thousands(int64(l.KeysRefused)), plain.Percent(int64(l.KeysRefused), int64(p.Result.Keys))}
		if delayed {
			row = append(row, plain.Thousands(l.Delayed))
		}
		t.Rows = append(t.Rows, row)
	}
	s := section{ID: "limits", Question: "What would each limit have refused?", Parts: []part{{Table: t}}}
	for _, i := range p.drawn {
		if text := meaning(all[i].Limit); text != "" {
			s.Parts = append(s.Parts, part{Heading: nameOf(all[i]), Text: text})
		}
	}
	p.Sections = append(p.Sections, s)
}

// overTime shows when each limit would have refused.
func (p *replayPage) overTime() {
	s := section{ID: "time", Question: "When would requests have been refused?"}
	for _, i := range p.drawn {
		l := p.Result.Limits[i]
		if len(l.Series.Offered) == 0 {
			continue
		}
		c := timeline(l.Series, p.Result.First)
		c.Title, c.Answer, c.Height = nameOf(l), whenWords(l), 220
		s.Parts = append(s.Parts, part{Figures: []figure{p.add(c)}})
	}
	if len(s.Parts) > 0 {
		step := plain.Duration(p.Result.Limits[p.drawn[0]].Series.Every)
		s.Answer = []string{fmt.Sprintf("Requests in steps of %s, in UTC. A mark below the axis shows each step with a refusal, however small it is.", step)}
		p.Sections = append(p.Sections, s)
	}
}

// whenWords tells the worst minute of a limit.
func whenWords(l replay.LimitReport) string {
	if len(l.WorstMinutes) == 0 {
		return "It would have refused nothing."
	}
	m := l.WorstMinutes[0]
	return fmt.Sprintf("The most within a minute of the clock was at %s: %s of %s.", m.Minute.Format("15:04 on 2 January"),
		plain.Thousands(m.Refused), backtest.Counted(m.Admitted+m.Refused, l.Unit))
}

// worst shows who would have been refused most, and when most was.
func (p *replayPage) worst() {
	who := section{ID: "worst", Question: fmt.Sprintf("Which %s would have been refused most?", p.who.many)}
	when := section{ID: "minutes", Question: "Which minutes would have been worst?"}
	for _, i := range p.drawn {
		l := p.Result.Limits[i]
		if len(l.WorstKeys) == 0 {
			continue
		}
		var pictures part
		for j, s := range l.Timelines[:min(len(l.Timelines), MostTimelines, p.rows)] {
			k := l.WorstKeys[j]
			c := timeline(s, p.Result.First)
			c.Title, c.Height = p.titleOf(k), 130
			c.Answer = fmt.Sprintf("%s of %s refused, %s.", plain.Thousands(k.Refused), plain.Plural(k.Admitted+k.Refused, "request"), plain.Percent(k.Refused, k.Admitted+k.Refused))
			if day, ok := worstDay(s, p.Result.First); ok && c.Time {
				c.Day = []int64{day.Unix(), day.Unix() + daySeconds}
				c.Answer = strings.TrimSuffix(c.Answer, ".") + ", most on " + day.Format("2 January") + "."
			}
			figure := p.add(c)
			p.days[k.Key] = figure.ID
			pictures.Figures = append(pictures.Figures, figure)
		}
		who.Parts = append(who.Parts, part{Heading: nameOf(l), Table: p.worstKeys(l)})
		if len(pictures.Figures) > 0 {
			who.Parts = append(who.Parts, pictures)
		}
		when.Parts = append(when.Parts, part{Heading: nameOf(l), Table: p.worstMinutes(l)})
	}
	if len(who.Parts) > 0 {
		p.Sections = append(p.Sections, who, when)
	}
}

// seen says whose requests the log has.
func (p *replayPage) seen() string {
	if p.Result.Customers > 0 {
		return backtest.Seen(p.Result)
	}
	return p.who.count(int64(p.Result.Keys))
}

// titleOf returns what a key of the page is called, with its mask or its name.
func (p *replayPage) titleOf(k replay.KeyReport) string {
	if k.Name != "" {
		return p.names.of(k)
	}
	return p.one(k) + " " + p.names.of(k)
}

// one returns what a key of the page is called.
func (p *replayPage) one(k replay.KeyReport) string {
	if k.Address {
		return "address"
	}
	return p.who.one
}

// whoOf returns what the keys of a limit or of a rule are called.
func (p *replayPage) whoOf(l replay.LimitReport) noun {
	if l.RuleReport != nil && l.Rule != "" {
		return nounOfSubject(l.Subject)
	}
	return p.who
}

func (p *replayPage) worstKeys(l replay.LimitReport) *table {
	who, sums := p.whoOf(l), "all "+p.seen()
	if l.RuleReport != nil && l.Rule != "" {
		sums = "all " + who.many + " of the rule"
	}
	t := &table{What: who.many, First: 10, Columns: []column{{who.one, "key"}, {cmp.Or(l.Unit, "requests"), "n"}, {"admitted", "n"}, {"refused", "n"}, {"share", "n"}, {"refused from", ""}, {"to", ""}}}
	has := func(f func(k replay.KeyReport) bool) bool { return slices.ContainsFunc(l.WorstKeys, f) }
	planned, needed := has(func(k replay.KeyReport) bool { return k.Plan != "" }), has(func(k replay.KeyReport) bool { return k.Needs > 0 })
	if planned {
		t.Columns = append(t.Columns, column{"plan", ""})
	}
	if needed {
		t.Columns = append(t.Columns, column{"would need", "n"})
	}
	for _, k := range l.WorstKeys[:min(len(l.WorstKeys), p.rows)] {
		const layout = "2 Jan 15:04"
		name := p.names.of(k)
		if k.Address {
			name = "address " + name
		}
		row := []string{name, plain.Thousands(k.Admitted + k.Refused), plain.Thousands(k.Admitted), plain.Thousands(k.Refused), plain.Percent(k.Refused, k.Admitted+k.Refused),
			k.From.Format(layout), k.To.Format(layout)}
		if planned {
			row = append(row, shorten(visible(k.Plan)))
		}
		if needed && k.Needs > 0 {
			row = append(row, plain.Thousands(k.Needs))
		} else if needed {
			row = append(row, "")
		}
		t.Rows, t.Links = append(t.Rows, row), append(t.Links, p.days[k.Key])
	}
	t.Caption = p.some(len(t.Rows), l.KeysRefused, who.many+" with a refusal")
	t.Sums = []string{sums, plain.Thousands(l.Admitted + l.Refused), plain.Thousands(l.Admitted), plain.Thousands(l.Refused), plain.Percent(l.Refused, l.Admitted+l.Refused)}
	for len(t.Sums) < len(t.Columns) {
		t.Sums = append(t.Sums, "")
	}
	return t
}

func (p *replayPage) worstMinutes(l replay.LimitReport) *table {
	t := &table{What: "minutes", First: 10, Columns: []column{{"minute (UTC)", ""}, {cmp.Or(l.Unit, "requests"), "n"}, {"admitted", "n"}, {"refused", "n"}, {"share refused", "n"}}}
	for _, m := range l.WorstMinutes[:min(len(l.WorstMinutes), p.rows)] {
		t.Rows = append(t.Rows, []string{m.Minute.Format("2006-01-02 15:04"), plain.Thousands(m.Admitted + m.Refused), plain.Thousands(m.Admitted), plain.Thousands(m.Refused), plain.Percent(m.Refused, m.Admitted+m.Refused)})
	}
	t.Sums = []string{"the whole log", plain.Thousands(l.Admitted + l.Refused), plain.Thousands(l.Admitted), plain.Thousands(l.Refused), plain.Percent(l.Refused, l.Admitted+l.Refused)}
	return t
}

// some says how many of all things a table has, if not all.
func (p *replayPage) some(rows, all int, what string) string {
	if rows >= all {
		return ""
	}
	return fmt.Sprintf("The %s with the most refusals, of %s %s. The last row is for all.", plain.Thousands(int64(rows)), plain.Thousands(int64(all)), what)
}
