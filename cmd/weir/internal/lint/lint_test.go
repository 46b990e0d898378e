package lint

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

func parsed(t testing.TB, text string) *rules.Config {
	t.Helper()
	c, err := rules.Parse(rules.Options{}, rules.File{Name: "weir.yaml", Content: []byte(text)})
	if err != nil {
		t.Fatalf("%v\nin\n%s", err, text)
	}
	return c
}

func warnings(config *rules.Config, text string) rules.Problems {
	return Warnings(config, rules.File{Name: "weir.yaml", Content: []byte(text)})
}

func TestRulesThatDecideNothingAreNamed(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"- {name: r, key: client, limit: 5/m}", `r": key: has no effect, because the rule has no match`},
		{"- {name: r, match: {path: /a/b}, except: {path: '/a/*'}, limit: 5/m}", "no HTTP request was found that the rule decides: its exceptions fit every request that matches"},
		{"- {name: r, match: {client: 10.0.0.0/8}, except: {client: [10.0.0.0/9, 10.128.0.0/9]}, limit: 5/m}", "none matches the rule and has"},
		{"- {name: r, match: {client: 10.0.0.0/8}, except: {client: [10.0.0.0/9, 10.128.0.0/10, 10.192.0.0/11, 10.224.0.1/32]}, limit: 5/m}", ""},
		{"- {name: no, match: {path: '/a*'}, deny: true}\n- {name: r, match: {path: /a}, limit: 5/m}", `no HTTP request was found that the rule decides: the rule "no" in weir.yaml, line 3, refuses the requests that match`},
		{"- {name: free, match: {path: '/a*'}, unlimited: true}\n- {name: r, match: {path: /a}, limit: 5/m}", `the rule "free" in weir.yaml, line 3, exempts the requests that match`},
		{"- {name: no, match: {client: 10.0.0.0/9}, deny: true}\n- {name: r, match: {client: 10.0.0.0/8}, limit: 5/m}", ""},
		{"- {name: no, match: {client: [0.0.0.0/1, 128.0.0.0/2, 192.0.0.1]}, deny: true}\n- {name: r, match: {client: [10.0.0.0/8, 192.0.0.0/31]}, limit: 5/m}", ""},
		{"- {name: r, match: {header.cost: cheap}, limit: 5/m, cost: {from: header.cost}}", "the cost of the rule \"r\" in weir.yaml, line 3, is no whole number"},
		{"- {name: q, match: any, key: user, missing: refuse, limit: 5/m}\n- {name: r, match: {path: /a}, except: {user: '*'}, limit: 5/m}", `the rule "q" in weir.yaml, line 3, refuses the requests that match, because they lack an attribute of its key`},
		{"- {name: r, match: {user: gold}, limit: 5/m, candidate: 6/m, plans: {by: user, limits: {gold: 7/m}}}", "no request was found that the candidate decides: other limits of the rule decide"},
		{"- {name: r, match: {user: gold}, limit: 5/m, plans: {by: user, limits: {silver: 7/m}}}", "no request was found that the limit of this plan decides"},
		{"- {name: r, match: {client: 10.0.0.0/8}, key: client, limit: 5/m, keys: {192.0.2.1: 7/m}}", "no HTTP request was found that the limit of this key decides"},
		{"- {name: r, match: {client: '2001:db8::7'}, key: client, limit: 5/m, keys: {'2001:db8::/64': 7/m}}", ""},
		{"- {name: r, match: any, key: [client, path], limit: 5/m, keys: {192.0.2.1|/A: 7/m}}", `no HTTP request was found that the limit of this key decides: its requests have other limits, and the key "192.0.2.1|/a"`},
		{"- {name: r, match: any, key: [client, path], limit: 5/m, keys: {192.0.2.1|/a: 7/m, '192.0.2.1|\\-': 8/m}}", ""},
		{"- {name: r, match: any, key: [client, path], missing: skip, limit: 5/m, keys: {'192.0.2.1|\\-': 8/m}}", "no HTTP request was found that the limit of this key decides"},
		{"- {name: r, match: any, key: [client, path], limit: 5/m, keys: {192.0.2.1: 8/m}}", "is no key of 2 attributes joined by |, so it is never found"},
		{"- {name: r, match: any, key: user, limit: 5/m, keys: {'a\\|b': 8/m, '\\#" + strings.Repeat("0f", 32) + "': 9/m}}", ""},
		{"- {name: r, match: {domain: shop, path: /a}, limit: 5/m}", `reads "domain", which only Envoy sends, and "path", which Envoy does not send`},
		{"- {name: r, match: {domain: shop}, key: client, limit: 5/m}", `reads "domain", which only Envoy sends, and "client"`},
		{"- {name: r, match: {domain: shop, user: a}, key: descriptor.user, limit: 5/m}", ""},
		{"- {name: r, match: {uri: '/a?b=*'}, limit: 5/m}", `match: uri: has a query, and uri has none`},
		{"- {name: r, match: {uri: '/a%20b'}, limit: 5/m}", `match: uri: has an encoded character, and uri is decoded: only paths that are encoded twice fit; write "/a b"`},
		{"- {name: r, match: {uri: ['~[?]', /100%]}, limit: 5/m}", ""},
		{"- {name: r, match: {path: '/a/*'}, except: {path: [/a/b, '/b*']}, limit: 5/m}", `weir.yaml:3:58: rule "r": except: path: excepts nothing: no path fits both it and match`},
		{"- {name: r, match: {client: 10.0.0.0/8}, except: {client: [192.0.2.1, 10.1.0.0/16]}, limit: 5/m}", `excepts nothing: no client fits both it and match`},
		{"- {name: r, match: {domain: shop}, except: {path: /a}, limit: 5/m}", `excepts nothing: match has "domain", and neither gateways nor Envoy send that beside "path"`},
		{"- {name: r, match: {path: /a}, except: {client: 192.0.2.1, user: a}, limit: 5/m}", ""},
		{"- {name: r, match: any, limit: 5/m, cost: 6}", `cost: is 6, above 5, the largest cost that token bucket 5/m admits, so that limit refuses all of them`},
		{"- {name: r, match: any, key: client, limit: 50/m, cost: 6, keys: {192.0.2.1: deny all, 192.0.2.2: 5/m}}", `cost: is 6, above 5, the largest cost that token bucket 5/m admits`},
		{"- {name: r, match: any, limit: 5/m, cost: {from: header.k, default: 9}}", `cost: of requests without header.k is 9, above 5`},
		{"- {name: r, match: any, limit: [5/m, unlimited]}", `limit: has unlimited beside other limits, beside which it has no effect`},
		{"- {name: r, match: any, limit: 5/m and deny all}", `limit: has deny all beside other limits, which then have no effect`},
		{"- {name: r, match: any, key: client, limit: 5/m, keys: {192.0.2.1: [6/m, unlimited]}}", `keys: has unlimited beside other limits`},
		{"- {name: r, match: any, key: user, hashed: true, limit: 5/m, keys: {" + strings.Repeat("0f", 16) + ": 6/m, bob: 7/m}}", `which looks like the hash of a key: keys of files are values`},
		{"- {name: r, match: any, limit: 5/m, cost: 0}", `cost: counts nothing, so the rule refuses no request`},
		{"- {name: r, match: any, limit: 5/m, cost: {from: header.k, default: 0}}", ""},
		{"- {name: r, match: any, limit: unlimited, message: Slow down.}", `message: has no effect, because the rule refuses no request: its limit is unlimited`},
		{"- {name: r, match: any, key: client, limit: unlimited, message: Slow down., keys: {192.0.2.1: 5/m}}", ""},
		{"- {name: r, match: any, limit: unlimited, candidate: 5/m}", ""},
		{"- {name: r, match: any, limit: 5/m}\n- {name: p, match: otherwise, limit: 50/m}", `rule "p": is never asked: no rule`},
		{"- {name: r, match: any, limit: 5/m}\n- {name: p, match: otherwise, limit: 50/m, otherwise: q}\n- {name: q, match: otherwise, limit: 60/m}", `rule "q": is never asked: no rule`},
		{"- {name: r, match: any, limit: 5/m, otherwise: p}\n- {name: p, match: otherwise, limit: 50/m, key: user, cost: 3, otherwise: q}\n- {name: q, match: otherwise, limit: 60/m}", ""},
		{"- {name: r, match: any, limit: 5/m, shadow: true, otherwise: p}\n- {name: p, match: otherwise, limit: 50/m}", ""},
		{"- {name: r, match: any, limit: unlimited, otherwise: p}\n- {name: p, match: otherwise, limit: 50/m}", `rule "r": otherwise: has no effect, because the limit of the rule refuses nothing`},
		{"- {name: r, match: any, key: user, limit: unlimited, keys: {a: deny all}, otherwise: p}\n- {name: p, match: otherwise, limit: 50/m}", `otherwise: has no effect`},
		{"- {name: r, match: any, key: user, limit: unlimited, keys: {a: 5/m}, otherwise: p}\n- {name: p, match: otherwise, limit: 50/m}", ""},
		{"- {name: r, match: any, key: user, limit: 60/m, otherwise: p}\n- {name: p, match: otherwise, limit: 50/m}", `weir.yaml:3:60: rule "r": otherwise: is "p", whose limit token bucket 50/m is below that of the rule itself: token bucket 60/m`},
		{"- {name: r, match: any, key: user, limit: 60/m burst 10, otherwise: p}\n- {name: p, match: otherwise, limit: 50/m burst 20}", ""},
		{"- {name: r, match: any, key: user, limit: 60/m, otherwise: p}\n- {name: p, match: otherwise, limit: 50/h}", ""},
		{"- {name: r, match: any, key: user, limit: 60/m, otherwise: p}\n- {name: p, match: otherwise, key: user, limit: 60/m}", `otherwise: is "p", which has the same key and limit, and only this rule asks it`},
		{"- {name: r, match: {path: /a}, key: user, limit: 60/m, otherwise: p}\n- {name: q, match: {path: /b}, key: user, limit: 60/m, otherwise: p}\n- {name: p, match: otherwise, key: user, limit: 60/m}", ""},
		{"- {name: r, match: any, limit: 60/m burst 60, cost: 20, otherwise: p}\n- {name: p, match: otherwise, limit: 60/m burst 70, otherwise: q}\n- {name: q, match: otherwise, limit: 100/h burst 10}", `rule "r": otherwise: leads to "q", which never admits a request of this rule: it costs 20, and the largest cost there is 10`},
		{"- {name: r, match: any, limit: 60/m burst 60, cost: 20, otherwise: p}\n- {name: p, match: otherwise, limit: 60/m burst 70, cost: 1, otherwise: q}\n- {name: q, match: otherwise, limit: 100/h burst 10}", ""},
		{"- {name: r, key: user, limit: 5/m, otherwise: p}\n- {name: p, match: otherwise, key: user, limit: 50/m, missing: skip}", ""},
		{"- {name: r, key: client, limit: 5/m, otherwise: p}\n- {name: p, match: otherwise, limit: 50/m}", `rule "r": key: has no effect`},
		{"- {name: r, key: user, limit: 5/m, otherwise: p}\n- {name: p, match: otherwise, key: [user, client], limit: 50/m}", `otherwise: leads to "p", whose key has "client", which callers that name this rule do not tell`},
		{"- {name: r, limit: 5/m, otherwise: p}\n- {name: p, match: otherwise, cost: 2, limit: 50/m}", `rule "p": cost: has no effect, because only callers that name a rule lead to it`},
		{"- {name: r, match: any, limit: 5/m, otherwise: p}\n- {name: p, match: otherwise, cost: 60, limit: 50/m}", `rule "p": cost: is 60, above 50`},
		{manyRules(rules.MaxMatches + 1), "more than 16 rules with limits match its requests, and those are refused"},
		{manyRules(rules.MaxMatches), ""},
	} {
		text := "attributes: [user]\nrules:\n" + c.file
		if got := warnings(parsed(t, text), text).Error(); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: warnings\n%s\nwant %q", c.file, got, c.want)
		}
	}
}

