package rules

import (
	"cmp"
	"net/netip"
	"slices"
	"sort"
	"strings"
)

// match appends the places of the rules that match, in order.
func (c *Config) match(values []value, found []int32) []int32 {
	found = c.index.candidates(values, found)
	matched := found[:0]
	for _, at := range found {
		if c.Rules[at].matches(values) {
			matched = append(matched, at)
		}
	}
	slices.Sort(matched)
	return slices.Compact(matched)
}

func (r *Rule) matches(values []value) bool {
	for i := range r.match {
		if !r.match[i].fits(&values[r.match[i].slot]) {
			return false
		}
	}
	return !slices.ContainsFunc(r.except, func(c condition) bool { return c.fits(&values[c.slot]) })
}

// condition demands of one attribute that one of the patterns fits.
type condition struct {
	slot     int
	patterns []pattern
}

func (c *condition) fits(v *value) bool {
	if !v.present {
		return false
	}
	for i := range c.patterns {
		if c.patterns[i].fits(v) {
			return true
		}
	}
	return false
}

// fits reports whether a value that is present fits the pattern.
func (p *pattern) fits(v *value) bool {
	switch p.kind {
	case exact:
		return v.text == p.head
	case prefix:
		return strings.HasPrefix(v.text, p.head)
	case glob:
		return p.fitsGlob(v.text)
	case network:
		return p.network.Contains(v.address)
	case expression:
		return p.fitsExpression(v.text)
	}
	return true
}

