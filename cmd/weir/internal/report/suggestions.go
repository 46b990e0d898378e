package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/internal/replay"
)

// proposal says what the limit of the headline was chosen by.
func (p *replayPage) proposal() string {
	return fmt.Sprintf("It meets the target: %s. %s", p.Suggestions.Meaning, strings.Join(p.Suggestions.Proposed.Reasons(), " "))
}

// whyForAll says why all share the limit of the headline, which no picture has.
func (p *replayPage) whyForAll() []string {
	if proposed := p.Suggestions.Proposed; proposed != nil && proposed.ForAll {
		return []string{proposed.Why + " The limits below are for each " + p.who.one + "."}
	}
	return nil
}

func (p *replayPage) headWithoutLimit() string {
	if p.Suggestions == nil {
		return "No limit was tried."
	}
	if proposed := p.Suggestions.Proposed; proposed != nil {
		return fmt.Sprintf("%s, one limit for all %s, would have refused %s of %s.", capital(proposed.Limit), p.who.many,
			plain.Thousands(p.Suggestions.Together.Refused), plain.Plural(p.Suggestions.Requests, "request"))
	}
	return fmt.Sprintf("No limit for each %s meets the target: %s.", p.who.one, p.Suggestions.Meaning)
}

// suggestions shows what a larger number buys in each form, and the limits that meet the target.
func (p *replayPage) suggestions() {
	found := p.Suggestions
	if found == nil || len(found.Curves) == 0 {
		return
	}
	s := section{ID: "tradeoff", Question: "What would a larger limit buy?", Answer: append([]string{"The target is to " + found.Meaning + "."}, append(found.Notes, p.whyForAll()...)...)}
	s.Parts = append(s.Parts, part{Figures: []figure{p.add(p.tradeOff(found))}})
	which := "smallest"
	if found.Of == "peak" {
		which = "largest"
	}
	if len(found.Limits) > 0 {
		s.Parts = append(s.Parts, part{Heading: "Limits that meet the target", Table: p.suggested(found),
			Text: fmt.Sprintf("Each has the "+which+" number of its form that meets the target. It refuses this many requests of this many %s, and of them the worst this often. The peak is the most admitted within a %s, of all. The last columns are the most that one %s may take within any such time.", p.who.many, found.PeakIn, p.who.one)})
	}
	p.Sections = append(p.Sections, s)
}

func (p *replayPage) suggested(found *replay.Suggestions) *table {
	t := &table{What: "limits", Columns: []column{{"limit", "key limit"}, {"refused", "n"}, {"share", "n"}, {p.who.many, "n"},
		{"worst", "key"}, {"refusals", "n"}, {"peak", "n"}, {"in 1s", "n"}, {"in 1m", "n"}, {"in 1h", "n"}}}
	for _, l := range found.Limits {
		worst, refusals := "", "0"
		if l.Worst != nil {
			worst, refusals = p.names.of(*l.Worst), plain.Thousands(l.Worst.Refused)
		}
		t.Rows = append(t.Rows, []string{l.Limit, plain.Thousands(l.Refused), plain.Percent(l.Refused, found.Requests), plain.Thousands(int64(l.KeysRefused)),
			worst, refusals, plain.Thousands(l.Peak), plain.Thousands(l.In1s), plain.Thousands(l.In1m), plain.Thousands(l.In1h)})
	}
	return t
}

// tradeOff draws a curve for each form over its number.
func (p *replayPage) tradeOff(found *replay.Suggestions) chart {
	what, value := p.bounded(found)
	c := chart{Title: capital(what) + " by burst or count N", XName: "N", LogX: true, ZeroY: true, Height: 340,
		Marks: []mark{{Name: "target: at most " + p.most(found), Y: &found.Bound}}}
	curves := found.DrawnCurves()
	var numbers []int64
	for _, curve := range curves {
		for _, point := range curve.Points {
			numbers = append(numbers, point.Number)
		}
	}
	slices.Sort(numbers)
	c.X = slices.Compact(numbers)
	at := func(number int64) int { i, _ := slices.BinarySearch(c.X, number); return i }
	none := 0
	for i, curve := range curves {
		line := series{Name: curve.Form, Colour: fmt.Sprint("curve-", i%10), Values: make([]*int64, len(c.X))}
		for _, point := range curve.Points {
			v := value(point)
			line.Values[at(point.Number)] = &v
			if point.Refused == 0 {
				none++
			}
		}
		c.Series = append(c.Series, line)
	}
	suggested := series{Name: "meets the target", Colour: "refused", Dots: true, Values: make([]*int64, len(c.X))}
	for _, l := range found.Limits {
		if !slices.ContainsFunc(curves, func(c replay.Curve) bool { return c.Form == l.Form }) {
			continue
		}
		v := value(l.TradeOff)
		suggested.Values[at(l.Number)] = &v
	}
	c.Series = append(c.Series, suggested)
	switch {
	case found.Of == "peak":
		c.Answer = "A larger number admits more at once."
	case none == 0:
		c.Answer = "A larger number refuses less."
	default:
		c.Answer = "A larger number refuses less, down to nothing at the axis."
	}
	c.Answer += fmt.Sprintf(" The line is the target: at most %s.", p.most(found))
	if len(found.Limits) > 0 && !found.Proposed.ForAll {
		at := slices.IndexFunc(found.Limits, func(l replay.Suggestion) bool { return l.Limit == found.Proposed.Tight })
		c.Answer += fmt.Sprintf(" %s refuses %s.", capital(found.Proposed.Tight), plain.Plural(found.Limits[at].Refused, "request"))
	}
	return c
}

// most says what the target allows in this log.
func (p *replayPage) most(found *replay.Suggestions) string {
	if found.Of == "peak" {
		return fmt.Sprintf("%s within a %s", plain.Thousands(found.Bound), found.PeakIn)
	}
	if found.Of == "refused" {
		return plain.Plural(found.Bound, "refused request")
	}
	return plain.Plural(found.Bound, "refused "+p.who.one)
}

// bounded returns the quantity that the target bounds.
func (p *replayPage) bounded(found *replay.Suggestions) (what string, value func(replay.TradeOff) int64) {
	switch found.Of {
	case "keys_refused":
		return "refused " + p.who.many, func(t replay.TradeOff) int64 { return int64(t.KeysRefused) }
	case "refused":
		return "refused requests", func(t replay.TradeOff) int64 { return t.Refused }
	}
	return "most admitted within a " + found.PeakIn, func(t replay.TradeOff) int64 { return t.Peak }
}