func manyRules(n int) (text string) {
	for i := range n {
		text += fmt.Sprintf("- {name: r%d, match: any, limit: 5/m}\n", i)
	}
	return text
}

// A search among very many rules ends, and says that it did.
func TestTheSearchForRequestsIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("rules:\n")
	for i := range 20_000 {
		fmt.Fprintf(&b, "- {name: r%d, match: {path: '*%d'}, except: {path: '*'}, unlimited: true}\n", i, i%7)
	}
	found := warnings(parsed(t, b.String()), b.String())
	if last := found[len(found)-1].Text; !strings.Contains(last, "the files have too many rules") {
		t.Errorf("the last of %d warnings is %q, want one about too many rules", len(found), last)
	}
}

// scene is a random file, with the line of each part that should decide requests.
type scene struct {
	text       string
	lines      int
	rules      []*sceneRule
	exceptions map[int]map[string][]string // the patterns of each line of an except, by their attribute
}

type sceneRule struct {
	name          string
	match, except map[string][]string
	parts         map[int]string // "rule", "candidate", or of a key or plan, by line
}

var (
	scenePatterns = map[string][]string{
		"user": {"a", "b", "a*", "*"}, "header.k": {"1", "7", "x", "*"}, "descriptor.u": {"a", "ab", "a*"},
		"path":   {"/", "/a", "/a/b", "/a/*", "/a*", "/a/b/*", "/*", "*", "/a/*/c", "*/c", "/ab", "/ab*", "/b/a", "/a/*b*"},
		"client": {"10.0.0.0/8", "10.1.0.0/16", "10.1.2.3", "0.0.0.0/0", "2001:db8::/32", "2001:db8::1", "::/0", "*", "10.0.0.0/9"},
		"domain": {"a", "b", "ab", "a*", "*b", "a*b", "*", "ab*", "b*a*"},
	}
	sceneValues = map[string][]string{
		"user": {"a", "b", "abc", "c"}, "header.k": {"1", "7", "x", "0"}, "descriptor.u": {"a", "ab", "abc", "c"},
		"path":   {"/", "/a", "/a/", "/a/b", "/a/b/c", "/ab", "/abc", "/b/a", "/c", "/a/x/c"},
		"client": {"10.1.2.3", "10.200.0.1", "192.0.2.1", "2001:db8::1", "2001:db9::1"},
		"domain": {"a", "b", "ab", "abb", "ba", "bab", "c"},
	}
	sceneDoors = [][]string{{"path", "client", "header.k"}, {"domain", "descriptor.u"}, {"user", "path", "client"}}
)

