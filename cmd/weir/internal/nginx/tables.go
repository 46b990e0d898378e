package nginx

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// table is a map or geo block, as a list of values of one attribute.
type table struct {
	attribute string
	lines     choice // to values
	missing   string // the value of requests whose header field is empty or missing
	literal   bool   // its values contain no variables
}

// tableOf reads the block of a variable.
func (c *converter) tableOf(name string, depth int) (*table, error) {
	d := c.variables[name]
	if depth > 8 {
		return nil, fmt.Errorf("%s follows more than eight others", d)
	}
	if d.name() == "geo" {
		return geoTable(d)
	}
	source, ok := only(d.arg(0))
	if !ok {
		return nil, fmt.Errorf("%s has a source of several variables", d)
	}
	m, err := newMapping(d)
	if err != nil || c.variables[source] == nil {
		if err == nil {
			return m.table(source)
		}
		return nil, err
	}
	below, err := c.tableOf(source, depth+1)
	if err != nil {
		return nil, err
	}
	t := &table{attribute: below.attribute, missing: m.get(below.missing)}
	for _, l := range below.lines {
		if !below.literal && strings.Contains(l.target, "$") {
			return nil, fmt.Errorf("%s looks at a value with variables", d)
		}
		t.lines = append(t.lines, line{l.pattern, m.get(l.target)})
	}
	return t, nil
}

// mapping is the content of a map.
type mapping struct {
	*directive
	exact       [][2]string // in lower case, and the value
	expressions choice
	otherwise   string
}

