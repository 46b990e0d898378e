package nginx

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/imported"
)

// made is a rule, and the place that it is of.
type made struct {
	zone  *zone
	limit weir.Limit
	dry   bool
	place place
}

// add makes the rules of a place, or adds it to those of another place. The same zone with the same limit counts together, as
// in nginx.
func (c *converter) add(p place) {
	if slices.Contains(p.without, "/*") && len(p.paths) == 0 {
		return // its locations decide all
	}
	for _, use := range p.uses {
		z := c.zones[useOf(use)]
		if z == nil {
			c.note(use, "%s: not imported: no zone has this name", use)
			continue
		}
		if z.bad {
			continue // its zone has a note
		}
		limit, err := limitOf(z, use)
		if err != nil {
			c.note(use, "%s: not imported: %v", use, err)
			continue
		}
		c.join(made{z, limit, p.dry[use.name()], p})
	}
}

// useOf returns the name of the zone of limit_req or limit_conn.
func useOf(use *directive) string {
	if use.name() == "limit_conn" {
		return use.arg(0)
	}
	return zoneName(use)
}

// join adds a place to a rule of the same zone and limit, if paths alone tell them apart.
func (c *converter) join(m made) {
	for i := range c.made {
		old := &c.made[i]
		if old.zone != m.zone || old.limit != m.limit || old.dry != m.dry || !slices.Equal(old.place.hosts, m.place.hosts) || !slices.Equal(old.place.others, m.place.others) {
			continue
		}
		p, q := &old.place, &m.place
		without := minus(p.without, q.paths)
		p.without = append(without, minus(minus(q.without, p.paths), without)...)
		if len(p.paths) == 0 || len(q.paths) == 0 {
			p.paths = nil
		} else {
			p.paths = append(outside(p.paths, q.paths), outside(q.paths, p.paths)...)
		}
		return
	}
	c.made = append(c.made, m)
}

// outside returns the paths that others do not include.
func outside(paths, others []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return inside([]string{p}, others) })
}

func minus(all, gone []string) (left []string) {
	for _, one := range all {
		if !slices.Contains(gone, one) {
			left = append(left, one)
		}
	}
	return left
}

// limitOf returns the limit of a zone in a place.
func limitOf(z *zone, use *directive) (weir.Limit, error) {
	if use.name() == "limit_conn" {
		n, err := strconv.ParseInt(use.arg(1), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number of connections", use.arg(1))
		}
		return weir.Concurrency{Slots: n}, nil
	}
	read, err := weir.ParseNginx(z.String() + "; " + use.String() + ";")
	if err != nil {
		return nil, err
	}
	bucket := read.LeakyBucket()
	if bucket.NoDelay == bucket.Queue {
		return weir.TokenBucket{Rate: bucket.Rate, Burst: bucket.Queue + 1}, nil
	}
	return bucket, nil
}

// write makes the rules of a file.
func (c *converter) write() {
	names := map[*zone]int{}
	for _, m := range c.made {
		name := strings.Map(plainName, zoneName(m.zone.directive))
		if names[m.zone]++; names[m.zone] > 1 {
			c.note(m.zone.directive, "zone %s has different limits, each of which counts alone", name)
			name += "-" + strconv.Itoa(names[m.zone])
		}
		r := imported.Rule{Name: name, Match: "any", Key: m.zone.key.attributes, Limit: m.limit.String(), Shadow: m.dry, Except: imported.Patterns{}}
		match := imported.Patterns{}
		for attribute, patterns := range m.zone.key.match {
			match[attribute] = patterns
		}
		for attribute, patterns := range m.zone.key.except {
			r.Except[attribute] = patterns
		}
		add := func(to imported.Patterns, attribute string, patterns []string) {
			if len(patterns) > 0 {
				to[attribute] = append(slices.Clone(to[attribute]), patterns...)
			}
		}
		add(match, "host", m.place.hosts)
		add(r.Except, "host", m.place.others)
		if !slices.Equal(m.place.paths, []string{"/*"}) {
			add(match, "path", m.place.paths)
		}
		add(r.Except, "path", m.place.without)
		if len(match) > 0 {
			r.Match = match
		}
		if m.zone.key.skips {
			r.Missing = "skip"
		}
		if weir.Describe(m.limit).Held {
			c.note(m.zone.directive, "rule %s counts slots, which nginx cannot release: delete the rule and keep limit_conn, or ask /v1/reserve", name)
		}
		c.Rules = append(c.Rules, r)
	}
}

// plainName replaces what the name of a rule cannot have.
func plainName(r rune) rune {
	if strings.ContainsRune("-_.:/", r) || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
		return r
	}
	return '-'
}

func (c *converter) note(d *directive, format string, args ...any) {
	c.Notes = append(c.Notes, imported.Note{File: d.file, Line: d.line, Text: fmt.Sprintf(format, args...)})
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

// inside reports whether all paths are among others.
func inside(paths, others []string) bool {
	for _, p := range paths {
		if !slices.ContainsFunc(others, func(o string) bool {
			head, prefix := strings.CutSuffix(o, "*")
			return prefix && strings.HasPrefix(p, head) && p != o
		}) {
			return false
		}
	}
	return true
}