func (s *scene) line(format string, values ...any) int {
	s.text += fmt.Sprintf(format, values...) + "\n"
	s.lines++
	return s.lines
}

// drawScene draws rules of all kinds. Most of them have attributes of one door.
func drawScene(random *rand.Rand) *scene {
	s := &scene{exceptions: map[int]map[string][]string{}}
	s.line("attributes: [user]")
	s.line("rules:")
	for i := range 1 + random.IntN(12) {
		s.draw(random, i)
	}
	return s
}

func (s *scene) draw(random *rand.Rand, i int) {
	one := func(of []string) string { return of[random.IntN(len(of))] }
	chance := func(percent int) bool { return random.IntN(100) < percent }
	door := sceneDoors[random.IntN(len(sceneDoors))]
	if chance(5) {
		door = slices.Concat(sceneDoors...)
	}
	patterns := func(field string) map[string][]string {
		all := map[string][]string{}
		s.line("    %s:", field)
		for range 1 + random.IntN(2) {
			a := one(door)
			if all[a] != nil {
				continue
			}
			at := s.line("      %s:", a)
			for range 1 + random.IntN(2) {
				p := one(scenePatterns[a])
				all[a] = append(all[a], p)
				s.exceptions[s.line("        - '%s'", p)] = map[string][]string{a: {p}}
			}
			s.exceptions[at] = map[string][]string{a: all[a]}
		}
		return all
	}
	r := &sceneRule{name: fmt.Sprintf("r%d", i), parts: map[int]string{}}
	s.rules = append(s.rules, r)
	r.parts[s.line("  - name: %s", r.name)] = "rule"
	if chance(20) {
		s.line("    match: any")
	} else {
		r.match = patterns("match")
	}
	if chance(30) {
		r.except = patterns("except")
	}
	switch {
	case chance(15):
		s.line("    deny: true")
		return
	case chance(15):
		s.line("    unlimited: true")
		return
	case chance(15):
		s.line("    shadow: true")
	case chance(30):
		r.parts[s.line("    candidate: 4/m")] = "candidate"
	}
	s.line("    limit: 5/m")
	if chance(60) {
		key := one(door)
		s.line("    key: %s", key)
		s.line("    missing: %s", one([]string{"share", "skip", "refuse"}))
		if chance(40) && key != "client" {
			s.line("    keys:")
			value := cmp.Or(strings.TrimSuffix(one(sceneValues[key]), "/"), "/")
			r.parts[s.line("      '%s': 6/m", value)] = "key " + value
		}
	}
	if by := one(door); chance(30) && by != "client" && by != "path" {
		s.line("    plans:")
		s.line("      by: %s", by)
		s.line("      limits:")
		value := one(sceneValues[by])
		r.parts[s.line("        '%s': 7/m", value)] = "plan " + value
	}
	if chance(20) {
		s.line("    cost: {from: header.k}")
	}
}

