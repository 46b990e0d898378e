package report

import (
	"strings"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/backtest"
	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/internal/replay"
)

// bans shows whom the bans would have hit, and for how long.
func (p *replayPage) bans() {
	s := section{ID: "bans", Question: "Whom would a ban have hit?"}
	for _, l := range p.Result.Limits {
		if l.Bans == nil {
			continue
		}
		part := part{Heading: nameOf(l), Text: strings.Join(backtest.BanLines(l.Bans, p.whoOf(l).one), " ")}
		if len(l.Bans.Worst) > 0 {
			part.Table = p.banned(l)
		}
		s.Parts = append(s.Parts, part)
	}
	if len(s.Parts) > 0 {
		p.Sections = append(p.Sections, s)
	}
}

func (p *replayPage) banned(l replay.LimitReport) *table {
	who := p.whoOf(l)
	t := &table{What: "banned " + who.many, First: 10, Columns: []column{{"banned " + who.one, "key"}, {"bans", "n"}, {"banned for", ""}, {"refused by bans", "n"}, {"first (UTC)", ""}, {"by one burst", ""}, {"then gone", ""}}}
	for _, k := range l.Bans.Worst[:min(len(l.Bans.Worst), p.rows)] {
		t.Rows = append(t.Rows, []string{p.names.of(replay.KeyReport{Key: k.Key, Name: k.Name}), plain.Thousands(k.Begun), plain.Duration(time.Duration(k.Seconds) * time.Second), plain.Thousands(k.Refused), instant(k.First), yes(k.Burst), yes(k.Gone)})
	}
	t.Caption = p.some(len(t.Rows), l.Bans.Keys, "banned "+who.many)
	return t
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return ""
}
