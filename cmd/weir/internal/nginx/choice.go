package nginx

import (
	"net/netip"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// choice is a list where nginx takes the first line that fits: of hosts, of locations, or of a map. The last line fits
// every value.
type choice []line

type line struct {
	pattern
	target string
}

// pattern is values of one attribute.
type pattern struct {
	form    form
	text    string // the value, or what it begins or ends with
	network netip.Prefix
	regexp  *regexp.Regexp
	program *syntax.Prog // of regexp
	source  string       // as rules have it
}

type form int

const (
	exactly form = iota
	beginning
	ending
	within // a network
	matching
	every
)

// exact, prefix and suffix return patterns of texts.
func exact(text string) pattern { return pattern{form: exactly, text: text, source: escaped(text)} }
func prefix(text string) pattern {
	return pattern{form: beginning, text: text, source: escaped(text) + "*"}
}
func suffix(text string) pattern {
	return pattern{form: ending, text: text, source: "*" + escaped(text)}
}

// escaped writes a text so that rules take it as it is.
func escaped(text string) string {
	text = strings.NewReplacer(`\`, `\\`, "*", `\*`).Replace(text)
	if strings.HasPrefix(text, "~") {
		return `\` + text
	}
	return text
}

// meets reports whether a value may fit both patterns. It may be wrong, and say yes, about a regular expression.
func (p pattern) meets(q pattern) bool {
	switch {
	case p.form == every || q.form == every:
		return true
	case p.form == exactly && q.form == exactly:
		return p.source == q.source
	case p.form == exactly:
		return q.meets(p)
	case q.form == exactly:
		return p.fits(q.text)
	case p.form == beginning && q.form == beginning:
		return strings.HasPrefix(p.text, q.text) || strings.HasPrefix(q.text, p.text)
	case p.form == ending && q.form == ending:
		return strings.HasSuffix(p.text, q.text) || strings.HasSuffix(q.text, p.text)
	case p.form == within && q.form == within:
		return p.network.Overlaps(q.network)
	}
	return true
}

// fits reports whether a text has the pattern. Regular expressions read bytes, and ignore a final newline.
func (p pattern) fits(text string) bool {
	switch p.form {
	case exactly:
		return text == p.text
	case beginning:
		return strings.HasPrefix(text, p.text)
	case ending:
		return strings.HasSuffix(text, p.text)
	case matching:
		bytes := make([]rune, len(text))
		for i := range bytes {
			bytes[i] = rune(text[i])
		}
		return p.regexp.MatchString(string(bytes)) || p.regexp.MatchString(strings.TrimSuffix(string(bytes), "\n"))
	}
	return p.form == every
}

// covers reports whether all values of q certainly fit p.
func (p pattern) covers(q pattern) bool {
	switch {
	case p.form == every || p.source == q.source && p.form == q.form:
		return true
	case p.form == beginning:
		return (q.form == beginning || q.form == exactly) && strings.HasPrefix(q.text, p.text)
	case p.form == ending:
		return (q.form == ending || q.form == exactly) && strings.HasSuffix(q.text, p.text)
	case p.form == within:
		return q.form == within && p.network.Bits() <= q.network.Bits() && p.network.Overlaps(q.network)
	}
	return false
}

// guard is a condition on one attribute: one of the patterns in match, or any value if there is none, and none of
// those in except.
type guard struct{ match, except []pattern }

// guards returns guards that select the values with a wanted target in the list. No value passes two guards.
func (c choice) guards(wanted func(target string) bool) []guard {
	var all guard
	excepted, single := map[int]bool{}, true
	for i, l := range c {
		if !wanted(l.target) {
			continue
		}
		all.match = append(all.match, l.pattern)
		for j, above := range c[:i] {
			if !wanted(above.target) && !excepted[j] && above.meets(l.pattern) {
				excepted[j] = true
				all.except = append(all.except, above.pattern)
			}
		}
	}
	for i := range excepted { // an exception must not take values from a line above it
		single = single && !slices.ContainsFunc(c[:i], func(above line) bool { return wanted(above.target) && above.meets(c[i].pattern) })
	}
	switch {
	case len(all.match) == 0:
		return nil
	case single:
		return []guard{all.short()}
	}
	return c.apart(wanted)
}

// apart returns a guard for each wanted line, which excludes all lines above it.
func (c choice) apart(wanted func(target string) bool) (all []guard) {
	for i, l := range c {
		if !wanted(l.target) {
			continue
		}
		g := guard{match: []pattern{l.pattern}}
		for _, above := range c[:i] {
			if above.meets(l.pattern) {
				g.except = append(g.except, above.pattern)
			}
		}
		all = append(all, g.short())
	}
	return all
}

// short leaves out patterns that others cover.
func (g guard) short() guard {
	g.match, g.except = outermost(g.match), outermost(g.except)
	if len(g.match) == 1 && g.match[0].form == every && g.match[0].source == "" {
		g.match = nil
	}
	return g
}

func outermost(patterns []pattern) (kept []pattern) {
	for i, p := range patterns {
		covered := false
		for j, q := range patterns {
			covered = covered || q.covers(p) && (j < i || j > i && !p.covers(q))
		}
		if !covered {
			kept = append(kept, p)
		}
	}
	return kept
}

// sources returns patterns as rules have them.
func sources(patterns []pattern) (texts []string) {
	for _, p := range patterns {
		texts = append(texts, p.source)
	}
	return texts
}

// text tells guards apart.
func (g guard) text() string {
	return strings.Join(sources(g.match), "\n") + "\n\n" + strings.Join(sources(g.except), "\n")
}

// add appends a line, unless a line above it takes all its values.
func (c *choice) add(p pattern, target string) {
	if !slices.ContainsFunc(*c, func(l line) bool { return l.covers(p) }) {
		*c = append(*c, line{p, target})
	}
}

// get returns the target of a value that is a text.
func (c choice) get(value string) string {
	for _, l := range c {
		if l.fits(value) {
			return l.target
		}
	}
	return ""
}