// fits is the model of what a rule matches.
func (r *sceneRule) fits(request rules.Attributes) bool {
	for a, patterns := range r.match {
		if !fitsOne(request, a, patterns) {
			return false
		}
	}
	return !fitsAny(request, r.except)
}

func fitsAny(request rules.Attributes, conditions map[string][]string) bool {
	for a, patterns := range conditions {
		if fitsOne(request, a, patterns) {
			return true
		}
	}
	return false
}

// fitsOne decides by a rule of its own for each pattern, of which package rules has its tests.
func fitsOne(request rules.Attributes, a string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return alone(a, p).Matches(request) != nil })
}

var aloneOnce sync.Map

// alone returns a rule that matches one pattern.
func alone(attribute, pattern string) *rules.Config {
	text := fmt.Sprintf("attributes: [user]\nrules: [{name: r, match: {%s: '%s'}, deny: true}]", attribute, pattern)
	if known, ok := aloneOnce.Load(text); ok {
		return known.(*rules.Config)
	}
	config, err := rules.Parse(rules.Options{}, rules.File{Content: []byte(text)})
	if err != nil {
		panic(err)
	}
	aloneOnce.Store(text, config)
	return config
}

// subjectOf returns a rule as the search sees it.
func subjectOf(config *rules.Config, name string) *subject {
	l := newLinter(config)
	return l.of[config.Rule(name)]
}

