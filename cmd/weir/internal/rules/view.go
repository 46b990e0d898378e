package rules

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/weirflow/weir"
)

// View holds the conditions and attributes of a compiled rule, to reason about rules without a request. Attributes are
// places in Config.Attributes, and -1 is none.
type View struct {
	ByName           bool // only callers that name the rule ask it
	Match, Except    []Condition
	Key              []int
	PlanBy, CostFrom int
	Cost             int64
	Hashed           bool
	Plans, Keys      map[string]*weir.Rule
}

// Attribute is an attribute that rules mention.
type Attribute struct {
	Name  string
	Like  string // the attribute of every file whose values are compared like its values; "" for text
	HTTP  bool   // gateways send it
	Envoy bool   // Envoy sends it
}

// Condition demands that the value of an attribute fits one of the patterns.
type Condition struct {
	Attribute int
	Patterns  []Pattern
	of        *condition
}

// Pattern is a pattern of a condition.
type Pattern struct {
	Texts      []string     // around its stars: one for a single value; nil for a network or a regular expression
	Network    netip.Prefix // or the zero Prefix
	Expression bool
	Trap       string // why it hardly fits what it was written for, or ""
}

// likes names the families of attributes.
var likes = map[family]string{asMethod: "method", asHost: "host", asPath: "path", asAddress: "client", asURI: "uri", asTarget: "request_uri", asPort: "port"}

// Attributes returns the attributes that rules mention.
func (c *Config) Attributes() (all []Attribute) {
	for _, a := range c.mentions {
		_, known := knownAttributes[a.name]
		ofEnvoy := a.name == "domain" || strings.HasPrefix(a.name, descriptorPrefix)
		all = append(all, Attribute{a.name, likes[a.family], (known || strings.HasPrefix(a.name, headerPrefix)) && !ofEnvoy, ofEnvoy})
	}
	return all
}

// View returns what a rule reads and demands. The caller changes nothing of it.
func (c *Config) View(r *Rule) View {
	return View{r.named(), c.viewed(r.match), c.viewed(r.except), r.key, r.planBy, r.costFrom, r.cost, r.hashed, r.plans, r.keys}
}

func (c *Config) viewed(conditions []condition) (all []Condition) {
	for i := range conditions {
		of := &conditions[i]
		one := Condition{Attribute: of.slot, of: of}
		for j := range of.patterns {
			one.Patterns = append(one.Patterns, of.patterns[j].view(c.mentions[of.slot].family))
		}
		all = append(all, one)
	}
	return all
}

func (p *pattern) view(f family) Pattern {
	v := Pattern{Network: p.network, Expression: p.kind == expression, Trap: p.trap(f)}
	switch p.kind {
	case exact:
		v.Texts = []string{p.head}
	case prefix, glob, present:
		v.Texts = slices.Concat([]string{p.head}, p.middle, []string{p.tail})
	}
	return v
}

// Meets reports whether a value may fit both one pattern of the condition and another condition of the same attribute.
func (c Condition) Meets(pattern int, other Condition) bool {
	one := condition{slot: c.of.slot, patterns: c.of.patterns[pattern : pattern+1]}
	return one.meets(other.of)
}

// Excepts reports whether the exceptions of the rule fit every request that matches it.
func (r *Rule) Excepts() bool { return r.excludes(r) }

// KeyValues returns the values of the attributes in a key of the rule, by their places, and which of them are missing. It returns
// false for a key of another number of values.
func (r *Rule) KeyValues(key string) (values map[int]string, missing map[int]bool, ok bool) {
	parts := []string{key}
	if len(r.key) > 1 || !isPlain(key) {
		parts = splitKey(key)
	}
	if len(parts) != len(r.key) {
		return nil, nil, false
	}
	values, missing = map[int]string{}, map[int]bool{}
	for i, slot := range r.key {
		if missing[slot] = parts[i] == missingText; !missing[slot] {
			values[slot] = unescaper.Replace(parts[i])
		}
	}
	return values, missing, true
}

// LooksHashed reports whether a key looks like a hash that the engine gets in place of one.
func (c *Config) LooksHashed(r *Rule, key string) bool { return keyForm{c, r, false}.isHash(key) }

// Consider decides a request as Decide does, and reports whether the request matches a rule, and how many rules were looked at.
func (c *Config) Consider(r *Rule, from Source, o *Outcome) (matches bool, looked int) {
	values := c.read(from, nil)
	c.Decide(from, 1, o)
	return r.matches(values), len(c.index.candidates(values, nil))
}
