package replay

import (
	"fmt"
	"io"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/picture"
	"github.com/weirflow/weir/cmd/weir/internal/screen"
	"github.com/weirflow/weir/simulate"
)

// writeSuggestions searches the traffic and writes what it finds.
func (o *options) writeSuggestions(traffic *simulate.Traffic, key simulate.Key, files []string, report simulate.Report, out io.Writer, progress *cli.Progress) error {
	found, err := traffic.Suggest(o.target, progress.Stage("searching"))
	progress.Stop()
	if err != nil {
		return cli.Fail(o.Of(err), "this is a bug in weir: please report it with the target")
	}
	if err := o.writePageOfSuggestions(traffic, key, files, found, progress); err != nil {
		return err
	}
	var drawn picture.Picture
	if len(found.Curves) > 0 {
		drawn = o.suggestionPicture(found)
	}
	return o.Write(out, found, drawn, func(s screen.Screen, drawn string) string {
		if drawn != "" {
			drawn += "\n"
		}
		if report.Unparsed > 0 {
			drawn += s.Table(reasonTable(report)) + "\n"
		}
		return drawn + suggestionTable(o.target, key, found, s)
	})
}

// suggestionTable returns the suggestions for people.
func suggestionTable(target simulate.Target, key simulate.Key, found simulate.Suggestions, s screen.Screen) string {
	head := s.Wrap(fmt.Sprintf("%s, %s by %s, up to %s within a second of the clock\ntarget: %s\n\n", cli.Plural(found.Requests, "request"),
		cli.Plural(int64(found.Keys), "key"), cli.Printable(key.String()), cli.Thousands(found.Peak), target.Meaning()), 2)
	if len(found.Limits) == 0 {
		return head + s.Wrap("No limit for each key meets the target: too many keys ask at once. Protect the capacity with one limit for all.\n", 0)
	}
	t := screen.Table{Columns: []screen.Column{{Title: "limit"}, {Title: "refused", Colour: screen.Refused}, {Title: "share", Rank: 4},
		{Title: "keys refused", Rank: 3}, {Title: "peak", Rank: 5}, {Title: "one key in 1s"}, {Title: "in 1m", Rank: 2}, {Title: "in 1h", Rank: 1}}}
	for _, l := range found.Limits {
		t.Rows = append(t.Rows, []string{l.Limit, cli.Thousands(l.Refused), cli.Percent(l.Refused, found.Requests), cli.Thousands(int64(l.KeysRefused)), cli.Thousands(l.Peak),
			cli.Thousands(l.In1s), cli.Thousands(l.In1m), cli.Thousands(l.In1h)})
	}
	return head + s.Table(t) + s.Wrap("\nEach limit just meets the target at its rate. A lower rate gives a key less in the long run, and more at once.\n"+
		"peak: the most admitted within a second, of all keys. one key: the most that it may take in any such time.\n", 0)
}

// suggestionPicture shows what a larger burst buys at each rate, and the target.
func (o *options) suggestionPicture(found simulate.Suggestions) picture.Chart {
	c := picture.Chart{Title: "token buckets for each key: " + o.target.Meaning(), X: "burst", LogX: true}
	value := o.suggestionAxis(&c, found)
	for _, curve := range found.Curves {
		line := picture.Line{Name: curve.Rate}
		for _, p := range curve.Points {
			line.Points = append(line.Points, picture.Point{X: float64(p.Burst), Y: value(p)})
		}
		c.Lines = append(c.Lines, line)
	}
	chosen := picture.Line{Name: "suggested", Dots: true}
	for _, s := range found.Limits {
		chosen.Points = append(chosen.Points, picture.Point{X: float64(s.Burst), Y: value(s.TradeOff)})
	}
	if len(chosen.Points) > 0 {
		c.Lines = append(c.Lines, chosen)
	}
	return c
}

// suggestionAxis sets the quantity that the target bounds.
func (o *options) suggestionAxis(c *picture.Chart, found simulate.Suggestions) func(simulate.TradeOff) float64 {
	kind, value, _ := strings.Cut(strings.TrimSpace(o.suggest), " ")
	number := func(text string) (n float64) {
		_, _ = fmt.Sscanf(strings.TrimSpace(text), "%g", &n)
		return n
	}
	switch kind {
	case "refuse":
		c.Y, c.LogY = "refused requests, %", true
		c.Marks = []picture.Mark{{Name: "target", At: number(value), Across: true}}
		return func(t simulate.TradeOff) float64 { return share(t.Refused, found.Requests) }
	case "spare":
		c.Y, c.LogY = "refused keys, %", true
		c.Marks = []picture.Mark{{Name: "the keys above the percentile", At: max(100-number(value), 1e-3), Across: true}}
		return func(t simulate.TradeOff) float64 { return share(int64(t.KeysRefused), int64(found.Keys)) }
	}
	c.Y = "most admitted within a second"
	c.Marks = []picture.Mark{{Name: "target", At: float64(o.target.PerSecond()), Across: true}}
	return func(t simulate.TradeOff) float64 { return float64(t.Peak) }
}

// share returns a percentage for a logarithmic axis: none is drawn as half of one.
func share(part, whole int64) float64 { return 100 * max(float64(part), 0.5) / float64(whole) }
