package nginx

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// place is a part of the requests with limits of its own.
type place struct {
	hosts   []string // or none for all
	others  []string // hosts that it excludes
	paths   []string // or none for all
	rank    rank
	without []string // paths that it excludes
	dry     map[string]bool
	uses    []*directive // limit_req and limit_conn in force
}

// rank is the order in which nginx tries locations of one kind.
type rank int

const (
	byPrefix     rank = iota // the longest, unless an expression fits
	byExpression             // the first that fits
	first                    // = and ^~
)

// places visits http, its servers and their locations.
func (c *converter) places(http []*directive) {
	top := place{dry: map[string]bool{}}
	c.read(&top, http)
	var servers []*directive
	var named []string
	for _, d := range http {
		if d.name() == "server" {
			servers, named = append(servers, d), append(named, c.hostsOf(d)...)
		}
	}
	defaults := defaultServers(servers)
	for i, s := range servers {
		at := top.within()
		if len(servers) > 1 {
			at.hosts, at.others = c.hostsThatReach(s, defaults[i], named)
		}
		c.read(&at, s.block)
		c.locations(at, s.block)
	}
	if len(servers) == 0 {
		c.add(top)
	}
}

// within returns a place inside.
func (p *place) within() place {
	q := *p
	q.dry = maps.Clone(p.dry)
	q.without = nil
	return q
}

// read takes the limits of a block, which replace those around it, and notes what has no counterpart.
func (c *converter) read(p *place, block []*directive) {
	own := map[string][]*directive{}
	for _, d := range block {
		switch d.name() {
		case "limit_req", "limit_conn":
			own[d.name()] = append(own[d.name()], d)
		case "limit_req_dry_run", "limit_conn_dry_run":
			p.dry[strings.TrimSuffix(d.name(), "_dry_run")] = d.arg(0) == "on"
		case "limit_req_status", "limit_conn_status":
			c.note(d, "%s: not imported: weir serve --check-status, or the gateway, chooses the status", d)
		case "limit_req_log_level", "limit_conn_log_level", "limit_rate", "limit_rate_after", "limit_zone":
			c.note(d, "%s: not imported: rules limit requests", d)
		case "if", "limit_except":
			for _, inner := range d.block {
				if inner.name() == "limit_req" || inner.name() == "limit_conn" {
					c.note(inner, "%s: not imported: it stands in %s", inner, d)
				}
			}
		}
	}
	for kind, uses := range own {
		p.uses = slices.DeleteFunc(slices.Clone(p.uses), func(d *directive) bool { return d.name() == kind })
		p.uses = append(p.uses, uses...)
	}
	slices.SortStableFunc(p.uses, func(a, b *directive) int { return strings.Compare(b.name(), a.name()) })
}

// locations adds a server, and those of its locations that decide otherwise.
func (c *converter) locations(server place, block []*directive) {
	all := c.flat(server, block)
	var differ []place
	for _, l := range all {
		if !l.like(server) {
			differ = append(differ, l)
			server.without = append(server.without, l.paths...)
		}
	}
	c.add(server)
	for i, l := range all {
		if l.like(server) && !slices.ContainsFunc(differ, func(other place) bool { return inside(l.paths, other.paths) }) {
			continue // it is decided with the server
		}
		for j, other := range all {
			if i != j && other.before(l, j < i) {
				l.without = append(l.without, minus(other.paths, l.without)...)
			}
		}
		c.add(l)
	}
}

// before reports whether nginx chooses p for requests that fit both locations.
func (p *place) before(q place, earlier bool) bool {
	switch {
	case p.rank == q.rank && p.rank == byExpression:
		return earlier
	case p.rank == byExpression:
		return q.rank == byPrefix
	case q.rank == byExpression:
		return p.rank == first
	}
	return inside(p.paths, q.paths)
}

// flat returns the locations of a block, and those within them.
func (c *converter) flat(around place, block []*directive) (all []place) {
	for _, d := range block {
		if d.name() != "location" {
			continue
		}
		paths, rank, ok := pathsOf(d)
		if !ok {
			c.note(d, "%s: its requests are decided like those around it: rules have no regular expressions or named locations", d)
			continue
		}
		at := around.within()
		at.paths, at.rank = paths, rank
		c.read(&at, d.block)
		all = append(append(all, at), c.flat(at, d.block)...)
	}
	return all
}

// like reports whether two places have the same limits.
func (p *place) like(q place) bool { return slices.Equal(p.uses, q.uses) && maps.Equal(p.dry, q.dry) }

var (
	oneEnding   = regexp.MustCompile(`^\\\.(\w+)\$$`)
	manyEndings = regexp.MustCompile(`^\\\.(?:\?:)?\(([\w|]+)\)\$$`)
	beginning   = regexp.MustCompile(`^\^(/[\w/-]*)$`)
)

// pathsOf returns the patterns of a location. It knows the regular expressions that stand for endings or a beginning.
func pathsOf(d *directive) (paths []string, r rank, ok bool) {
	switch mark, text := d.arg(0), d.arg(1); {
	case len(d.words) == 2 && strings.HasPrefix(mark, "/"):
		return []string{escaped(mark) + "*"}, byPrefix, true
	case mark == "=":
		return []string{escaped(text)}, first, true
	case mark == "^~":
		return []string{escaped(text) + "*"}, first, true
	case mark == "~" || mark == "~*":
		if found := oneEnding.FindStringSubmatch(text); found != nil {
			return []string{"*." + found[1]}, byExpression, true
		}
		if found := manyEndings.FindStringSubmatch(text); found != nil {
			for ending := range strings.SplitSeq(found[1], "|") {
				paths = append(paths, "*."+ending)
			}
			return paths, byExpression, true
		}
		if found := beginning.FindStringSubmatch(text); found != nil {
			return []string{found[1] + "*"}, byExpression, true
		}
	}
	return nil, 0, false
}

func escaped(path string) string { return strings.NewReplacer(`\`, `\\`, "*", `\*`).Replace(path) }
