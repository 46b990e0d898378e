package rules

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/weirflow/weir"
)

// maxWork bounds the search for requests in all files, in rules that are looked at.
const maxWork = 5_000_000

// maxTries bounds the requests that are made for one part of a rule.
const maxTries = 400

// warn notes what has no effect, although each rule by itself is sound. It makes a request for each rule, candidate, plan and
// key, and warns of those that decide none. So a part without a warning decides at least one request, unless its rule matches
// by a regular expression.
func (l *loader) warn() {
	work := maxWork
	for _, d := range l.sound {
		if d.named() {
			d.warnOfKey()
			continue
		}
		d.warnOfDoors()
		d.warnOfIdle()
		if slices.ContainsFunc(d.match, hasExpression) {
			continue // no search makes a text that fits one
		}
		for _, p := range d.parts() {
			if work <= 0 {
				d.warn(d.node, "is not checked for requests that it decides, nor are those after it: the files have too many rules")
				return
			}
			if !l.warnOfPart(d, p, &work) && p.what == wholeRule {
				break
			}
		}
	}
}

func hasExpression(c condition) bool {
	return slices.ContainsFunc(c.patterns, func(p pattern) bool { return p.kind == expression })
}

func (d *draft) warn(n node, format string, values ...any) {
	d.loader.config.Warnings = append(d.loader.config.Warnings, n.doc.problemAt(n.token(), n.where, fmt.Sprintf(format, values...), ""))
}

// warnOfKey warns of a key that nobody reads.
func (d *draft) warnOfKey() {
	if n, given := d.given["key"]; given {
		d.warn(n, "has no effect, because the rule has no match: only callers that name the rule ask it, and they name the key; for every request write match: any")
	}
}

// warnOfDoors warns of a rule that reads attributes of which no gateway, and no Envoy, sends all.
func (d *draft) warnOfDoors() {
	if ofHTTP, ofEnvoy := d.loader.config.readBy(d.Rule); ofHTTP != "" && ofEnvoy != "" {
		d.warn(d.node, "reads %s, which only Envoy sends, and %s, which Envoy does not send: only callers of /v1/take that send both are decided as it says",
			shown(ofEnvoy), shown(ofHTTP))
	}
}

// clause is a part of a rule that should decide some request.
type clause struct {
	node
	what    string         // in warnings
	fixed   map[int]string // the values of attributes, by slot
	absent  map[int]bool   // the attributes that are missing
	decides func(*Outcome) bool
}

const wholeRule = "the rule"

// parts returns what should decide.
func (d *draft) parts() []clause {
	whole := clause{node: d.node, what: wholeRule, decides: d.decides}
	parts := []clause{whole}
	if d.Candidate != nil {
		parts = append(parts, clause{node: d.candidateNode, what: "the candidate", decides: func(o *Outcome) bool { return o.asks(d.Candidate) }})
	}
	limits := func(n node, of map[string]*weir.Rule, what string, place func(name string, p *clause) bool) {
		if n.Node == nil {
			return
		}
		members, _ := n.members("")
		for _, m := range members {
			limit := of[m.name]
			p := clause{node: m.key, what: what, decides: func(o *Outcome) bool { return o.asks(limit) }}
			p.where = n.where
			if place(m.name, &p) {
				parts = append(parts, p)
			}
		}
	}
	limits(d.planNode, d.plans, "the limit of this plan", func(name string, p *clause) bool {
		p.fixed = map[int]string{d.planBy: name}
		return true
	})
	limits(d.keyNode, d.keys, "the limit of this key", d.placeKey)
	return parts
}

// decides reports whether the rule itself decides, by any of its limits.
func (d *draft) decides(o *Outcome) bool {
	if d.Limit == nil {
		return o.Reason == ByRule && o.Rule == d.Rule
	}
	return slices.ContainsFunc(d.limits(), o.asks)
}

// asks reports whether a limit is asked.
func (o *Outcome) asks(limit *weir.Rule) bool {
	is := func(q weir.Request) bool { return q.Rule == limit }
	return (o.Reason == "" || o.Reason == ByDefault) && (slices.ContainsFunc(o.Requests, is) || slices.ContainsFunc(o.Beside, is))
}

// placeKey fixes the attributes that make a key. It returns false for a key that cannot be looked up: a hash, or one of another
// number of attributes, of which it warns.
func (d *draft) placeKey(name string, p *clause) bool {
	texts := []string{name}
	if len(d.key) > 1 || !isPlain(name) {
		texts = splitKey(name)
	}
	switch {
	case hashForm.MatchString(name):
		return false
	case len(texts) != len(d.key):
		d.warn(p.node, "is no key of %d attributes joined by |, so it is never found", len(d.key))
		return false
	}
	p.fixed, p.absent = map[int]string{}, map[int]bool{}
	for i, slot := range d.key {
		if p.absent[slot] = texts[i] == missingText; !p.absent[slot] {
			p.fixed[slot] = unescaper.Replace(texts[i])
		}
	}
	return true
}

// hashForm is the form of a key that is replaced by its hash.
var hashForm = regexp.MustCompile(`^\\#[0-9a-f]{64}$`)

const missingText = `\-` // in keys, of a missing attribute

var unescaper = strings.NewReplacer(`\\`, `\`, `\|`, `|`)

// splitKey splits the key of several attributes. The parts stay escaped.
func splitKey(key string) (parts []string) {
	begin := 0
	for i := 0; i < len(key); i++ {
		switch key[i] {
		case '\\':
			i++
		case '|':
			parts, begin = append(parts, key[begin:i]), i+1
		}
	}
	return append(parts, key[begin:])
}

// warnOfPart makes requests until the part decides one. It warns, and returns false, if it finds none.
func (l *loader) warnOfPart(d *draft, p clause, work *int) bool {
	s := newSearch(l.config, d.Rule, p)
	for range maxTries {
		found := s.try()
		if *work -= s.work; found || *work <= 0 { // or warn says so
			return true
		}
	}
	d.warn(p.node, "%s was found that %s decides: %s", s.nothing(), p.what, s.obstacle())
	return false
}
