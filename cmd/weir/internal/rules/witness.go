package rules

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// readBy returns an attribute of gateways and one of Envoy that the rule needs, or "". The names that files declare are those
// of callers of /v1/take.
func (c *Config) readBy(r *Rule) (ofHTTP, ofEnvoy string) {
	return c.doorsOf(append(r.matchSlots(), append(slices.Clone(r.key), r.planBy, r.costFrom)...))
}

func (r *Rule) matchSlots() (slots []int) {
	for _, condition := range r.match {
		slots = append(slots, condition.slot)
	}
	return slots
}

// doorsOf returns an attribute of gateways and one of Envoy among those in slots, or "".
func (c *Config) doorsOf(slots []int) (ofHTTP, ofEnvoy string) {
	for _, slot := range slots {
		if slot < 0 {
			continue
		}
		switch name := c.mentions[slot].name; {
		case isOfEnvoy(name):
			ofEnvoy = name
		case isOfDoor(name):
			ofHTTP = name
		}
	}
	return ofHTTP, ofEnvoy
}

// isOfDoor reports whether gateways or Envoy send an attribute. Callers of /v1/take send those that files declare.
func isOfDoor(name string) bool {
	_, known := knownAttributes[name]
	return known || strings.HasPrefix(name, headerPrefix) || isOfEnvoy(name)
}

func isOfEnvoy(name string) bool {
	return name == "domain" || strings.HasPrefix(name, descriptorPrefix)
}

// search makes requests until a part of a rule decides one. It is the same for the same files.
type search struct {
	config  *Config
	rule    *Rule
	clause  clause
	random  *rand.Rand
	http    bool // gateways may send the request
	envoy   bool // or Envoy may
	tries   int
	work    int // of the last try: the rules that were looked at, and a sum for the request
	request Attributes
	matched *Outcome       // of the last request that matched the rule, or nil
	around  []netip.Prefix // whose neighbours other rules leave
	dodges  []condition    // of which one keeps another rule from the request
	pieces  []string       // of the patterns of those
	needs   map[int]bool   // the attributes that other rules need, and whether as a number
}

func newSearch(c *Config, r *Rule, p clause) *search {
	ofHTTP, ofEnvoy := c.readBy(r)
	s := &search{config: c, rule: r, clause: p, needs: map[int]bool{}, random: rand.New(rand.NewPCG(1, uint64(r.order)))}
	s.http, s.envoy = ofHTTP != "" || ofEnvoy == "", ofEnvoy != "" || ofHTTP == ""
	for i := range r.except {
		s.leave(&r.except[i])
	}
	return s
}

// avoid lets later requests be none of the rule that decided one, or have what the rule needs.
func (s *search) avoid(o *Outcome) {
	switch o.Reason {
	case ByMissing:
		for _, slot := range o.Rule.key {
			s.needs[slot] = s.needs[slot] || slot == o.Rule.costFrom
		}
	case ByCost:
		s.needs[o.Rule.costFrom] = true
	}
	for i := range o.Rule.match {
		s.leave(&o.Rule.match[i])
	}
	if len(s.dodges) < maxPatterns {
		s.dodges = append(s.dodges, o.Rule.except...)
		for _, c := range o.Rule.except {
			for _, p := range c.patterns {
				s.pieces = append(append(s.pieces, p.head, p.tail), p.middle...)
			}
		}
	}
}

// leave lets later requests have addresses beside those of a condition.
func (s *search) leave(c *condition) {
	for i := range c.patterns {
		if c.patterns[i].kind == network && len(s.around) < maxPatterns {
			s.around = append(s.around, c.patterns[i].network)
		}
	}
}

// try makes one request, and reports whether the part decides it.
func (s *search) try() bool {
	s.make()
	s.tries++
	values := s.config.read(s.request, nil)
	s.work = 20 + 2*len(s.config.index.candidates(values, nil))
	var o Outcome
	s.config.Decide(s.request, 1, &o)
	if s.clause.decides(&o) {
		return true
	}
	if s.rule.matches(values) {
		s.matched = &o
		if o.Rule != nil && o.Rule != s.rule {
			s.avoid(&o)
		}
	}
	return false
}

