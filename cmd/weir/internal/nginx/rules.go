package nginx

import (
	"slices"
	"strconv"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/imported"
)

// result writes the rules, and names what is left out.
func (c *converter) result() (*imported.Result, error) {
	for _, z := range c.zones {
		z.keys, z.partial, z.fault = c.keysOf(z.arg(0))
	}
	made := make([][]imported.Rule, len(c.zones))
	for i, z := range c.zones {
		var err error
		if made[i], err = c.atOnce(z); err != nil {
			for _, d := range c.uses(z) {
				c.note(d, "%s: not imported: zone %s: %v", d, z.name, err)
			}
		} else if len(made[i]) > 0 {
			c.noteDifferences(z, made[i])
		}
	}
	for i, z := range c.zones {
		if len(made[i]) > 0 {
			c.delay(z, made, i)
		}
	}
	c.noteChecks(func(z *zone) bool { return len(made[slices.Index(c.zones, z)]) > 0 })
	c.Rules = slices.Concat(made...)
	return c.Result, c.Check()
}

// atOnce returns the rules of a zone, without its delays, or says why it has none.
func (c *converter) atOnce(z *zone) ([]imported.Rule, error) {
	if err := c.unfit(z); err != nil {
		return nil, err
	}
	made, err := c.rulesOf(z, false)
	if err == nil {
		err = (&imported.Result{Rules: made}).Check()
	}
	if err != nil {
		return nil, err
	}
	return made, nil
}

// delay lets the rules of a zone delay requests as nginx does, unless another limit may decide these, too.
func (c *converter) delay(z *zone, made [][]imported.Rule, i int) {
	delaying := slices.DeleteFunc(c.uses(z), func(d *directive) bool {
		l, _ := z.limitOf(d)
		return l.NoDelay == l.Queue
	})
	if len(delaying) == 0 {
		return
	}
	before := made[i]
	made[i], _ = c.rulesOf(z, true)
	if (&imported.Result{Rules: slices.Concat(made...)}).Check() == nil {
		return
	}
	made[i] = before
	for _, d := range delaying {
		c.note(d, "%s: requests that nginx delays are admitted at once: another limit may decide them, too, and limits that delay decide alone", d)
	}
}

// noteDifferences notes how an imported zone differs from nginx.
func (c *converter) noteDifferences(z *zone, made []imported.Rule) {
	if c.ipv6 && slices.ContainsFunc(made, func(r imported.Rule) bool { return slices.Contains(r.Key, "client") }) {
		c.note(z.directive, "zone %s: IPv6 addresses of one /64 network share a budget; nginx counts each address", z.name)
	}
	count, perMinute := strings.CutSuffix(z.rate, "r/m")
	if n, err := strconv.ParseInt(count, 10, 64); err == nil && perMinute && n%3 != 0 {
		c.note(z.directive, "zone %s: the rule admits %d a minute; nginx rounds the rate down to %.2f", z.name, n, float64(n*1000/60)*60/1000)
	}
}

// limitIn is a limit of a zone, in the scopes where its key has a text.
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
				r := imported.Rule{Name: c.ruleName(z, len(all)), Key: k.attributes, Limit: limitText(l.limit, delay), Shadow: c.dry(z)}
				r.Budget = owners[l.text]
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
		for _, p := range s.scopes {
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

// limitsIn returns the different limits of a zone, in the order of their keys and scopes.
func (c *converter) limitsIn(z *zone) (all []limitIn) {
	for _, k := range z.keys {
		for _, s := range c.servers {
			for _, p := range s.scopes {
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
