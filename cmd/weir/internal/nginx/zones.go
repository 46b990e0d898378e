package nginx

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weirflow/weir"
)

// zone is a limit_req_zone.
type zone struct {
	*directive
	name    string
	rate    string // 5r/s
	keys    []counted
	partial bool  // some requests have no key
	fault   error // why the key has no counterpart
}

func newZone(d *directive) *zone {
	z := &zone{directive: d, name: zoneName(d)}
	for _, word := range d.words {
		if rate, ok := strings.CutPrefix(word, "rate="); ok {
			z.rate = rate
		}
	}
	return z
}

// zoneName returns the name in zone=NAME:SIZE.
func zoneName(d *directive) string {
	for _, word := range d.words {
		if rest, ok := strings.CutPrefix(word, "zone="); ok {
			name, _, _ := strings.Cut(rest, ":")
			return name
		}
	}
	return ""
}

func (c *converter) zone(name string) *zone {
	for _, z := range c.zones {
		if z.name == name {
			return z
		}
	}
	return nil
}

// use returns the limit_req of the zone that is in force in a scope, or nil.
func (z *zone) use(p scope) *directive {
	for _, d := range p.limits() {
		if zoneName(d) == z.name {
			return d
		}
	}
	return nil
}

// named reports whether the settings of a scope name the zone, even if no request from outside reaches the scope.
func (z *zone) named(p scope) bool {
	return slices.ContainsFunc(p.settings["limit_req"], func(d *directive) bool { return zoneName(d) == z.name })
}

// uses returns the limit_req of the zone in all scopes, each once.
func (c *converter) uses(z *zone) (all []*directive) {
	for _, s := range c.servers {
		for _, p := range s.scopes {
			for _, d := range p.settings["limit_req"] {
				if zoneName(d) == z.name && !slices.Contains(all, d) {
					all = append(all, d)
				}
			}
		}
	}
	return all
}

// limitOf returns the limit of a zone in a scope.
func (z *zone) limitOf(use *directive) (weir.LeakyBucket, error) {
	text := "limit_req_zone $key zone=zone:1m rate=" + z.rate + "; limit_req zone=zone"
	for _, word := range use.words[1:] {
		if !strings.HasPrefix(word, "zone=") {
			text += " " + word
		}
	}
	read, err := weir.ParseNginx(text + ";")
	if err != nil {
		return weir.LeakyBucket{}, err
	}
	return read.LeakyBucket(), nil
}

// unfit says why rules cannot decide as the zone does, or returns nil.
func (c *converter) unfit(z *zone) error {
	if z.fault != nil {
		return z.fault
	}
	if len(z.keys) == 0 {
		return errors.New("its key is empty, so nginx does not count by it")
	}
	for _, d := range c.uses(z) {
		if _, err := z.limitOf(d); err != nil {
			return err
		}
	}
	dry := map[bool]bool{}
	for _, s := range c.servers {
		if err := c.unfitIn(z, s, dry); err != nil {
			return err
		}
	}
	if len(dry) > 1 {
		return errors.New("a dry run of the zone counts together with its other uses, and rules of one budget are shadows together, or enforced")
	}
	return nil
}

// unfitIn says why rules cannot decide as the zone does in a server, and notes whether its uses are dry runs.
func (c *converter) unfitIn(z *zone, s *server, dry map[bool]bool) error {
	used := false
	for _, p := range s.scopes {
		if z.use(p) == nil {
			used = used || z.named(p)
			continue
		}
		used, dry[p.dry()] = true, true
		for _, k := range z.keys {
			if k.literal {
				continue
			}
			read, err := keyOf(k.text, s.name)
			if err != nil {
				return err
			}
			found := slices.Concat(rewrites(s.block), rewrites(p.block))
			if slices.Contains(read.attributes, "uri") && len(found) > 0 {
				return fmt.Errorf("%s (line %d) changes $uri, which it counts by", found[0], found[0].line)
			}
		}
	}
	if !used {
		return nil
	}
	for _, p := range c.ports {
		for _, a := range s.addresses {
			if a.port == p.number && p.odd != "" {
				return errors.New(p.odd)
			}
		}
	}
	for _, why := range []string{s.odd, s.locations.odd, s.moved(z.named, func(p scope) bool { return c.passes(s, p) })} {
		if why != "" {
			return errors.New(why)
		}
	}
	return nil
}

// passes reports whether some requests that come to a scope of a server are counted by no limit of it.
func (c *converter) passes(s *server, p scope) bool {
	return p.answers || returns(p.block) || !slices.ContainsFunc(p.limits(), func(d *directive) bool {
		z := c.zone(zoneName(d))
		return z != nil && z.countsAll(s)
	})
}

// countsAll reports whether no request of a server has an empty key in the zone.
func (z *zone) countsAll(s *server) bool {
	if z.fault != nil || z.partial {
		return false
	}
	for _, k := range z.keys {
		if k.literal {
			continue
		}
		if read, err := keyOf(k.text, s.name); err != nil || read.header != "" || read.text == "" {
			return false
		}
	}
	return true
}