// make makes a request that the rule may match: with what its door sends, what it matches, and what else it reads.
func (s *search) make() {
	s.request = Attributes{}
	http := s.http && (!s.envoy || s.tries%2 == 0)
	for slot, a := range s.config.mentions {
		number, needed := s.needs[slot]
		always := needed || a.name == "domain" || a.family != asText && a.name != "descriptor.remote_address"
		switch {
		case isOfEnvoy(a.name) == http || s.usually() != always:
		case number:
			s.set(slot, s.number())
		default:
			s.set(slot, s.anyValue(a.family))
		}
	}
	s.dodge(http)
	for i := range s.rule.match {
		s.setAs(&s.rule.match[i])
	}
	s.dodge(http)
	s.setKey()
}

// setKey sets the attributes of the key, the plan and the cost.
func (s *search) setKey() {
	for _, slot := range s.rule.key {
		if _, given := s.request[sentAs(s.config.mentions[slot])]; !given && s.usually() {
			s.set(slot, s.anyValue(s.config.mentions[slot].family))
		}
	}
	if from := s.rule.costFrom; from >= 0 && s.usually() && !slices.ContainsFunc(s.rule.match, func(c condition) bool { return c.slot == from }) {
		s.set(from, s.number())
	}
	for slot, a := range s.config.mentions {
		if s.clause.absent[slot] {
			delete(s.request, sentAs(a))
		}
		value, fixed := s.clause.fixed[slot]
		if network, err := netip.ParsePrefix(value); err == nil && a.family == asAddress {
			value = s.inKey(slot, network)
		}
		if fixed {
			s.set(slot, value)
		}
	}
}

// dodge sometimes gives the request an exception of a rule that decided an earlier one.
func (s *search) dodge(http bool) {
	if len(s.dodges) == 0 || s.random.IntN(3) > 0 {
		return
	}
	if c := &s.dodges[s.below(len(s.dodges))]; isOfEnvoy(s.config.mentions[c.slot].name) != http {
		s.setAs(c)
	}
}

// setAs sets the attribute of a condition to a value that fits.
func (s *search) setAs(c *condition) {
	s.set(c.slot, s.valueOf(s.config.mentions[c.slot].family, &c.patterns[s.below(len(c.patterns))]))
}

// set sets an attribute. The forms of a path are set as one, so the last one holds.
func (s *search) set(slot int, value string) {
	a := s.config.mentions[slot]
	if a.family == asURI {
		value = encoder.Replace(value)
	}
	s.request[sentAs(a)] = value
}

// sentAs returns the name by which a gateway sends an attribute.
func sentAs(a attribute) string {
	if a.family == asURI || a.family == asTarget {
		return "path"
	}
	return a.name
}

// encoder keeps a path what it is when it is decoded.
var encoder = strings.NewReplacer("%", "%25", "?", "%3F", "#", "%23")

// usually is true at the first try, and mostly later.
func (s *search) usually() bool { return s.tries == 0 || s.random.IntN(8) > 0 }

// below is 0 at the first try, and any number below n later.
func (s *search) below(n int) int {
	if s.tries == 0 {
		return 0
	}
	return s.random.IntN(n)
}

// inKey returns an address of the network that is a key: one that the rule matches, if there is one.
func (s *search) inKey(slot int, key netip.Prefix) string {
	if text := s.request[s.config.mentions[slot].name]; text != "" {
		if address, err := netip.ParseAddr(text); err == nil && key.Contains(address) {
			return text
		}
	}
	return s.addressIn(key)
}

// word is a text that few patterns know.
func (s *search) word() string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	switch {
	case s.tries == 0:
		return "x"
	case len(s.pieces) > 0 && s.random.IntN(4) == 0:
		return s.pieces[s.random.IntN(len(s.pieces))]
	}
	b := make([]byte, 1+s.random.IntN(6))
	for i := range b {
		b[i] = letters[s.random.IntN(len(letters))]
	}
	return string(b)
}

