package lint

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// search makes requests until a part of a rule decides one. It is the same for the same files.
type search struct {
	*subject
	clause  clause
	random  *rand.Rand
	http    bool // gateways may send the request
	envoy   bool // or Envoy may
	tries   int
	work    int // of the last try: the rules that were looked at, and a sum for the request
	request rules.Attributes
	matched *rules.Outcome    // of the last request that matched the rule, or nil
	around  []netip.Prefix    // whose neighbours other rules leave
	dodges  []rules.Condition // of which one keeps another rule from the request
	pieces  []string          // of the patterns of those
	needs   map[int]bool      // the attributes that other rules need, and whether as a number
}

// maxHints bounds what a search keeps of each kind that other rules have taught it.
const maxHints = 1000

func newSearch(of *subject, p clause) *search {
	ofHTTP, ofEnvoy := of.readBy()
	s := &search{subject: of, clause: p, needs: map[int]bool{}, random: rand.New(rand.NewPCG(1, uint64(of.order)))}
	s.http, s.envoy = ofHTTP != "" || ofEnvoy == "", ofEnvoy != "" || ofHTTP == ""
	for _, c := range of.Except {
		s.leave(c)
	}
	return s
}

// avoid lets later requests be none of the rule that decided one, or have what the rule needs.
func (s *search) avoid(o *rules.Outcome) {
	other := s.of[o.Rule]
	switch o.Reason {
	case rules.ByMissing:
		for _, at := range other.Key {
			s.needs[at] = s.needs[at] || at == other.CostFrom
		}
	case rules.ByCost:
		s.needs[other.CostFrom] = true
	}
	for _, c := range other.Match {
		s.leave(c)
	}
	if len(s.dodges) < maxHints {
		s.dodges = append(s.dodges, other.Except...)
		for _, c := range other.Except {
			for _, p := range c.Patterns {
				s.pieces = append(s.pieces, piecesOf(p)...)
			}
		}
	}
}

// piecesOf returns the texts of a pattern, those of its ends first.
func piecesOf(p rules.Pattern) []string {
	n := len(p.Texts)
	if n < 2 {
		return append(append([]string{}, p.Texts...), make([]string, 2-n)...)
	}
	return append([]string{p.Texts[0], p.Texts[n-1]}, p.Texts[1:n-1]...)
}

// leave lets later requests have addresses beside those of a condition.
func (s *search) leave(c rules.Condition) {
	for _, p := range c.Patterns {
		if p.Network.IsValid() && len(s.around) < maxHints {
			s.around = append(s.around, p.Network)
		}
	}
}

// try makes one request, and reports whether the part decides it.
func (s *search) try() bool {
	s.make()
	s.tries++
	var o rules.Outcome
	matches, looked := s.config.Consider(s.rule, s.request, &o)
	s.work = 20 + 2*looked
	if s.clause.decides(&o) {
		return true
	}
	if matches {
		s.matched = &o
		if o.Rule != nil && o.Rule != s.rule {
			s.avoid(&o)
		}
	}
	return false
}

// make makes a request that the rule may match: with the attributes that its door sends, that it matches, and that it reads.
func (s *search) make() {
	s.request = rules.Attributes{}
	http := s.http && (!s.envoy || s.tries%2 == 0)
	for at, a := range s.attributes {
		number, needed := s.needs[at]
		always := needed || a.Name == "domain" || a.Like != "" && a.Name != "descriptor.remote_address"
		switch {
		case a.Envoy == http || s.usually() != always:
		case number:
			s.set(at, s.number())
		default:
			s.set(at, s.anyValue(a.Like))
		}
	}
	s.dodge(http)
	for _, c := range s.Match {
		s.setAs(c)
	}
	s.dodge(http)
	s.setKey()
}

