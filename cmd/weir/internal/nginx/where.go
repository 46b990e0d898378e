package nginx

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/weirflow/weir/cmd/weir/internal/imported"
)

// where is a part of the requests: at some ports, or all if there is none, for some hosts and paths.
type where struct {
	ports []string
	host  guard
	path  guard
}

// where returns the requests that a limit decides, in parts without a request in common.
func (c *converter) where(l limitIn) (all []where) {
	paths := make([][]guard, len(c.servers))
	texts := make([]string, len(c.servers)) // which tell paths apart
	for i, s := range c.servers {
		if l.key.in(s) != l.text {
			continue
		}
		paths[i] = s.paths.guards(func(target string) bool {
			n, _ := strconv.Atoi(target)
			use := l.zone.use(s.scopes[n])
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

// conditions returns the conditions of a rule, by where it decides and which requests have its key.
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
