package nginx

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/imported"
)

// result writes the rules. A zone delays requests if no other limit may decide them; otherwise it admits them at once.
func (c *converter) result() (*imported.Result, error) {
	made := make([][]imported.Rule, len(c.zones))
	for i, z := range c.zones {
		err := c.unfit(z)
		if err == nil {
			made[i], err = c.rulesOf(z, false)
		}
		if err == nil {
			err = (&imported.Result{Rules: made[i]}).Check()
		}
		if err != nil {
			made[i] = nil
			for _, d := range c.uses(z) {
				c.note(d, "%s: not imported: zone %s: %v", d, z.name, err)
			}
			continue
		}
		c.noteDifferences(z, made[i])
	}
	for i, z := range c.zones {
		if made[i] == nil || !c.delaying(z) {
			continue
		}
		at := made[i]
		made[i], _ = c.rulesOf(z, true)
		if (&imported.Result{Rules: slices.Concat(made...)}).Check() != nil {
			made[i] = at
			for _, d := range c.uses(z) {
				if l, _ := z.limitOf(d); delays(l) {
					c.note(d, "%s: requests that nginx delays are admitted at once: another limit may decide them, too, and limits that delay decide alone", d)
				}
			}
		}
	}
	c.Rules = slices.Concat(made...)
	return c.Result, c.Check()
}

func (c *converter) delaying(z *zone) bool {
	return slices.ContainsFunc(c.uses(z), func(d *directive) bool {
		l, err := z.limitOf(d)
		return err == nil && delays(l)
	})
}

// noteDifferences notes what is otherwise than in nginx although the zone is imported.
func (c *converter) noteDifferences(z *zone, made []imported.Rule) {
	if len(made) == 0 {
		return
	}
	if c.ipv6 && slices.ContainsFunc(made, func(r imported.Rule) bool { return slices.Contains(r.Key, "client") }) {
		c.note(z.directive, "zone %s: an IPv6 address counts as its /64 network, and in nginx alone", z.name)
	}
	count, perMinute := strings.CutSuffix(z.rate, "r/m")
	if n, err := strconv.ParseInt(count, 10, 64); err == nil && perMinute && n%3 != 0 {
		c.note(z.directive, "zone %s: the rule admits %d a minute, and nginx %.2f, because it rounds down", z.name, n, float64(n*1000/60)*60/1000)
	}
}

// where is a part of the requests: at some ports, or all if there is none, for some hosts and paths.
type where struct {
	ports []string
	host  guard
	path  guard
}

// limitIn is a limit of a zone, in the places where its key has a text.
type limitIn struct {
	zone  *zone
	key   counted
	text  string
	limit weir.LeakyBucket
}

// rulesOf returns the rules of a zone. Those whose keys have the same text share a budget.
func (c *converter) rulesOf(z *zone, delay bool) (all []imported.Rule, err error) {
	owners := map[string]string{}
	for _, l := range c.limitsIn(z) {
		k := key{text: l.text}
		if !l.key.literal {
			if k, err = keyOf(l.key.text, ""); err != nil {
				return nil, err
			}
		}
		guards := l.key.guards
		if guards == nil {
			guards = []guard{{}}
		}
		for _, w := range c.where(l) {
			for _, g := range guards {
				r := imported.Rule{Name: c.ruleName(z, len(all)), Key: k.attributes, Limit: limitText(l.limit, delay), Shadow: c.dry(z), Budget: owners[l.text]}
				if r.Match, r.Except, err = conditions(w, l.key.attribute, g, k.header); err != nil {
					return nil, err
				}
				if owners[l.text] == "" {
					owners[l.text] = r.Name
				}
				all = append(all, r)
			}
		}
	}
	return all, nil
}

func limitText(l weir.LeakyBucket, delay bool) string {
	if delay {
		return l.String()
	}
	return weir.TokenBucket{Rate: l.Rate, Burst: l.Queue + 1}.String()
}

// dry reports whether the zone is used in dry runs.
func (c *converter) dry(z *zone) bool {
	for _, s := range c.servers {
		for _, p := range s.places {
			if z.use(p) != nil {
				return p.dry()
			}
		}
	}
	return false
}

// ruleName returns the name of a zone, with a number for further rules.
func (c *converter) ruleName(z *zone, i int) string {
	name := strings.Map(plainName, z.name)
	if i == 0 && c.zoneOf(name) == z {
		return name
	}
	for n := i + 1; ; n++ {
		if numbered := name + "-" + strconv.Itoa(n); c.zoneOf(numbered) == nil {
			return numbered
		}
	}
}

