package rules

import (
	"slices"
	"strings"
)

// meets reports whether a value may fit both patterns. It may be wrong only about two globs, and
// about regular expressions.
func (p *pattern) meets(q *pattern) bool {
	switch {
	case p.kind == present || q.kind == present:
		return true
	case p.kind == expression && q.kind == expression:
		return true
	case p.kind == network || q.kind == network:
		return p.network.Overlaps(q.network)
	case p.kind == exact:
		return q.fits(&value{text: p.head})
	case q.kind == exact:
		return p.fits(&value{text: q.head})
	case p.kind == expression || q.kind == expression:
		return true
	}
	heads := strings.HasPrefix(p.head, q.head) || strings.HasPrefix(q.head, p.head)
	return heads && (strings.HasSuffix(p.tail, q.tail) || strings.HasSuffix(q.tail, p.tail))
}

// meets reports whether a request may match both rules.
func (r *Rule) meets(other *Rule) bool {
	if !r.matchable() || !other.matchable() {
		return false
	}
	for i := range r.match {
		for j := range other.match {
			if r.match[i].slot == other.match[j].slot && !r.match[i].meets(&other.match[j]) {
				return false
			}
		}
	}
	return !r.excludes(other) && !other.excludes(r)
}

// excludes reports whether the rule has an exception for every request that the other one matches.
func (r *Rule) excludes(other *Rule) bool {
	for i := range r.except {
		for j := range other.match {
			if r.except[i].slot == other.match[j].slot && r.except[i].covers(&other.match[j]) {
				return true
			}
		}
	}
	return false
}

// covers reports whether every value that fits the other condition fits this one, too. It may miss that of several patterns
// together.
func (c *condition) covers(other *condition) bool {
	for i := range other.patterns {
		if !slices.ContainsFunc(c.patterns, func(p pattern) bool { return p.covers(&other.patterns[i]) }) {
			return false
		}
	}
	return true
}

// covers reports whether every value that fits q fits p, too. It may miss that of a glob.
func (p *pattern) covers(q *pattern) bool {
	switch {
	case p.kind == present:
		return true
	case q.kind == exact:
		return p.fits(&value{text: q.head})
	case p.kind == network:
		return q.kind == network && p.network.Bits() <= q.network.Bits() && p.network.Contains(q.network.Addr())
	case p.kind == prefix:
		return q.kind != expression && strings.HasPrefix(q.head, p.head)
	}
	return p.source == q.source
}

func (c *condition) meets(other *condition) bool {
	for i := range c.patterns {
		for j := range other.patterns {
			if c.patterns[i].meets(&other.patterns[j]) {
				return true
			}
		}
	}
	return false
}
