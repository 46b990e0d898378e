package rules

import (
	"slices"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/plain"
)

// checkPool notes fields that a rule cannot have beside match: otherwise.
func (d *draft) checkPool() {
	for _, kind := range []struct {
		name string
		is   bool
	}{{"deny", d.Deny}, {"unlimited", d.Unlimited}} {
		if kind.is {
			d.given[kind.name].fail("excludes match: otherwise: only a limit can stand in for another")
		}
	}
	for field, why := range map[string]string{
		"except":    "belongs to patterns of requests, and the rule has match: otherwise",
		"shadow":    "has no meaning beside match: otherwise: a shadow stands in for nothing; make shadows of the rules that name this one in otherwise",
		"candidate": "is decided on every request, and a rule with match: otherwise on some; try other limits with weir replay",
		"budget":    "has no meaning beside match: otherwise: let the otherwise of several rules name this one, and they share its budget",
		"message":   "is for people whose request the rule refuses, and a refusal has the message of the first rule of the chain: move it there",
		"replaces":  "is of requests that find a pushed limit, and the rule has match: otherwise",
	} {
		if n, given := d.given[field]; given && (field != "shadow" || d.Shadow) {
			n.fail("%s", why)
		}
	}
	d.refuseAfter("match: otherwise")
}

// checkFloor notes fields that a rule cannot have beside otherwise.
func (d *draft) checkFloor() {
	if n, given := d.given["candidate"]; given {
		n.fail("is decided alone, without the rule of otherwise; try other limits with weir replay")
	}
	d.refuseAfter("otherwise")
}

// refuseAfter notes a cost that is charged after the work, when nothing is refused any more.
func (d *draft) refuseAfter(field string) {
	if n, given := d.given["charge"]; given && d.After {
		n.fail("is after the work, when nothing is refused any more, so %s would have no effect; charge before it, or remove %s", field, field)
	}
}

// checkOtherwise finds the rule that each otherwise names. It notes those that cannot stand in, circles, and chains of more than maxLinks.
func (l *loader) checkOtherwise() {
	drafts := make(map[*Rule]*draft, len(l.sound))
	for _, d := range l.sound {
		drafts[d.Rule] = d
	}
	c := chains{loader: l, next: map[*draft]*draft{}, links: map[*draft]int{}}
	for _, d := range l.sound {
		d.checkStandsIn()
		if d.Otherwise != "" {
			c.next[d] = drafts[l.poolOf(d)]
		}
	}
	for _, d := range l.sound {
		c.count(d)
	}
	if len(*l.problems) > 0 {
		return
	}
	for d := range c.next {
		for p := c.next[d]; p != nil; p = c.next[p] {
			d.chain = append(d.chain, p.Rule)
		}
		d.blocks = d.blocking()
	}
	markUntold(l.config.Rules)
}

// checkStandsIn notes limits that a rule of a chain cannot have.
func (d *draft) checkStandsIn() {
	n, field := d.given["otherwise"], "otherwise"
	if d.Pool {
		n, field = d.given["match"], "match: otherwise"
	}
	switch {
	case n.Node == nil:
	case d.standsAlone():
		n.fail("is beside a limit that stands alone, and the rules of a chain are decided together with others; use another limit, or remove %s", field)
	case d.bans():
		n.fail("is beside a ban, and a banned key gets nothing from another rule; give the ban, and the limit that it guards, a rule of their own")
	}
}

// bans reports whether a limit of the rule is a ban.
func (r *Rule) bans() bool {
	for _, limits := range r.limits() {
		for _, limit := range limits.Limits() {
			if weir.Describe(limit).Bans {
				return true
			}
		}
	}
	return false
}

// poolOf returns the rule that otherwise names, or nil after a problem.
func (l *loader) poolOf(d *draft) *Rule {
	n, pool := d.given["otherwise"], l.config.names[d.Otherwise]
	switch {
	case pool == nil:
		n.failMeant(l.pool(d.Otherwise), "is %s, and no rule has that name; want that of a rule with match: otherwise", plain.Quoted(d.Otherwise))
		return nil
	case !pool.Pool:
		n.fail("is %s, which does not have match: otherwise; name a rule that has", plain.Quoted(d.Otherwise))
		return nil
	}
	return pool
}

// maxMeant bounds the names that a wrong one is compared with.
const maxMeant = 100

// pool returns the name of a pool that was probably meant, or "".
func (l *loader) pool(name string) string {
	if len(*l.problems) >= maxShown {
		return ""
	}
	var names []string
	for _, r := range l.config.Rules {
		if r.Pool && r.Name != "" && len(names) < maxMeant {
			names = append(names, r.Name)
		}
	}
	return nearest(name, names)
}

// chains are the rules by the names in their otherwise.
type chains struct {
	*loader
	next  map[*draft]*draft // of rules with otherwise; nil for one with a problem
	links map[*draft]int    // behind a rule; endless if those go round in a circle
}

// Numbers of links.
const (
	endless = -1
	passing = -2 // while count passes the rule
)

// count counts the links behind a rule, and notes a circle and a chain that is too long, each once. All walks together pass each link once.
func (c *chains) count(from *draft) {
	path, at := []*draft{}, from
	for at != nil {
		if _, passed := c.links[at]; passed {
			break
		}
		c.links[at] = passing
		path, at = append(path, at), c.next[at]
	}
	behind := c.links[at]
	if behind == passing {
		c.noteCircle(path[slices.Index(path, at):])
		behind = endless
	}
	for _, d := range slices.Backward(path) {
		switch {
		case c.next[d] == nil:
			behind = 0
		case behind != endless:
			behind++
		}
		if c.links[d] = behind; behind == maxLinks+1 {
			d.given["otherwise"].fail("makes a chain of %d rules behind this one, want at most %d", behind, maxLinks)
		}
	}
}

// maxCircle bounds the names of a circle that are shown.
const maxCircle = 8

// noteCircle notes rules that each name the next one in otherwise, and the last one the first.
func (c *chains) noteCircle(circle []*draft) {
	var names []string
	for _, d := range circle[:min(len(circle), maxCircle)] {
		names = append(names, d.Name)
	}
	if len(circle) > maxCircle {
		names = append(names, "…")
	}
	names = append(names, circle[0].Name)
	circle[0].given["otherwise"].fail("goes round in a circle: %s; remove otherwise from one of them", strings.Join(names, " → "))
}
