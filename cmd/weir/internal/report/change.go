package report

import (
	"fmt"

	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/internal/replay"
)

// change shows who would notice the change from the first to the second of two limits, or files of rules.
func (p *replayPage) change() {
	d := p.Result.Difference
	if d == nil || d.OnlyFirst+d.OnlySecond+d.Both == 0 {
		return
	}
	a, b := p.compared[0], p.compared[1]
	before, after := nameOf(a), nameOf(b)
	s := section{ID: "change", Question: fmt.Sprintf("Who would notice the change from %s to %s?", before, after)}
	s.Answer = []string{fmt.Sprintf("%s would be refused no longer, %s newly, and %s by both.", p.who.count(int64(d.OnlyFirst)), plain.Thousands(int64(d.OnlySecond)), plain.Thousands(int64(d.Both)))}
	keys := d.Keys[:min(len(d.Keys), p.rows)]
	if len(keys) > 3 {
		s.Parts = append(s.Parts, part{Figures: []figure{p.add(p.beforeAndAfter(min(len(keys), 50)))}})
	}
	if len(keys) > 0 {
		t := &table{What: p.who.many, First: 10, Columns: []column{{p.who.one, "key"}, {"requests", "n"}, {"refused before", "n"}, {"after", "n"}, {"change", "n"}}}
		for _, k := range keys {
			t.Rows = append(t.Rows, []string{p.names.of(replay.KeyReport{Key: k.Key, Name: k.Name}), plain.Thousands(k.Requests), plain.Thousands(k.First), plain.Thousands(k.Second), signed(k.Second - k.First)})
		}
		t.Sums = []string{"all " + p.who.count(int64(p.Result.Keys)), plain.Thousands(a.Admitted + a.Refused), plain.Thousands(a.Refused), plain.Thousands(b.Refused), signed(b.Refused - a.Refused)}
		s.Parts = append(s.Parts, part{Table: t})
	}
	p.Sections = append(p.Sections, s)
}

// beforeAndAfter shows the refusals of the keys that notice most.
func (p *replayPage) beforeAndAfter(keys int) chart {
	d := p.Result.Difference
	c := chart{Title: fmt.Sprintf("Refused requests of the %d %s that would notice most", keys, p.who.many), XName: p.who.one, ZeroY: true,
		Series: []series{{Name: "before", Colour: "curve-6", Dots: true}, {Name: "after", Colour: "refused", Dots: true}}}
	for i, k := range d.Keys[:keys] {
		c.X = append(c.X, int64(i+1))
		c.Series[0].Values = append(c.Series[0].Values, &k.First)
		c.Series[1].Values = append(c.Series[1].Values, &k.Second)
	}
	k := d.Keys[0]
	c.Answer = fmt.Sprintf("For %s %s, %s of %s would have been refused before, and %s after.", p.who.one, p.names.of(replay.KeyReport{Key: k.Key, Name: k.Name}), plain.Thousands(k.First), plain.Plural(k.Requests, "request"), plain.Thousands(k.Second))
	return c
}

// signed formats a change: +1,234 or -5.
func signed(n int64) string {
	switch {
	case n < 0:
		return "-" + plain.Thousands(-n)
	case n == 0:
		return "0"
	}
	return "+" + plain.Thousands(n)
}