// setKey sets the attributes of the key, the plan and the cost.
func (s *search) setKey() {
	for _, at := range s.Key {
		if _, given := s.request[sentAs(s.attributes[at])]; !given && s.usually() {
			s.set(at, s.anyValue(s.attributes[at].Like))
		}
	}
	if from := s.CostFrom; from >= 0 && s.usually() && !slices.Contains(s.matchAttributes(), from) {
		s.set(from, s.number())
	}
	for at, a := range s.attributes {
		if s.clause.absent[at] {
			delete(s.request, sentAs(a))
		}
		value, fixed := s.clause.fixed[at]
		if network, err := netip.ParsePrefix(value); err == nil && a.Like == "client" {
			value = s.inKey(at, network)
		}
		if fixed {
			s.set(at, value)
		}
	}
}

// dodge sometimes gives the request an exception of a rule that decided an earlier one.
func (s *search) dodge(http bool) {
	if len(s.dodges) == 0 || s.random.IntN(3) > 0 {
		return
	}
	if c := s.dodges[s.below(len(s.dodges))]; s.attributes[c.Attribute].Envoy != http {
		s.setAs(c)
	}
}

// setAs sets the attribute of a condition to a value that fits.
func (s *search) setAs(c rules.Condition) {
	s.set(c.Attribute, s.valueOf(s.attributes[c.Attribute].Like, c.Patterns[s.below(len(c.Patterns))]))
}

// set sets an attribute. The forms of a path are set as one, so the last one holds.
func (s *search) set(at int, value string) {
	a := s.attributes[at]
	if a.Like == "uri" {
		value = encoder.Replace(value)
	}
	s.request[sentAs(a)] = value
}

// sentAs returns the name that a gateway gives an attribute.
func sentAs(a rules.Attribute) string {
	if a.Like == "uri" || a.Like == "request_uri" {
		return "path"
	}
	return a.Name
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
func (s *search) inKey(at int, key netip.Prefix) string {
	if text := s.request[s.attributes[at].Name]; text != "" {
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

// anyValue returns a value of an attribute like one of those of every file.
func (s *search) anyValue(like string) string {
	switch like {
	case "method":
		return [...]string{"GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS", s.word()}[s.below(8)]
	case "host":
		return s.word() + ".example"
	case "port":
		return strconv.Itoa(1 + s.below(65535))
	case "path", "uri", "request_uri":
		return "/" + s.wordOrNone()
	case "client":
		all := [...]netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)}
		return s.addressIn(all[s.below(2)])
	}
	return s.word()
}

// valueOf returns a value that fits a pattern.
func (s *search) valueOf(like string, p rules.Pattern) string {
	switch {
	case p.Network.IsValid():
		return s.addressIn(p.Network)
	case p.Expression, len(p.Texts) == 2 && p.Texts[0] == "" && p.Texts[1] == "": // a star alone
		return s.anyValue(like)
	}
	value := p.Texts[0]
	for _, part := range p.Texts[1:] {
		value += s.wordOrNone() + part
	}
	return value
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
	case s.rule.Excepts():
		return "its exceptions fit every request that matches"
	case o == nil:
		return "none matches the rule and has what this needs"
	}
	other := ""
	if o.Rule != nil {
		other = fmt.Sprintf("the rule %s in %s, line %d, ", plain.Quoted(o.Rule.Name), o.Rule.File, o.Rule.Line)
	}
	switch o.Reason {
	case rules.ByRule:
		if o.Verdict == rules.Allow {
			return other + "exempts the requests that match"
		}
		return other + "refuses the requests that match"
	case rules.ByTooMany:
		return fmt.Sprintf("more than %d rules with limits match its requests, and those are refused", rules.MaxMatches)
	case rules.ByMissing:
		return other + "refuses the requests that match, because they lack an attribute of its key"
	case rules.ByCost:
		return "its requests are refused, because the cost of " + other + "is no whole number"
	case rules.ByPath:
		return "servers read different paths in those of its requests, which are refused"
	}
	for i, r := range o.Rules {
		if r == s.rule && len(s.clause.fixed)+len(s.clause.absent) > 0 {
			return "its requests have other limits, and the key " + plain.Quoted(o.Requests[i].Key)
		}
	}
	return "other limits of the rule decide the requests that match"
}
