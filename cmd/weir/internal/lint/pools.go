package lint

import (
	"fmt"
	"slices"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// warnOfOtherwise warns of a rule that asks pools without effect, and of a pool that nobody asks.
func (s *subject) warnOfOtherwise() {
	if s.rule.Pool && len(s.askers[s.rule]) == 0 {
		s.warn("", s.place(""), "is never asked: no rule with a match of its own, or without one, leads to it by otherwise")
	}
	if s.rule.Pool && s.given("cost") && len(s.askers[s.rule]) > 0 && !slices.ContainsFunc(s.askers[s.rule], func(r *rules.Rule) bool { return !s.of[r].ByName }) {
		s.warn("cost", s.place("cost"), "has no effect, because only callers that name a rule lead to it, and they name the cost")
	}
	if s.rule.Otherwise == "" {
		return
	}
	warn := func(format string, values ...any) { s.warn("otherwise", s.place("otherwise"), format, values...) }
	pool := s.of[s.rule.Chain()[0]]
	if !slices.ContainsFunc(s.limits(), passesOn) {
		warn("has no effect, because the limit of the rule refuses nothing, or all, which no other rule can admit")
		return
	}
	if above(s.rule.Limit, pool.rule.Limit) {
		warn("is %s, whose limit %s is below that of the rule itself: %s", plain.Quoted(pool.rule.Name), rules.LimitText(pool.rule.Limit), rules.LimitText(s.rule.Limit))
	}
	if s.doubles(pool) {
		warn("is %s, which has the same key and limit, and only this rule asks it: a larger limit here needs no pool", plain.Quoted(pool.rule.Name))
	}
	if !s.rule.Pool {
		s.warnOfChain(warn)
	}
}

// warnOfChain warns of pools that never admit a request of the rule, or lack an attribute of it.
func (s *subject) warnOfChain(warn func(format string, values ...any)) {
	for _, r := range s.rule.Chain() {
		pool := s.of[r]
		if most := pool.largestCost(); !s.ByName && s.CostFrom < 0 && !pool.given("cost") && most < s.Cost {
			warn("leads to %s, which never admits a request of this rule: it costs %d, and the largest cost there is %d", plain.Quoted(r.Name), s.Cost, most)
		}
		if pool.given("cost") {
			break // rules behind it have that cost
		}
	}
	if !s.ByName {
		return
	}
	for _, r := range s.rule.Chain() {
		for _, at := range s.of[r].Key {
			if !s.tells(s.of[r], at) {
				warn("leads to %s, whose key has %s, which callers that name this rule do not tell: it counts as missing there", plain.Quoted(r.Name), plain.Quoted(s.attributes[at].Name))
				break
			}
		}
	}
}

// tells reports whether the key of a rule that callers name has an attribute for the key of a pool.
func (s *subject) tells(pool *subject, attribute int) bool {
	alike := slices.Equal(s.Key, pool.Key) && s.Hashed == pool.Hashed
	return alike || !s.Hashed && slices.Contains(s.Key, attribute)
}

// tellsPool reports whether a pool behind the rule has an attribute of its key.
func (s *subject) tellsPool() bool {
	return slices.ContainsFunc(s.rule.Chain(), func(r *rules.Rule) bool {
		return slices.ContainsFunc(s.of[r].Key, func(at int) bool { return slices.Contains(s.Key, at) && s.tells(s.of[r], at) })
	})
}

// doubles reports whether the pool gives each key of this rule alone the same limit again.
func (s *subject) doubles(pool *subject) bool {
	only := len(s.askers[pool.rule]) == 1 && s.askers[pool.rule][0] == s.rule
	plain := len(s.limits())+len(pool.limits()) == 2 && !pool.given("cost")
	return only && plain && slices.Equal(s.Key, pool.Key) && s.Hashed == pool.Hashed && rules.LimitText(s.rule.Limit) == rules.LimitText(pool.rule.Limit)
}

// largestCost returns the largest cost that any limit of the rule admits.
func (s *subject) largestCost() (most int64) {
	for _, limits := range s.limits() {
		most = max(most, rules.LargestCost(limits))
	}
	return most
}

// passesOn reports whether limits refuse something that another rule can admit in their place.
func passesOn(limits *weir.Rule) bool {
	return refuses(limits) && !slices.Contains(limits.Limits(), weir.Limit(weir.DenyAll{}))
}

// above reports whether a limit has the kind and period of another one, and more units.
func above(one, other *weir.Rule) bool {
	if len(one.Limits()) != 1 || len(other.Limits()) != 1 {
		return false
	}
	a, b := weir.Describe(one.Limits()[0]), weir.Describe(other.Limits()[0])
	same := fmt.Sprintf("%T", one.Limits()[0]) == fmt.Sprintf("%T", other.Limits()[0]) && a.Rate.Period == b.Rate.Period && a.Calendar == b.Calendar
	return same && a.Capacity >= b.Capacity && a.Rate.Count >= b.Rate.Count && (a.Capacity > b.Capacity || a.Rate.Count > b.Rate.Count)
}

// askersOf returns the rules that lead to each pool by otherwise and are none.
func askersOf(config *rules.Config) map[*rules.Rule][]*rules.Rule {
	askers := map[*rules.Rule][]*rules.Rule{}
	for _, r := range config.Rules {
		if r.Pool {
			continue
		}
		for _, pool := range r.Chain() {
			askers[pool] = append(askers[pool], r)
		}
	}
	return askers
}
