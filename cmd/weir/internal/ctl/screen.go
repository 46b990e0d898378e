package ctl

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir/cmd/weir/internal/cli"
	"github.com/weirflow/weir/cmd/weir/internal/live"
	"github.com/weirflow/weir/cmd/weir/internal/top"
)

// screen is the screen of weir ctl top --watch. It keeps the figures that later events leave out.
type screen struct {
	only   string // the rule to show, or "" for all
	by     string // the list of keys to show, if it was given
	given  bool
	lines  int  // of each list
	clears bool // the terminal, before each screen

	rules            map[string]live.RuleLine
	busiest, refused []top.Count
	fullest          []top.Full
}

// show takes over an event, and returns the screen.
func (s *screen) show(m *live.Message) string {
	if m.All {
		s.rules = map[string]live.RuleLine{}
	}
	for _, line := range m.Rules {
		s.rules[line.Rule] = line
	}
	if m.Busiest != nil {
		s.busiest = m.Busiest
	}
	if m.Refused != nil {
		s.refused = m.Refused
	}
	if m.Fullest != nil {
		s.fullest = m.Fullest
	}
	var b strings.Builder
	if s.clears {
		b.WriteString("\x1b[H\x1b[J")
	}
	s.head(&b, m)
	s.table(&b)
	if !s.given || s.by == "taken" {
		s.keys(&b, "busiest", s.busiest)
	}
	if !s.given || s.by == "refused" {
		s.keys(&b, "refused", s.refused)
	}
	if !s.given || s.by == "used" {
		s.full(&b)
	}
	b.WriteByte('\n')
	return b.String()
}

// head describes the daemon.
func (s *screen) head(b *strings.Builder, m *live.Message) {
	now, at := &m.Now, clockOf(m.At)
	fmt.Fprintf(b, "%s  weir %s, %s, %s in force\n", at.Format(time.TimeOnly), cli.Printable(now.Version), cli.Plural(int64(now.Rules), "rule"), cli.Plural(int64(now.Overrides), "override"))
	during := max(at.Sub(clockOf(now.Engine.Since)), 0).Truncate(time.Second)
	if now.Engine.Up {
		fmt.Fprintf(b, "engine %s up for %s", now.Engine.Kind, cli.Duration(during))
	} else {
		fmt.Fprintf(b, "engine %s AWAY for %s, policy %s: %s", now.Engine.Kind, cli.Duration(during), now.Engine.Policy, cli.Printable(now.Engine.Why))
	}
	if d := now.Daemons; d != nil {
		fmt.Fprintf(b, "; %s seen, shares among %d", cli.Plural(int64(d.Seen), "daemon"), d.Peers)
	}
	if l := now.Latency; l != nil {
		fmt.Fprintf(b, "; half of the decisions within %s, 99 %% within %s", seconds(l.P50), seconds(l.P99))
	}
	if now.Waiting > 0 {
		fmt.Fprintf(b, "; %d wait", now.Waiting)
	}
	b.WriteByte('\n')
	if now.AllShadows {
		fmt.Fprintf(b, "--shadow: %d of %s are shadows and refuse nothing\n", now.Shadows, cli.Plural(int64(now.Rules), "rule"))
	}
	if now.Unready != "" {
		fmt.Fprintf(b, "not ready: %s\n", cli.Printable(now.Unready))
	}
	if r := now.Reload; r != nil && !r.OK {
		problems := cli.Printable(strings.Join(r.Problems, "; "))
		if problems == "" {
			problems = cli.Plural(int64(r.Number), "problem") + ", which a token with the scope admin shows"
		}
		fmt.Fprintf(b, "the rules files have problems, and the previous rules stay in force: %s\n", problems)
	}
	for _, c := range now.Certificates {
		if days := int(clockOf(c.Ends).Sub(at).Hours() / 24); days < 30 {
			fmt.Fprintf(b, "the certificate of --%s ends in %s\n", c.Flag, cli.Plural(int64(days), "day"))
		}
	}
}

// table lists the rules, those that refuse most first.
func (s *screen) table(b *strings.Builder) {
	rules := slices.DeleteFunc(slices.Collect(maps.Values(s.rules)), func(r live.RuleLine) bool { return s.only != "" && r.Rule != s.only })
	slices.SortFunc(rules, func(x, y live.RuleLine) int {
		return cmp.Or(cmp.Compare(y.RefusedRate, x.RefusedRate), cmp.Compare(y.AdmittedRate, x.AdmittedRate), cmp.Compare(y.Refused, x.Refused), cmp.Compare(x.Rule, y.Rule))
	})
	if s.lines < len(rules) {
		rules = rules[:s.lines]
	}
	fmt.Fprintf(b, "\n%12s %12s %14s %14s %9s  %s\n", "admitted/s", "refused/s", "admitted", "refused", "headroom", "rule")
	for _, r := range rules {
		headroom := "-"
		if r.Headroom != nil {
			headroom = fmt.Sprintf("%.0f %%", *r.Headroom*100)
		}
		fmt.Fprintf(b, "%12g %12g %14s %14s %9s  %s\n", max(r.AdmittedRate, r.TakesRate), r.RefusedRate, cli.Thousands(int64(max(r.Admitted, r.Takes))), cli.Thousands(int64(r.Refused)), headroom, ruleName(r.Rule, r.IsShadow))
	}
}

// keys lists keys, unless the caller may see none.
func (s *screen) keys(b *strings.Builder, what string, keys []top.Count) {
	if keys = slices.DeleteFunc(slices.Clone(keys), func(k top.Count) bool { return s.only != "" && k.Rule != s.only }); len(keys) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%12s  rule, key\n", what)
	for _, k := range keys[:min(len(keys), s.lines)] {
		fmt.Fprintf(b, "%12s  %s, %s\n", cli.Thousands(int64(k.Count)), ruleName(k.Rule, k.Shadow), cli.Printable(k.Key))
	}
}

// full lists the fullest keys, unless the caller may see none.
func (s *screen) full(b *strings.Builder) {
	keys := slices.DeleteFunc(slices.Clone(s.fullest), func(k top.Full) bool { return s.only != "" && k.Rule != s.only })
	if len(keys) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%12s  used of the limit, rule, key (sampled)\n", "fullest")
	for _, k := range keys[:min(len(keys), s.lines)] {
		fmt.Fprintf(b, "%10.0f %%  %s of %s, %s, %s\n", k.Share()*100, cli.Thousands(k.Used), cli.Thousands(k.Limit), ruleName(k.Rule, k.Shadow), cli.Printable(k.Key))
	}
}

func clockOf(t live.Time) time.Time { return time.UnixMilli(int64(float64(t) * 1000)) }

func seconds(x float64) time.Duration {
	return time.Duration(x * float64(time.Second)).Round(time.Microsecond)
}