// decided returns the lines of the parts that decide a request.
func (s *scene) decided(config *rules.Config, request rules.Attributes) (lines []int) {
	var o rules.Outcome
	config.Decide(request, 1, &o)
	for _, r := range s.rules {
		of := subjectOf(config, r.name)
		for line, part := range r.parts {
			kind, value, _ := strings.Cut(part, " ")
			switch {
			case kind == "rule" && of.decides(&o), kind == "candidate" && asks(&o, of.rule.Candidate), kind == "key" && asks(&o, of.Keys[value]), kind == "plan" && asks(&o, of.Plans[value]):
				lines = append(lines, line)
			}
		}
	}
	return lines
}

func (s *scene) ruleAt(line int) string {
	at := slices.IndexFunc(s.rules, func(r *sceneRule) bool { return r.parts[line] != "" })
	return s.rules[at].name
}

// A rule without a warning decides a request that some front sends, and a rule that decides a request has no warning.
func FuzzPartsWithoutAWarningDecideARequest(f *testing.F) {
	for seed := range uint64(100) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 2))
		s := drawScene(random)
		config := parsed(t, s.text)
		warned := map[int]bool{}
		mixed, idle := map[string]bool{}, map[int]string{}
		found := warnings(config, s.text)
		for _, w := range found {
			if strings.Contains(w.Text, "was found that") {
				warned[w.Line] = true
			} else if strings.Contains(w.Text, "excepts nothing") {
				idle[w.Line] = w.Where
			} else if !strings.Contains(w.Text, "only Envoy sends") {
				t.Errorf("seed %d: %s\n%s", seed, w, s.text)
			}
			mixed[w.Where] = mixed[w.Where] || strings.Contains(w.Text, "only Envoy sends")
		}
		for range 300 {
			request := rules.Attributes{}
			door := random.IntN(len(sceneDoors))
			for _, a := range sceneDoors[door] {
				if random.IntN(5) > 0 {
					request[a] = sceneValues[a][random.IntN(len(sceneValues[a]))]
				}
			}
			for line, where := range idle {
				r := s.rules[slices.IndexFunc(s.rules, func(r *sceneRule) bool { return strings.HasPrefix(where, fmt.Sprintf("rule %q", r.name)) })]
				if without := (&sceneRule{match: r.match}); without.fits(request) && fitsAny(request, s.exceptions[line]) {
					t.Fatalf("seed %d: a warning of line %d, which excepts %v\n%s\n%s", seed, line, request, found, s.text)
				}
			}
			for _, line := range s.decided(config, request) {
				ofHTTP, ofEnvoy := subjectOf(config, s.ruleAt(line)).readBy()
				of := door == 1 && (ofEnvoy != "" || ofHTTP == "") || door != 1 && (ofHTTP != "" || ofEnvoy == "")
				if warned[line] && of {
					t.Fatalf("seed %d: a warning of line %d, which decides %v\n%s\n%s", seed, line, request, found, s.text)
				}
			}
		}
		for _, r := range s.rules {
			s.checkWitnesses(t, config, r, warned, mixed[fmt.Sprintf("rule %q", r.name)])
		}
	})
}

