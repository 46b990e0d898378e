// Package lint says what compiled rules say that has no effect, although each rule by itself is sound. It reads rules as package rules
// has compiled them, and makes requests for them: no decision waits for it.
package lint

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/plain"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// maxWork bounds the search for requests in all files, in rules that are looked at.
const maxWork = 5_000_000

// maxTries bounds the requests that are made for one part of a rule.
const maxTries = 400

// Warnings makes a request for each rule, candidate, plan and key, and warns of those that decide none. So a part without a warning
// decides at least one request, unless its rule matches by a regular expression. It also warns of fields that change no decision. The
// rules are those of the files, whose lines the warnings show; of another format it knows nothing.
func Warnings(config *rules.Config, files ...rules.File) rules.Problems {
	if !config.ByAttributes() {
		return nil
	}
	l := newLinter(config)
	for _, r := range config.Rules {
		l.of[r].warnOfTraps()
	}
	work := maxWork
	for _, r := range config.Rules {
		if !l.of[r].warnOfRule(&work) {
			break
		}
	}
	l.addLines(files)
	return l.found
}

// linter collects the warnings of rules.
type linter struct {
	config     *rules.Config
	attributes []rules.Attribute
	of         map[*rules.Rule]*subject
	askers     map[*rules.Rule][]*rules.Rule
	found      rules.Problems
}

func newLinter(config *rules.Config) *linter {
	l := &linter{config: config, attributes: config.Attributes(), of: make(map[*rules.Rule]*subject, len(config.Rules)), askers: askersOf(config)}
	for i, r := range config.Rules {
		l.of[r] = &subject{linter: l, rule: r, order: i, View: config.View(r)}
	}
	return l
}

// addLines adds the lines of the files to the warnings.
func (l *linter) addLines(files []rules.File) {
	lines := map[string][]string{}
	for i := range l.found {
		p := &l.found[i]
		if at := slices.IndexFunc(files, func(f rules.File) bool { return f.Name == p.File }); lines[p.File] == nil && at >= 0 {
			lines[p.File] = files[at].Lines()
		}
		if of := lines[p.File]; p.Line >= 1 && p.Line <= len(of) {
			p.Source = of[p.Line-1]
		}
	}
}

// subject is a rule that is looked at.
type subject struct {
	*linter
	rules.View
	rule  *rules.Rule
	order int
}

// warnOfRule warns of parts of the rule. It returns false if there is no work left for other rules.
func (s *subject) warnOfRule(work *int) bool {
	s.warnOfOtherwise()
	if s.ByName {
		s.warnOfKey()
		return true
	}
	s.warnOfDoors()
	s.warnOfIdle()
	if s.rule.Pool {
		return true // no request finds it by itself
	}
	if slices.ContainsFunc(s.Match, hasExpression) {
		return true // no search makes a text that fits one
	}
	for _, p := range s.parts() {
		if *work <= 0 {
			s.warn("", s.place(""), "is not checked for requests that it decides, and neither are later ones: the files have too many rules")
			return false
		}
		if !s.warnOfPart(p, work) && p.what == wholeRule {
			break
		}
	}
	return true
}

func hasExpression(c rules.Condition) bool {
	return slices.ContainsFunc(c.Patterns, func(p rules.Pattern) bool { return p.Expression })
}

// place returns where a field stands, or where the rule does.
func (s *subject) place(field string) rules.Place {
	at := s.rule.Places(field)
	if len(at) == 0 {
		return rules.Place{Line: int32(s.rule.Line), Column: 1}
	}
	return at[0]
}

// given reports whether the file has a field.
func (s *subject) given(field string) bool { return s.rule.Places(field) != nil }

// warn warns of a field, at a place.
func (s *subject) warn(field string, at rules.Place, format string, values ...any) {
	s.found = append(s.found, s.rule.ProblemAt(field, at, fmt.Sprintf(format, values...)))
}

// warnOfTraps warns of patterns that hardly fit what they were written for, in the order of the file.
func (s *subject) warnOfTraps() {
	type trap struct {
		field, text string
		at          rules.Place
	}
	var traps []trap
	for field, conditions := range map[string][]rules.Condition{"match": s.Match, "except": s.Except} {
		for _, c := range conditions {
			for i, p := range c.Patterns {
				if p.Trap != "" {
					name, at := s.patternAt(field, c, i)
					traps = append(traps, trap{field + ": " + name, p.Trap, at})
				}
			}
		}
	}
	slices.SortFunc(traps, func(a, b trap) int {
		return cmp.Or(cmp.Compare(a.at.Line, b.at.Line), cmp.Compare(a.at.Column, b.at.Column))
	})
	for _, t := range traps {
		s.warn(t.field, t.at, "%s", t.text)
	}
}

// patternAt returns the name of the attribute as the file has it, and where it has a pattern, or the attribute for -1.
func (s *subject) patternAt(field string, c rules.Condition, pattern int) (name string, at rules.Place) {
	name = s.attributes[c.Attribute].Name
	places := s.rule.Places(field + ": " + name)
	if pattern+1 >= len(places) {
		return name, s.place("")
	}
	return places[0].Name, places[pattern+1]
}

