package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/simulate"
)

// proposal says what the limit of the headline was chosen by.
func (p *replayPage) proposal() string {
	if n := len(p.Suggestions.Limits); n > 1 {
		return fmt.Sprintf("It is one of %d limits that meet the target: %s.", n, p.Target)
	}
	return fmt.Sprintf("It meets the target: %s.", p.Target)
}

func (p *replayPage) headWithoutLimit() string {
	if p.Suggestions == nil {
		return "No limit was tried."
	}
	return fmt.Sprintf("No limit for each %s meets the target: %s.", p.who.one, p.Target)
}

// suggestions shows what a larger burst buys at each rate, and the limits that meet the target.
func (p *replayPage) suggestions() {
	found := p.Suggestions
	if found == nil || len(found.Curves) == 0 {
		return
	}
	s := section{ID: "tradeoff", Question: "What would a larger burst buy?", Answer: []string{"The target is to " + p.Target + "."}}
	s.Parts = append(s.Parts, part{Figures: []figure{p.add(p.tradeOff(found))}})
	if len(found.Limits) > 0 {
		t := &table{What: "limits", Columns: []column{{"limit", "key"}, {"requests refused", "n"}, {"share", "n"}, {p.who.many + " refused", "n"},
			{"peak a second", "n"}, {"one " + p.who.one + " in 1s", "n"}, {"in 1m", "n"}, {"in 1h", "n"}}}
		for _, l := range found.Limits {
			t.Rows = append(t.Rows, []string{l.Limit, cli.Thousands(l.Refused), cli.Percent(l.Refused, found.Requests), cli.Thousands(int64(l.KeysRefused)),
				cli.Thousands(l.Peak), cli.Thousands(l.In1s), cli.Thousands(l.In1m), cli.Thousands(l.In1h)})
		}
		s.Parts = append(s.Parts, part{Heading: "Limits that meet the target", Table: t,
			Text: fmt.Sprintf("Each just meets it at its rate. A lower rate gives a %s less in the long run, and more at once. The peak is the most admitted within a second, of all %s.", p.who.one, p.who.many)})
	}
	p.Sections = append(p.Sections, s)
}

// tradeOff draws a curve for each rate over the burst.
func (p *replayPage) tradeOff(found *simulate.Suggestions) chart {
	what, value := p.bounded(found)
	c := chart{Title: fmt.Sprintf("%s by burst, for several rates", capital(what)), XName: "burst", LogX: true, ZeroY: true, Height: 340}
	var bursts []int64
	for _, curve := range found.Curves {
		for _, point := range curve.Points {
			bursts = append(bursts, point.Burst)
		}
	}
	slices.Sort(bursts)
	c.X = slices.Compact(bursts)
	at := func(burst int64) int { i, _ := slices.BinarySearch(c.X, burst); return i }
	none := 0
	for i, curve := range found.Curves {
		line := series{Name: curve.Rate, Colour: fmt.Sprint("curve-", i%10), Values: make([]*int64, len(c.X))}
		for _, point := range curve.Points {
			v := value(point)
			line.Values[at(point.Burst)] = &v
			if point.Refused == 0 {
				none++
			}
		}
		c.Series = append(c.Series, line)
	}
	suggested := series{Name: "meets the target", Colour: "refused", Dots: true, Values: make([]*int64, len(c.X))}
	for _, l := range found.Limits {
		v := value(l.TradeOff)
		suggested.Values[at(l.Burst)] = &v
	}
	c.Series = append(c.Series, suggested)
	c.Answer = "A larger burst refuses less, down to nothing at the axis."
	if none == 0 {
		c.Answer = "A larger burst refuses less."
	}
	if len(found.Limits) > 0 {
		first := found.Limits[0]
		c.Answer += fmt.Sprintf(" %s refuses %s.", capital(first.Limit), cli.Plural(first.Refused, "request"))
	}
	return c
}

// bounded returns the quantity that the target bounds.
func (p *replayPage) bounded(found *simulate.Suggestions) (what string, value func(simulate.TradeOff) int64) {
	switch {
	case strings.HasPrefix(found.Target, "spare"), strings.Contains(found.Target, "clients"):
		return "refused " + p.who.many, func(t simulate.TradeOff) int64 { return int64(t.KeysRefused) }
	case strings.HasPrefix(found.Target, "refuse"):
		return "refused requests", func(t simulate.TradeOff) int64 { return t.Refused }
	}
	return "most admitted within a second", func(t simulate.TradeOff) int64 { return t.Peak }
}