// checkWitnesses checks a request for each part without a warning.
func (s *scene) checkWitnesses(t *testing.T, config *rules.Config, r *sceneRule, warned map[int]bool, mixed bool) {
	t.Helper()
	var ruleLine int
	for line, part := range r.parts {
		if part == "rule" {
			ruleLine = line
		}
	}
	for line := range r.parts {
		if warned[line] || warned[ruleLine] { // its other parts need no warning
			continue
		}
		request := s.witness(config, r, line)
		if request == nil || !r.fits(request) {
			t.Errorf("line %d has no warning, and decides no request (tried %v)\n%s", line, request, s.text)
			continue
		}
		_, domain := request["domain"]
		_, path := request["path"]
		if domain && path && !mixed {
			t.Errorf("line %d decides %v, which no door sends\n%s", line, request, s.text)
		}
	}
}

// witness returns a request that the part of a line decides.
func (s *scene) witness(config *rules.Config, r *sceneRule, line int) rules.Attributes {
	of := subjectOf(config, r.name)
	p := clause{decides: func(*rules.Outcome) bool { return false }}
	switch kind, value, _ := strings.Cut(r.parts[line], " "); kind {
	case "key":
		of.fixKey(value, &p)
	case "plan":
		p.fixed = map[int]string{of.PlanBy: value}
	}
	search := newSearch(of, p)
	for range maxTries {
		search.try()
		if slices.Contains(s.decided(config, search.request), line) {
			return search.request
		}
	}
	return nil
}