// warnOfKey warns of a key that nobody reads.
func (s *subject) warnOfKey() {
	if s.given("key") && !s.tellsPool() {
		s.warn("key", s.place("key"), "has no effect, because the rule has no match: only callers that name the rule ask it, and they name the key; for every request write match: any")
	}
}

// warnOfDoors warns of a rule that reads an attribute that only Envoy sends, and one that Envoy does not send.
func (s *subject) warnOfDoors() {
	if ofHTTP, ofEnvoy := s.readBy(); ofHTTP != "" && ofEnvoy != "" {
		s.warn("", s.place(""), "reads %s, which only Envoy sends, and %s, which Envoy does not send: only callers of /v1/take that send both are decided as it says",
			plain.Quoted(ofEnvoy), plain.Quoted(ofHTTP))
	}
}

// readBy returns an attribute of gateways and one of Envoy that the rule needs, or "". The names that files declare are those
// of callers of /v1/take.
func (s *subject) readBy() (ofHTTP, ofEnvoy string) {
	return s.doorsOf(slices.Concat(s.matchAttributes(), s.Key, []int{s.PlanBy, s.CostFrom}))
}

// matchAttributes returns the attributes of match.
func (s *subject) matchAttributes() (attributes []int) {
	for _, c := range s.Match {
		attributes = append(attributes, c.Attribute)
	}
	return attributes
}

// doorsOf returns an attribute of gateways and one of Envoy among some, or "".
func (s *subject) doorsOf(attributes []int) (ofHTTP, ofEnvoy string) {
	for _, at := range attributes {
		if at < 0 {
			continue
		}
		switch a := s.attributes[at]; {
		case a.Envoy:
			ofEnvoy = a.Name
		case a.HTTP:
			ofHTTP = a.Name
		}
	}
	return ofHTTP, ofEnvoy
}

// clause is a part of a rule that should decide some request.
type clause struct {
	field   string
	at      rules.Place
	what    string         // in warnings
	fixed   map[int]string // the values of attributes
	absent  map[int]bool   // the attributes that are missing
	decides func(*rules.Outcome) bool
}

const wholeRule = "the rule"

// parts returns what should decide.
func (s *subject) parts() []clause {
	parts := []clause{{at: s.place(""), what: wholeRule, decides: s.decides}}
	if candidate := s.rule.Candidate; candidate != nil {
		parts = append(parts, clause{field: "candidate", at: s.place("candidate"), what: "the candidate", decides: func(o *rules.Outcome) bool { return asks(o, candidate) }})
	}
	limits := func(field string, of map[string]*weir.Rule, what string, fix func(name string, p *clause) bool) {
		for i, at := range s.rule.Places(field) {
			if i == 0 { // all of them
				continue
			}
			limit := of[at.Name]
			p := clause{field: field, at: at, what: what, decides: func(o *rules.Outcome) bool { return asks(o, limit) }}
			if fix(at.Name, &p) {
				parts = append(parts, p)
			}
		}
	}
	limits("plans: limits", s.Plans, "the limit of this plan", func(name string, p *clause) bool {
		p.fixed = map[int]string{s.PlanBy: name}
		return true
	})
	limits("keys", s.Keys, "the limit of this key", s.fixKey)
	return parts
}

// limits returns the limits that decide keys of the rule.
func (s *subject) limits() (all []*weir.Rule) {
	if s.rule.Limit != nil {
		all = append(all, s.rule.Limit)
	}
	all = slices.AppendSeq(all, maps.Values(s.Plans))
	return slices.AppendSeq(all, maps.Values(s.Keys))
}

// decides reports whether the rule itself decides, by any of its limits.
func (s *subject) decides(o *rules.Outcome) bool {
	if s.rule.Limit == nil {
		return o.Reason == rules.ByRule && o.Rule == s.rule
	}
	return slices.ContainsFunc(s.limits(), func(limit *weir.Rule) bool { return asks(o, limit) })
}

// asks reports whether a limit is asked.
func asks(o *rules.Outcome, limit *weir.Rule) bool {
	is := func(q weir.Request) bool { return q.Rule == limit }
	return (o.Reason == "" || o.Reason == rules.ByDefault) && (slices.ContainsFunc(o.Requests, is) || slices.ContainsFunc(o.Beside, is))
}

// hashForm is the form of a key that is replaced by its hash.
var hashForm = regexp.MustCompile(`^\\#[0-9a-f]{64}$`)

// fixKey fixes the attributes that make a key. It returns false for a key that cannot be looked up: a hash, or, with a
// warning, one of another number of attributes.
func (s *subject) fixKey(name string, p *clause) (ok bool) {
	if hashForm.MatchString(name) {
		return false
	}
	if p.fixed, p.absent, ok = s.rule.KeyValues(name); !ok {
		s.warn(p.field, p.at, "is no key of %d attributes joined by |, so it is never found", len(s.Key))
	}
	return ok
}

// warnOfPart makes requests until the part decides one. It warns, and returns false, if it finds none.
func (s *subject) warnOfPart(p clause, work *int) bool {
	made := newSearch(s, p)
	for range maxTries {
		found := made.try()
		if *work -= made.work; found || *work <= 0 { // or warnOfRule says so
			return true
		}
	}
	s.warn(p.field, p.at, "%s was found that %s decides: %s", made.nothing(), p.what, made.obstacle())
	return false
}