// number is a cost.
func (s *search) number() string { return strconv.Itoa(1 + s.below(9)) }

// wordOrNone is a word or, seldom, the empty text.
func (s *search) wordOrNone() string {
	if s.usually() {
		return s.word()
	}
	return ""
}

// anyValue returns a value of an attribute.
func (s *search) anyValue(f family) string {
	switch f {
	case asMethod:
		return [...]string{"GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS", s.word()}[s.below(8)]
	case asHost:
		return s.word() + ".example"
	case asPort:
		return strconv.Itoa(1 + s.below(65535))
	case asPath, asURI, asTarget:
		return "/" + s.wordOrNone()
	case asAddress:
		all := [...]netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)}
		return s.addressIn(all[s.below(2)])
	}
	return s.word()
}

// valueOf returns a value that fits a pattern.
func (s *search) valueOf(f family, p *pattern) string {
	switch p.kind {
	case exact:
		return p.head
	case prefix:
		return p.head + s.wordOrNone()
	case network:
		return s.addressIn(p.network)
	case glob:
		value := p.head
		for _, part := range p.middle {
			value += s.wordOrNone() + part
		}
		return value + s.wordOrNone() + p.tail
	}
	return s.anyValue(f)
}

// addressIn returns an address of a network: its first one, one beside a network that other rules decide, or any.
func (s *search) addressIn(n netip.Prefix) string {
	if s.tries == 0 {
		return n.Addr().String()
	}
	if len(s.around) > 0 && s.random.IntN(2) == 0 {
		inner := s.around[s.random.IntN(len(s.around))]
		for _, beside := range []netip.Addr{inner.Addr().Prev(), lastOf(inner).Next()} {
			if n.Contains(beside) {
				return beside.String()
			}
		}
	}
	bytes := n.Addr().AsSlice()
	for i := n.Bits(); i < len(bytes)*8; i++ {
		bytes[i/8] |= byte(s.random.IntN(2)) << (7 - i%8)
	}
	address, _ := netip.AddrFromSlice(bytes)
	return address.String()
}

// lastOf returns the last address of a network.
func lastOf(n netip.Prefix) netip.Addr {
	bytes := n.Addr().AsSlice()
	for i := n.Bits(); i < len(bytes)*8; i++ {
		bytes[i/8] |= 1 << (7 - i%8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last
}

// nothing describes the kinds of request that were tried without success.
func (s *search) nothing() string {
	switch {
	case !s.envoy:
		return "no HTTP request"
	case !s.http:
		return "no descriptor of Envoy"
	}
	return "no request"
}

// obstacle says why no request was decided.
func (s *search) obstacle() string {
	o := s.matched
	switch {
	case s.rule.excludes(s.rule):
		return "its exceptions fit every request that matches"
	case o == nil:
		return "none matches the rule and has what this needs"
	}
	other := ""
	if o.Rule != nil {
		other = fmt.Sprintf("the rule %s in %s, line %d, ", shown(o.Rule.Name), o.Rule.File, o.Rule.Line)
	}
	switch o.Reason {
	case ByRule:
		if o.Verdict == Allow {
			return other + "exempts the requests that match"
		}
		return other + "refuses the requests that match"
	case ByTooMany:
		return fmt.Sprintf("more than %d rules with limits match its requests, and those are refused", MaxMatches)
	case ByMissing:
		return other + "refuses the requests that match, because they lack an attribute of its key"
	case ByCost:
		return "its requests are refused, because the cost of " + other + "is no whole number"
	case ByPath:
		return "servers read different paths in those of its requests, which are refused"
	}
	for i, r := range o.Rules {
		if r == s.rule && len(s.clause.fixed)+len(s.clause.absent) > 0 {
			return "its requests have other limits, and the key " + shown(o.Requests[i].Key)
		}
	}
	return "other limits of the rule decide the requests that match"
}