// zoneOf returns the first zone whose name becomes a text.
func (c *converter) zoneOf(plain string) *zone {
	for _, z := range c.zones {
		if strings.Map(plainName, z.name) == plain {
			return z
		}
	}
	return nil
}

// plainName replaces what the name of a rule cannot have.
func plainName(r rune) rune {
	if strings.ContainsRune("-_.:/", r) || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
		return r
	}
	return '-'
}

// limitsIn returns the different limits of a zone, in the order of their keys and places.
func (c *converter) limitsIn(z *zone) (all []limitIn) {
	for _, k := range z.keys {
		for _, s := range c.servers {
			for _, p := range s.places {
				if use := z.use(p); use != nil && k.in(s) != "" { // nginx does not count an empty key
					limit, _ := z.limitOf(use)
					l := limitIn{z, k, k.in(s), limit}
					if !slices.ContainsFunc(all, func(m limitIn) bool { return l.text == m.text && l.limit == m.limit && k.text == m.key.text }) {
						all = append(all, l)
					}
				}
			}
		}
	}
	return all
}

// in returns the text of a key in a server.
func (k counted) in(s *server) string {
	if k.literal {
		return k.text
	}
	read, _ := keyOf(k.text, s.name)
	return read.text
}

// where returns the requests that a limit decides, in parts of which no two have a request in common.
func (c *converter) where(l limitIn) (all []where) {
	paths := make([][]guard, len(c.servers))
	texts := make([]string, len(c.servers)) // which tell paths apart
	for i, s := range c.servers {
		if l.key.in(s) != l.text {
			continue
		}
		paths[i] = s.paths.guards(func(target string) bool {
			n, _ := strconv.Atoi(target)
			use := l.zone.use(s.places[n])
			if use == nil {
				return false
			}
			limit, _ := l.zone.limitOf(use)
			return limit == l.limit
		})
		texts[i] = textOf(paths[i])
	}
	for i, path := range paths {
		if len(path) == 0 || slices.Index(texts, texts[i]) < i {
			continue
		}
		for _, w := range c.hosts(func(server int) bool { return texts[server] == texts[i] }) {
			for _, w.path = range path {
				all = append(all, w)
			}
		}
	}
	return all
}

// textOf tells lists of guards apart.
func textOf(guards []guard) (text string) {
	for _, g := range guards {
		text += "|" + g.text()
	}
	return text
}

// hosts returns the ports and hosts of servers.
func (c *converter) hosts(wanted func(server int) bool) (all []where) {
	for i, p := range c.ports {
		guards := p.guards(wanted)
		text := textOf(guards)
		var numbers []string
		for j, q := range c.ports {
			if textOf(q.guards(wanted)) == text {
				if j < i {
					guards = nil // done with port j
				}
				numbers = append(numbers, q.number)
			}
		}
		if len(numbers) == len(c.ports) {
			numbers = nil
		}
		for _, g := range guards {
			all = append(all, where{ports: numbers, host: g})
		}
	}
	return all
}

func (p port) guards(wanted func(server int) bool) []guard {
	return p.hosts.guards(func(target string) bool {
		n, _ := strconv.Atoi(target)
		return wanted(n)
	})
}

// conditions returns the conditions of a rule: where it decides, by which requests have its key.
func conditions(w where, attribute string, g guard, header string) (match any, except imported.Patterns, err error) {
	matched, except := imported.Patterns{}, imported.Patterns{}
	for _, of := range []struct {
		attribute     string
		match, except []string
	}{
		{"port", w.ports, nil},
		{"host", sources(w.host.match), sources(w.host.except)},
		{"uri", sources(w.path.match), sources(w.path.except)},
		{attribute, sources(g.match), sources(g.except)},
	} {
		if len(of.match) > 0 && matched[of.attribute] != nil {
			return nil, nil, fmt.Errorf("a rule cannot ask for the %s twice, once for the place and once for the key", of.attribute)
		}
		if len(of.match) > 0 {
			matched[of.attribute] = of.match
		}
		if len(of.except) > 0 {
			except[of.attribute] = append(except[of.attribute], of.except...)
		}
	}
	if header != "" && matched[header] == nil {
		matched[header] = []string{"~."} // nginx does not count an empty one
	}
	if len(matched) == 0 {
		return "any", except, nil
	}
	return matched, except, nil
}
