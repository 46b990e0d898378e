package lint

import (
	"maps"
	"slices"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// warnOfIdle warns of fields of a rule that change no decision beside its other fields.
func (s *subject) warnOfIdle() {
	s.warnOfExcept()
	s.warnOfCost()
	s.warnOfLimits()
	s.warnOfHashes()
	if s.given("message") && s.rule.Limit != nil && !slices.ContainsFunc(s.limits(), refuses) {
		s.warn("message", s.place("message"), "has no effect, because the rule refuses no request: its limit is unlimited")
	}
}

// refuses reports whether a limit refuses anything.
func refuses(limits *weir.Rule) bool {
	return slices.ContainsFunc(limits.Limits(), func(l weir.Limit) bool { return l != weir.Unlimited{} })
}

// warnOfExcept warns of exceptions that no request has which the rule matches otherwise.
func (s *subject) warnOfExcept() {
	ofHTTP, ofEnvoy := s.doorsOf(s.matchAttributes())
	for _, c := range s.Except {
		a := s.attributes[c.Attribute]
		if other := ofHTTP + ofEnvoy; (ofHTTP == "") != (ofEnvoy == "") && (a.HTTP || a.Envoy) && a.Envoy != (ofEnvoy != "") {
			s.warn("except", s.place("except: "+a.Name), "excepts nothing: match has %s, and neither gateways nor Envoy send that beside %s", plain.Quoted(other), plain.Quoted(a.Name))
			continue
		}
		at := slices.IndexFunc(s.Match, func(other rules.Condition) bool { return other.Attribute == c.Attribute })
		if at < 0 {
			continue
		}
		for i := range c.Patterns {
			if !c.Meets(i, s.Match[at]) {
				name, place := s.patternAt("except", c, i)
				s.warn("except: "+name, place, "excepts nothing: no %s fits both it and match", a.Name)
			}
		}
	}
}

// warnOfCost warns of costs that no request is admitted with, or that count nothing.
func (s *subject) warnOfCost() {
	at := s.place("cost")
	switch {
	case !s.given("cost") || s.rule.Limit == nil || s.CostFrom >= 0 && s.Cost == 0:
	case s.Cost == 0:
		s.warn("cost", at, "counts nothing, so the rule refuses no request")
	default:
		what := "is"
		if s.CostFrom >= 0 {
			what = "of requests without " + s.attributes[s.CostFrom].Name + " is"
		}
		for _, limits := range s.limits() {
			if most := rules.LargestCost(limits); most > 0 && most < s.Cost {
				s.warn("cost", at, "%s %d, above %d, the largest cost that %s admits, so that limit refuses all of them", what, s.Cost, most, rules.LimitText(limits))
				return
			}
		}
	}
}

// warnOfLimits warns of limits that change no decision beside others of the same list.
func (s *subject) warnOfLimits() {
	warn := func(field string, all ...*weir.Rule) {
		for _, limits := range all {
			switch list := limits.Limits(); {
			case len(list) == 1:
			case slices.Contains(list, weir.Limit(weir.DenyAll{})):
				s.warn(field, s.place(field), "has deny all beside other limits, which then have no effect")
			case slices.Contains(list, weir.Limit(weir.Unlimited{})):
				s.warn(field, s.place(field), "has unlimited beside other limits, beside which it has no effect")
			}
		}
	}
	if s.given("limit") {
		warn("limit", s.rule.Limit)
	}
	warn("plans: limits", slices.Collect(maps.Values(s.Plans))...)
	warn("keys", slices.Collect(maps.Values(s.Keys))...)
}

// warnOfHashes warns of single keys that look like the hashes that engines have in place of them.
func (s *subject) warnOfHashes() {
	if !s.Hashed {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.Keys)) {
		if s.config.LooksHashed(s.rule, name) {
			s.warn("keys", s.place("keys"), "has %s, which looks like the hash of a key: keys of files are values", plain.Quoted(name))
		}
	}
}
