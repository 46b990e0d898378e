package report

import (
	"fmt"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/simulate"
)

// Comparison is the effect of limits on made-up traffic.
type Comparison struct {
	Result simulate.Comparison
	How    string // the requests are tried, in words; may be empty
}

func (c Comparison) view(rows int) view {
	v := view{Title: "Report of a simulation", Kind: "weir simulate · " + shorten(visible(c.Result.Traffic))}
	v.Headline, v.Lead = c.headline()
	length := time.Duration(c.Result.Seconds * float64(time.Second)).Round(time.Millisecond)
	v.About = fmt.Sprintf("%s of %s in %s.", plain.Plural(c.Result.Requests, "request"), plain.Plural(int64(c.Result.Clients), "client"), plain.Duration(length))
	if c.How != "" {
		v.About += " " + capital(c.How) + "."
	}
	limits := c.Result.Limits[:min(len(c.Result.Limits), max(rows, 1))]
	v.Sections = append(v.Sections, c.fate(limits), c.overTime(limits, &v), c.windows(limits))
	v.Notes = []string{
		"The traffic is made up, and its time is virtual. Each limit decided as the daemon does, as if it were the only one.",
		"A request is refused if it is never admitted, however often its client retried. Waits are in seconds, of admitted requests.",
		"The numbers are those of weir simulate --format json, which has more of them.",
		"Made by " + maker() + ".",
	}
	return v
}

func (c Comparison) headline() (head string, lead []string) {
	if len(c.Result.Limits) == 0 {
		return "No limit was tried.", nil
	}
	least, most := c.Result.Limits[0], c.Result.Limits[0]
	for _, l := range c.Result.Limits {
		if l.Refused < least.Refused {
			least = l
		}
		if l.Refused > most.Refused {
			most = l
		}
	}
	told := func(l simulate.ComparisonReport) string {
		return fmt.Sprintf("%s refuses %s of requests", shorten(visible(l.Limit)), plain.Percent(l.Refused, l.Admitted+l.Refused))
	}
	if least.Limit == most.Limit {
		return capital(told(least)) + ".", []string{fmt.Sprintf("That is %s of %s.", plain.Thousands(least.Refused), plain.Plural(c.Result.Requests, "request"))}
	}
	return fmt.Sprintf("%s, and %s.", capital(told(least)), told(most)), []string{fmt.Sprintf("That is %s and %s of %s.",
		plain.Thousands(least.Refused), plain.Thousands(most.Refused), plain.Plural(c.Result.Requests, "request"))}
}

// fate shows what became of the requests.
func (c Comparison) fate(limits []simulate.ComparisonReport) section {
	t := &table{Columns: []column{{"limit", "key limit"}, {"admitted", "n"}, {"refused", "n"}, {"share refused", "n"}, {"wait p50", "n"}, {"wait p99", "n"}, {"longest queue", "n"}, {"starved", "n"}}}
	if c.Result.Clients > 1 {
		t.Columns = append(t.Columns, column{"fairness", "n"}, column{"shut out", "n"})
	}
	s := section{ID: "limits", Question: "What becomes of the requests?", Parts: []part{{Table: t}},
		Answer: []string{"Starved is the longest run of refusals, in seconds. Fairness is 1 if all clients get the same. Shut out are clients never admitted."}}
	for _, l := range limits {
		row := []string{shorten(visible(l.Limit)), plain.Thousands(l.Admitted), plain.Thousands(l.Refused), plain.Percent(l.Refused, l.Admitted+l.Refused),
			plain.Fixed(l.WaitP50), plain.Fixed(l.WaitP99), plain.Thousands(l.Queue), plain.Fixed(l.Starved)}
		if c.Result.Clients > 1 {
			row = append(row, plain.Fixed(l.Jain), plain.Thousands(int64(l.ShutOut)))
		}
		t.Rows = append(t.Rows, row)
	}
	for _, l := range limits[:min(len(limits), mostDrawn)] {
		if text := meaning(l.Limit); text != "" {
			s.Parts = append(s.Parts, part{Heading: shorten(visible(l.Limit)), Text: text})
		}
	}
	return s
}

func (c Comparison) overTime(limits []simulate.ComparisonReport, v *view) section {
	s := section{ID: "time", Question: "When are requests refused?", Answer: []string{"Units in each step of time. A mark below the axis shows each step with a refusal."}}
	for _, l := range limits[:min(len(limits), mostDrawn)] {
		drawn := timeline(l.Series, time.Time{})
		drawn.Title, drawn.Height = shorten(visible(l.Limit)), 200
		drawn.Answer = fmt.Sprintf("%s refused, %s.", plain.Plural(l.Refused, "request"), plain.Percent(l.Refused, l.Admitted+l.Refused))
		if l.Queue > 0 {
			drawn.Answer += fmt.Sprintf(" At most %s wait.", plain.Plural(l.Queue, "request"))
		}
		s.Parts = append(s.Parts, part{Figures: []figure{v.add(drawn)}})
	}
	return s
}

// windows shows how much goes ahead within windows of time.
func (c Comparison) windows(limits []simulate.ComparisonReport) section {
	t := &table{Columns: []column{{"most within any", "key"}}}
	offered := []string{"(the traffic)"}
	for i, window := range simulate.ComparisonWindows() {
		t.Columns, offered = append(t.Columns, column{plain.Duration(window), "n"}), append(offered, plain.Thousands(c.Result.Most[i]))
	}
	t.Rows = append(t.Rows, offered)
	for _, l := range limits {
		row := []string{shorten(visible(l.Limit))}
		for _, most := range l.Most {
			row = append(row, plain.Thousands(most))
		}
		t.Rows = append(t.Rows, row)
	}
	return section{ID: "windows", Question: "How much goes ahead within a short time?", Parts: []part{{Table: t}}}
}