// fitsGlob finds each text between stars at its first place, which leaves most for the later ones.
func (p *pattern) fitsGlob(text string) bool {
	rest, ok := strings.CutPrefix(text, p.head)
	if !ok {
		return false
	}
	if rest, ok = strings.CutSuffix(rest, p.tail); !ok {
		return false
	}
	for _, part := range p.middle {
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return true
}

// index finds the rules that a request may match. Each rule stands in it once, under the attribute that the fewest
// rules share, so a lookup takes as long with 10,000 rules as with ten unless many rules match.
type index struct {
	always []int32 // the rules that no attribute selects
	slots  []slotIndex
}

// slotIndex holds the rules under one attribute: by value, by its beginning, by its end, and by network.
type slotIndex struct {
	exact    map[string][]int32
	prefixes []branch // in order of their text
	ends     map[string][]int32
	longs    []int // the lengths of ends
	networks map[netip.Prefix][]int32
	lengths  [2][]int // of the networks of IPv4 and IPv6
}

// branch is a prefix. Its parent is the longest other prefix that it begins with, or -1.
type branch struct {
	text   string
	parent int32
	rules  []int32
}

// anchor is the entry of a pattern in the index.
type anchor struct {
	slot    int
	kind    kind
	text    string
	network netip.Prefix
}

// anchorOf returns the place of a pattern, or false if the pattern selects nothing.
func anchorOf(slot int, p *pattern) (a anchor, ok bool) {
	switch {
	case p.kind == exact, p.kind == network:
		return anchor{slot, p.kind, p.head, p.network}, true
	case p.kind == expression:
		return anchor{}, false
	case p.head != "":
		return anchor{slot: slot, kind: prefix, text: p.head}, true
	case p.tail != "":
		return anchor{slot: slot, kind: glob, text: p.tail}, true
	}
	return anchor{}, false
}

func newIndex(rules []*Rule, slots int) index {
	x := index{slots: make([]slotIndex, slots)}
	for i := range x.slots {
		x.slots[i] = slotIndex{exact: map[string][]int32{}, ends: map[string][]int32{}, networks: map[netip.Prefix][]int32{}}
	}
	shared := map[anchor]int{}
	for _, r := range rules {
		for i := range r.match {
			for _, p := range r.match[i].patterns {
				if a, ok := anchorOf(r.match[i].slot, &p); ok {
					shared[a]++
				}
			}
		}
	}
	beginnings := make([]map[string][]int32, slots)
	for _, r := range rules {
		if r.matchable() {
			x.add(r, beginnings, shared)
		}
	}
	for slot := range x.slots {
		x.slots[slot].finish(beginnings[slot])
	}
	return x
}

// add puts a rule under the condition whose most shared pattern the fewest rules have.
func (x *index) add(r *Rule, beginnings []map[string][]int32, shared map[anchor]int) {
	best, least := -1, 0
	for i := range r.match {
		most := 0
		for j := range r.match[i].patterns {
			a, ok := anchorOf(r.match[i].slot, &r.match[i].patterns[j])
			if !ok {
				most = -1
				break
			}
			most = max(most, shared[a])
		}
		if most > 0 && (best < 0 || most < least) {
			best, least = i, most
		}
	}
	if best < 0 {
		x.always = append(x.always, int32(r.order))
		return
	}
	slot := r.match[best].slot
	s := &x.slots[slot]
	for j := range r.match[best].patterns {
		a, _ := anchorOf(slot, &r.match[best].patterns[j])
		switch a.kind {
		case exact:
			s.exact[a.text] = append(s.exact[a.text], int32(r.order))
		case glob:
			s.ends[a.text] = append(s.ends[a.text], int32(r.order))
		case network:
			s.networks[a.network] = append(s.networks[a.network], int32(r.order))
		default:
			if beginnings[slot] == nil {
				beginnings[slot] = map[string][]int32{}
			}
			beginnings[slot][a.text] = append(beginnings[slot][a.text], int32(r.order))
		}
	}
}

// finish orders the prefixes, and lists the lengths of ends and networks.
func (s *slotIndex) finish(beginnings map[string][]int32) {
	for text, rules := range beginnings {
		s.prefixes = append(s.prefixes, branch{text, -1, rules})
	}
	slices.SortFunc(s.prefixes, func(a, b branch) int { return cmp.Compare(a.text, b.text) })
	for i := 1; i < len(s.prefixes); i++ {
		parent := int32(i - 1)
		for parent >= 0 && !strings.HasPrefix(s.prefixes[i].text, s.prefixes[parent].text) {
			parent = s.prefixes[parent].parent
		}
		s.prefixes[i].parent = parent
	}
	for end := range s.ends {
		if !slices.Contains(s.longs, len(end)) {
			s.longs = append(s.longs, len(end))
		}
	}
	for n := range s.networks {
		v := version(n.Addr())
		if !slices.Contains(s.lengths[v], n.Bits()) {
			s.lengths[v] = append(s.lengths[v], n.Bits())
		}
	}
}

func version(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}

// candidates appends the rules that the values may match. A rule may come twice.
func (x *index) candidates(values []value, found []int32) []int32 {
	found = append(found, x.always...)
	for slot := range x.slots {
		if values[slot].present {
			found = x.slots[slot].candidates(&values[slot], found)
		}
	}
	return found
}

func (s *slotIndex) candidates(v *value, found []int32) []int32 {
	if len(s.exact) > 0 {
		found = append(found, s.exact[v.text]...)
	}
	if len(s.prefixes) > 0 {
		// The last prefix in order that is not above the text: it or one of its ancestors is the longest that fits.
		at := int32(sort.Search(len(s.prefixes), func(i int) bool { return s.prefixes[i].text > v.text })) - 1
		for at >= 0 && !strings.HasPrefix(v.text, s.prefixes[at].text) {
			at = s.prefixes[at].parent
		}
		for ; at >= 0; at = s.prefixes[at].parent {
			found = append(found, s.prefixes[at].rules...)
		}
	}
	for _, n := range s.longs {
		if n <= len(v.text) {
			found = append(found, s.ends[v.text[len(v.text)-n:]]...)
		}
	}
	if len(s.networks) > 0 && v.address.IsValid() {
		for _, bits := range s.lengths[version(v.address)] {
			n, _ := v.address.Prefix(bits)
			found = append(found, s.networks[n]...)
		}
	}
	return found
}
