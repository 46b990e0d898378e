package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/explain"
	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/internal/replay"
)

// busiest shows how many clients ever ask for more than so much, with the limits.
func (p *replayPage) busiest() {
	if len(p.Result.Busiest) == 0 {
		return
	}
	unit := "request"
	if p.Costs {
		unit = "unit"
	}
	s := section{ID: "busiest", Question: fmt.Sprintf("How many %s ever make more than N %ss in a short time?", p.who.many, unit)}
	chosen := p.usualWindow()
	for i, b := range p.Result.Busiest {
		id := fmt.Sprint("busiest-", i)
		s.Parts = append(s.Parts, part{ID: id, Hidden: i != chosen, Figures: []figure{p.add(p.distribution(b, unit))}})
		s.Choices = append(s.Choices, choice{Part: id, Name: windowName(windowOf(b)), Chosen: i == chosen})
	}
	if len(s.Choices) == 1 {
		s.Choices = nil
	}
	p.Sections = append(p.Sections, s)
}

func windowOf(b replay.Busiest) time.Duration {
	return time.Duration(b.Seconds * float64(time.Second)).Round(time.Nanosecond)
}

// windowName returns second, minute, hour, day, or a length of time.
func windowName(window time.Duration) string {
	switch window {
	case time.Second:
		return "second"
	case time.Minute:
		return "minute"
	case time.Hour:
		return "hour"
	case 24 * time.Hour:
		return "day"
	}
	return plain.Duration(window)
}

// aWindow returns a minute, or 10s.
func aWindow(window time.Duration) string {
	if name := windowName(window); name[0] >= 'a' {
		return strings.Replace("a "+name, "a h", "an h", 1)
	}
	return windowName(window)
}

// usualWindow returns the window of the first limit's rate, or the one nearest to a minute.
func (p *replayPage) usualWindow() (chosen int) {
	want := time.Minute
	for _, l := range p.Result.Limits[:min(1, len(p.Result.Limits))] {
		if c, err := replay.ParseCandidate(l.Limit); err == nil && c.Rate().Period > time.Second {
			want = c.Rate().Period
		}
	}
	distance := func(i int) float64 { return math.Abs(math.Log(p.Result.Busiest[i].Seconds / want.Seconds())) }
	for i := range p.Result.Busiest {
		if distance(i) < distance(chosen) {
			chosen = i
		}
	}
	return chosen
}

// mostSteps bounds the steps of a distribution. Each that is drawn is exact.
const mostSteps = 240

func (p *replayPage) distribution(b replay.Busiest, unit string) chart {
	window := windowName(windowOf(b))
	c := chart{
		Title: fmt.Sprintf("%s that ever make more than N %ss within %s", capital(p.who.many), unit, aWindow(windowOf(b))), Height: 300,
		Answer: fmt.Sprintf("Half of the %s never make more than %s within %s, nine in ten never more than %s, 99%% never more than %s, and the busiest makes %s.",
			p.who.many, plain.Plural(b.P50, unit), aWindow(windowOf(b)), plain.Thousands(b.P90), plain.Thousands(b.P99), plain.Thousands(b.Most)),
		XName: "more than", LogX: true, ZeroY: true,
	}
	line := series{Name: p.who.many, Colour: "admitted", Steps: true}
	add := func(units int64, keys int) {
		n := int64(keys)
		c.X, line.Values = append(c.X, units), append(line.Values, &n)
	}
	if len(b.Above) > 0 && b.Above[0].Units > 1 {
		add(1, b.Exceeding(1))
	}
	for i, a := range b.Above {
		if a.Units > 0 && (len(b.Above) <= mostSteps || i < mostSteps/2 || i == len(b.Above)-1 || i%(2*len(b.Above)/mostSteps) == 0) {
			add(a.Units, a.Keys)
		}
	}
	c.Series = []series{line}
	for _, quantile := range []struct {
		name string
		at   int64
	}{{"half", b.P50}, {"90%", b.P90}, {"99%", b.P99}} {
		c.Marks = append(c.Marks, mark{Name: fmt.Sprintf("%s: %s", quantile.name, plain.Thousands(quantile.at)), X: &quantile.at, Colour: "soft"})
	}
	for _, i := range p.drawn {
		l := p.Result.Limits[i]
		most, ok := mostWithin(l.Limit, windowOf(b))
		if !ok || l.RuleReport != nil { // a rule decides only some of these requests
			continue
		}
		c.Marks = append(c.Marks, mark{Name: fmt.Sprintf("%s: at most %s", nameOf(l), plain.Thousands(most)), X: &most, Colour: "refused"})
		more := p.who.count(int64(b.Exceeding(most)))
		if b.Exceeding(most) == 0 {
			more = "No " + p.who.one
		}
		c.Answer += fmt.Sprintf(" %s ever asked for more than %s, the most that %s admits within any %s.", more, plain.Thousands(most), nameOf(l), window)
	}
	return c
}

// mostWithin returns the most units that a limit admits within any stretch of a length. ok is false for a limit with
// only other lengths known.
func mostWithin(text string, window time.Duration) (most int64, ok bool) {
	candidate, err := replay.ParseCandidate(text)
	if err != nil {
		return 0, false
	}
	most = math.MaxInt64
	for _, limit := range candidate.Limits {
		d := weir.Describe(limit)
		switch {
		case d.Owes || d.Delays || d.Held || d.Rate.Count == 0:
		case d.Refill == weir.RefillRate:
			most, ok = min(most, explain.MostWithin(&d, window)), true
		case d.Rate.Period == window:
			most, ok = min(most, d.Worst), true
		}
	}
	return most, ok
}

func capital(text string) string {
	if text == "" || text[0] < 'a' || text[0] > 'z' {
		return text
	}
	return string(text[0]-32) + text[1:]
}