func newMapping(d *directive) (*mapping, error) {
	m := &mapping{directive: d}
	for _, l := range d.block {
		text, value := l.name(), l.arg(0)
		switch {
		case text == "volatile" && len(l.words) == 1:
		case text == "hostnames" && len(l.words) == 1:
			return nil, fmt.Errorf("%s has hostnames", d)
		case text == "default":
			m.otherwise = value
		case strings.HasPrefix(text, "~"):
			text, caseless := strings.CutPrefix(text[1:], "*")
			p, err := expression(text, caseless)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", d, err)
			}
			m.expressions = append(m.expressions, line{p, value})
		default:
			m.exact = append(m.exact, [2]string{strings.ToLower(strings.TrimPrefix(text, `\`)), value})
		}
	}
	return m, nil
}

// get returns the value of a text.
func (m *mapping) get(text string) string {
	for _, e := range m.exact {
		if e[0] == lower(text) {
			return e[1]
		}
	}
	for _, l := range m.expressions {
		if l.fits(text) {
			return l.target
		}
	}
	return m.otherwise
}

func lower(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}

// table returns the list of a map that looks at a variable of requests.
func (m *mapping) table(source string) (*table, error) {
	attribute, ok := attributeOf(source)
	if !ok || source == "binary_remote_addr" {
		return nil, fmt.Errorf("%s looks at $%s, which is no attribute of requests", m, source)
	}
	t := &table{attribute: attribute, missing: m.get("")}
	for _, e := range m.exact {
		p, err := value(attribute, e[0])
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", m, err)
		case p.source != "":
			t.lines.add(p, e[1])
		}
	}
	if attribute == "client" && len(m.expressions) > 0 {
		return nil, fmt.Errorf("%s has regular expressions of addresses", m)
	}
	all := pattern{form: every}
	if strings.HasPrefix(attribute, "header.") {
		all.source = "~."
		if slices.ContainsFunc(m.expressions, func(l line) bool { return l.fits("") }) {
			return nil, fmt.Errorf("%s has a regular expression that fits an empty or missing field", m)
		}
	}
	for _, l := range append(m.expressions, line{all, m.otherwise}) {
		t.lines.add(l.pattern, l.target)
	}
	return t, nil
}

// value returns the pattern of a value without regard to case, or one without a source if no request has it.
func value(attribute, text string) (p pattern, err error) {
	letters := lower(text) != strings.ToUpper(text)
	header := strings.HasPrefix(attribute, "header.")
	switch {
	case text == "", header && strings.TrimSpace(text) != text:
		return p, nil
	case attribute == "client":
		address, err := netip.ParseAddr(text)
		if err != nil || address.String() != text || address.Is4In6() {
			return p, nil
		}
		return network(netip.PrefixFrom(address, address.BitLen())), nil
	case attribute == "method":
		return exact(strings.ToUpper(text)), nil
	case attribute == "host" && (strings.ContainsAny(text, "[]:/ ") || strings.HasSuffix(text, ".")):
		return p, fmt.Errorf("rules cannot match the host %s", text)
	case attribute == "uri" && letters:
		return p, errors.New("it looks at paths without regard to case")
	case attribute == "host" || !letters:
		return exact(text), nil
	}
	return expression("^"+regexp.QuoteMeta(text)+"$", true)
}

func network(n netip.Prefix) pattern {
	n = n.Masked()
	p := pattern{form: within, network: n, source: n.String()}
	if n.IsSingleIP() {
		p.source = n.Addr().String()
	}
	return p
}

// geoTable reads a geo block: the smallest network has the address. A later line of the same network counts.
func geoTable(d *directive) (*table, error) {
	if len(d.words) > 2 && d.arg(0) != "$remote_addr" {
		return nil, fmt.Errorf("%s does not look at the address of the client", d)
	}
	t := &table{attribute: "client", literal: true}
	otherwise := ""
	for _, l := range d.block {
		if l.name() == "default" {
			otherwise = l.arg(0)
		}
	}
	var lines choice
	for _, l := range slices.Backward(d.block) {
		if l.name() == "default" {
			continue
		}
		n, err := netip.ParsePrefix(l.name())
		if address, fault := netip.ParseAddr(l.name()); fault == nil {
			n, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if err != nil || n.Addr().Is4In6() {
			return nil, fmt.Errorf("%s has the line %s, which is no network", d, l)
		}
		lines = append(lines, line{network(n), l.arg(0)})
	}
	slices.SortStableFunc(lines, func(a, b line) int { return b.network.Bits() - a.network.Bits() })
	for _, l := range append(lines, line{pattern{form: every}, otherwise}) {
		t.lines.add(l.pattern, l.target)
	}
	return t, nil
}

// counted is a key of a zone, and the requests that have it.
type counted struct {
	text      string
	literal   bool // it contains no variables
	attribute string
	guards    []guard // of the attribute; none for all requests
}

// keysOf returns the keys of a zone, and whether some requests have none.
func (c *converter) keysOf(text string) (keys []counted, partial bool, err error) {
	_, all := splitKey(text)
	for _, p := range all {
		if c.variables[p.name] == nil {
			continue
		}
		if name, ok := only(text); ok {
			return c.keysByTable(name)
		}
		return nil, false, fmt.Errorf("$%s of a map or geo is a part of a key", p.name)
	}
	return []counted{{text: text}}, false, nil
}

// keysByTable returns the keys that a map or geo chooses. Texts without variables may be many; otherwise there is one
// key, for nginx would count equal values of different ones together.
func (c *converter) keysByTable(name string) (keys []counted, partial bool, err error) {
	t, err := c.tableOf(name, 0)
	if err != nil {
		return nil, false, err
	}
	texts, variables := []string{}, false
	lines := slices.Clone(t.lines)
	if t.mayMiss() {
		lines = append(lines, line{target: t.missing})
	}
	for _, l := range lines {
		partial = partial || l.target == ""
		if l.target != "" && !slices.Contains(texts, l.target) {
			texts = append(texts, l.target)
			variables = variables || !t.literal && strings.Contains(l.target, "$")
		}
	}
	if variables && len(texts) > 1 {
		return nil, false, fmt.Errorf("%s chooses between keys: %s", c.variables[name], strings.Join(texts, ", "))
	}
	for _, text := range texts {
		if _, all := splitKey(text); variables && slices.ContainsFunc(all, func(p keyVariable) bool { return c.variables[p.name] != nil }) {
			return nil, false, fmt.Errorf("%s chooses the value of another map", c.variables[name])
		}
		keys = append(keys, counted{text, !variables, t.attribute, t.guards(text)})
	}
	return keys, partial, nil
}

// mayMiss reports whether requests may have no value of the attribute.
func (t *table) mayMiss() bool { return strings.HasPrefix(t.attribute, "header.") }

// guards returns guards that select the requests with a value in the table.
func (t *table) guards(value string) []guard {
	all := t.lines.guards(func(target string) bool { return target == value })
	if t.missing != value || !t.mayMiss() {
		return all
	}
	for i, g := range all {
		if len(g.match) == 1 && g.match[0].form == every {
			all[i].match = nil
			return all
		}
	}
	return append(all, guard{except: []pattern{{form: every, source: "~."}}})
}
