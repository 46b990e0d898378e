package replay

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/picture"
	"github.com/weirflow/weir/cmd/weir/internal/screen"
	"github.com/weirflow/weir/internal/replay"
)

// writeSuggestions searches the traffic and writes what it finds.
func (o *options) writeSuggestions(traffic *replay.Traffic, key replay.Key, files []string, out io.Writer, progress *cli.Progress) error {
	found, err := traffic.Suggest(o.target, progress.Stage("searching"))
	progress.Stop()
	if err != nil {
		return cli.Fail(o.Of(err), "this is a bug in weir: please report it with the target")
	}
	found.Name(o.named)
	if err := found.WithHeadroom(o.margin); err != nil {
		return cli.Fail(o.Of(err), "this is a bug in weir: please report it with the target")
	}
	if err := o.writePageOfSuggestions(traffic, key, files, found, progress); err != nil {
		return err
	}
	var drawn picture.Picture
	if len(found.Curves) > 0 {
		drawn = suggestionPicture(found)
	}
	return o.Write(out, found, drawn, func(s screen.Screen, drawn string) string {
		if drawn != "" {
			drawn += "\n"
		}
		drawn += cli.LogLines(found.Logs, s)
		if found.Unparsed > 0 {
			drawn += s.Table(reasonTable(found.Reasons)) + "\n"
		}
		return drawn + suggestionText(key, found, s)
	})
}

// suggestionText returns the suggestions for people: the target, the proposal with its reason, and the table.
func suggestionText(key replay.Key, found replay.Suggestions, s screen.Screen) string {
	head := fmt.Sprintf("%s, %s by %s, up to %s within a %s of the clock", cli.Plural(found.Requests, "request"),
		cli.Plural(int64(found.Keys), "client"), cli.Printable(key.String()), cli.Thousands(found.Peak), found.PeakIn)
	if found.LeftOut > 0 {
		head += "; " + cli.Plural(found.LeftOut, "line") + " left out"
	}
	text := s.Wrap(head+"\ntarget: "+meaning(found)+"\n", 2)
	for _, note := range found.Notes {
		text += s.Wrap(note+"\n", 2)
	}
	if found.Proposed == nil {
		return text
	}
	forAll := ""
	if found.Proposed.ForAll {
		forAll = ", one for all clients"
	}
	text += s.Wrap(fmt.Sprintf("\nproposed: %s%s\n%s\n", found.Proposed.Limit, forAll, strings.Join(found.Proposed.Reasons(), "\n")), 2)
	if found.Proposed.Factor == 1 {
		text += s.Wrap("--headroom 30% proposes a limit with a margin.\n", 2)
	}
	if len(found.Limits) == 0 {
		return text
	}
	return text + "\n" + s.Table(suggestionTable(found)) +
		s.Wrap(fmt.Sprintf("\nworst: the client that is refused most often. peak: the most admitted within a %s, of all clients. one client: the most that it may take in any such time.\n", found.PeakIn), 0)
}

// meaning says the target in words, and how much it allows in this log.
func meaning(found replay.Suggestions) string {
	switch found.Of {
	case ofRequests:
		return fmt.Sprintf("%s: %s of %s", found.Meaning, cli.Thousands(found.Bound), cli.Thousands(found.Requests))
	case ofClients:
		return fmt.Sprintf("%s: up to %s of %s may be refused something", found.Meaning, cli.Thousands(found.Bound), cli.Thousands(int64(found.Keys)))
	}
	return found.Meaning
}

// The counts that a target may bound.
const (
	ofRequests = "refused"
	ofClients  = "keys_refused"
)

// suggestionTable has a row for each limit. The share is that of the count that the target bounds.
func suggestionTable(found replay.Suggestions) screen.Table {
	t := screen.Table{Columns: []screen.Column{{Title: "limit"}, {Title: "refused", Colour: screen.Refused}, {Title: "share", Rank: 6}, {Title: "clients", Colour: screen.Refused}, {Title: "of clients", Rank: 5},
		{Title: "worst", Rank: 4}, {Title: "its refusals", Colour: screen.Refused, Rank: 4}, {Title: "peak", Rank: 7},
		{Title: "one client in 1s", Rank: 2}, {Title: "in 1m", Rank: 3}, {Title: "in 1h", Rank: 1}}}
	for _, l := range found.Limits {
		worst, times := "", ""
		if l.Worst != nil {
			worst, times = cli.Shorten(cli.Printable(l.Worst.Called())), cli.Thousands(l.Worst.Refused)
		}
		t.Rows = append(t.Rows, []string{l.Limit, cli.Thousands(l.Refused), cli.Percent(l.Refused, found.Requests), cli.Thousands(int64(l.KeysRefused)), cli.Percent(int64(l.KeysRefused), int64(found.Keys)),
			worst, times, cli.Thousands(l.Peak), cli.Thousands(l.In1s), cli.Thousands(l.In1m), cli.Thousands(l.In1h)})
	}
	return t
}

// suggestionPicture shows what a larger number buys in each form, and the target.
func suggestionPicture(found replay.Suggestions) picture.Chart {
	c := picture.Chart{Title: found.Meaning, X: "N: burst or count", LogX: true}
	value, bound := suggestionAxis(&c, found)
	c.Marks = []picture.Mark{{Name: "target", At: bound, Across: true}}
	for _, curve := range found.DrawnCurves() {
		line := picture.Line{Name: curve.Form}
		for _, p := range curve.Points {
			line.Points = append(line.Points, picture.Point{X: float64(p.Number), Y: value(p)})
		}
		c.Lines = append(c.Lines, line)
	}
	chosen := picture.Line{Name: "suggested", Dots: true}
	for _, s := range found.Limits {
		if slices.ContainsFunc(c.Lines, func(l picture.Line) bool { return l.Name == s.Form }) {
			chosen.Points = append(chosen.Points, picture.Point{X: float64(s.Number), Y: value(s.TradeOff)})
		}
	}
	if len(chosen.Points) > 0 {
		c.Lines = append(c.Lines, chosen)
	}
	return c
}

// suggestionAxis sets the quantity that the target bounds. The axis of a share begins at zero, and is logarithmic from the
// share of one on.
func suggestionAxis(c *picture.Chart, found replay.Suggestions) (value func(replay.TradeOff) float64, bound float64) {
	share := func(part, whole int64) float64 { return 100 * float64(part) / float64(whole) }
	requests, clients := found.Requests, int64(found.Keys)
	switch found.Of {
	case ofRequests:
		c.Y, c.UnitY = "refused requests, %", share(1, requests)
		return func(t replay.TradeOff) float64 { return share(t.Refused, requests) }, share(found.Bound, requests)
	case ofClients:
		c.Y, c.UnitY = "clients refused, %", share(1, clients)
		return func(t replay.TradeOff) float64 { return share(int64(t.KeysRefused), clients) }, share(found.Bound, clients)
	}
	c.Y = "most admitted within a " + found.PeakIn
	return func(t replay.TradeOff) float64 { return float64(t.Peak) }, float64(found.Bound)
}
