package rules

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/plain"
)

// candidateSuffix ends the names of candidates, which have states beside those of the rules in force.
const candidateSuffix = "~candidate"

// defaultLease bounds the time that a slot is held, unless its limit has a lease: a remote caller that dies cannot
// release its slots.
const defaultLease = time.Minute

// loader makes a Config of files.
type loader struct {
	Options
	config   *Config
	problems *Problems
	given    map[string]node // the fields that only one file may have
	declared []string        // the names of further attributes
	slots    map[string]int  // of attributes that rules mention
	items    []item          // the rules
	sound    []*draft        // the rules without a problem
}

// item is a rule of a file: a value, or the piece of a document that holds it.
type item struct {
	node
	piece piece
}

// draft is a rule while it is read.
type draft struct {
	*Rule
	loader *loader
	node   node // of the whole rule
	given  map[string]node

	limitNode, keyNode, planNode, candidateNode node
}

// Parse reads the content of files. The error is Problems.
func Parse(o Options, files ...File) (*Config, error) { return parseFiles(o, largeFile, files) }

// parseFiles parses files in pieces from a size on.
func parseFiles(o Options, large int, files []File) (*Config, error) {
	var problems Problems
	l := &loader{Options: o, config: &Config{Listen: map[string]string{}, Engine: map[string]string{}, names: map[string]*Rule{}}, problems: &problems, given: map[string]node{}, slots: map[string]int{}}
	left := maxTokens
	for _, f := range files {
		opens := open
		if len(f.Content) >= large {
			opens = openInPieces
		}
		if root, ok := opens(f, &left, &problems); ok && !root.isEnvoyproxy() {
			fileFields.read(root, "a rules file", l)
		}
	}
	if l.readRules() {
		l.checkBudgets()
		l.checkOtherwise()
		l.checkAlone()
	}
	if len(problems) > 0 {
		l.inOrder(files)
		return nil, problems
	}
	l.config.declared = l.declared
	l.config.most = mostTold(l.config.Rules)
	l.config.index = newIndex(l.config.Rules, len(l.config.mentions))
	return l.config, nil
}

// inOrder sorts problems by their places.
func (l *loader) inOrder(files []File) {
	order := map[string]int{}
	for i, f := range files {
		order[f.Name] = i
	}
	slices.SortStableFunc(*l.problems, func(a, b Problem) int {
		if a.File != b.File {
			return order[a.File] - order[b.File]
		}
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
}

// once notes a field of the whole configuration, which only one file may have.
func (l *loader) once(field string, n node) bool {
	if first, twice := l.given[field]; twice {
		n.fail("is given in %s, line %d, too", first.doc.name, first.token().Position.Line)
		return false
	}
	l.given[field] = n
	return true
}

// mostPeers bounds the daemons that share an engine.
const mostPeers = 1_000_000

func (l *loader) readDeadline(n node) {
	const want = "a duration above 0, like 15ms"
	text, ok := n.text(want)
	if !ok {
		return
	}
	if d, err := time.ParseDuration(text); err != nil || d <= 0 || d > weir.MaxPeriod {
		n.fail("is %s, want %s", plain.Quoted(text), want)
		return
	}
	l.config.Engine["deadline"] = text
}

// declare reads the names of further attributes.
func (l *loader) declare(n node) {
	for _, v := range n.list(maxAttributes) {
		name, ok := v.text("the name of an attribute")
		_, known := knownAttributes[name]
		switch {
		case !ok:
		case known:
			v.fail("%s is an attribute of every file; leave it out", plain.Quoted(name))
		case !isName(name) || strings.HasPrefix(name, headerPrefix) || strings.HasPrefix(name, descriptorPrefix):
			v.fail("%s is no name, want letters, digits, - or _; header.NAME needs no mention", plain.Quoted(name))
		case slices.Contains(l.declared, name):
			v.fail("%s is given twice", plain.Quoted(name))
		default:
			l.declared = append(l.declared, name)
		}
	}
}

// otherNames are the names that attributes have elsewhere.
var otherNames = map[string]string{
	"ip": "client", "address": "client", "addr": "client", "remote_addr": "client", "remote_address": "client", "remote_ip": "client", "client_ip": "client",
	"url": "path", "hostname": "host", "server_name": "host", "authority": "host", "verb": "method", "request_method": "method",
}

// slot returns the place of an attribute among those that rules mention.
func (l *loader) slot(n node) (slot int, ok bool) {
	name, ok := n.text("the name of an attribute, like client or header.x-api-key")
	if !ok {
		return -1, false
	}
	if strings.HasPrefix(strings.ToLower(name), headerPrefix) {
		name = strings.ToLower(name)
	}
	f, known := knownAttributes[name]
	rest, isHeader := strings.CutPrefix(name, headerPrefix)
	entry, isEntry := strings.CutPrefix(name, descriptorPrefix)
	switch {
	case isHeader && !isHeaderName(rest):
		n.fail("%s is not the name of a header field", plain.Quoted(rest))
		return -1, false
	case !known && !isHeader && !(isEntry && entry != "") && !slices.Contains(l.declared, name):
		names := []string{"method", "host", "path", "client", "domain"}
		n.failMeant(cmp.Or(otherNames[strings.ToLower(name)], nearest(name, append(names, l.declared...))),
			"%s is no attribute, want %s, header.NAME, descriptor.NAME, or a name that attributes lists", plain.Quoted(name), strings.Join(names, ", "))
		return -1, false
	}
	if slot, seen := l.slots[name]; seen {
		return slot, true
	}
	if len(l.config.mentions) == maxAttributes {
		n.fail("is attribute %d, want at most %d in all rules", maxAttributes+1, maxAttributes)
		return -1, false
	}
	l.slots[name] = len(l.config.mentions)
	l.config.mentions = append(l.config.mentions, attribute{name, f})
	return l.slots[name], true
}

var headerName = regexp.MustCompile("^[a-z0-9!#$%&'*+.^_`|~-]+$")

func isHeaderName(name string) bool { return headerName.MatchString(name) }

// namePattern is the form of the names of rules and attributes.
const namePattern = `^[A-Za-z0-9_.:/-]+$`

var nameForm = regexp.MustCompile(namePattern)

func isName(name string) bool { return len(name) <= maxName && nameForm.MatchString(name) }

func ruleName(n node) string {
	name, ok := n.text("a name")
	if ok && !isName(name) {
		n.fail("is %s, want 1 to %d letters, digits and -, _, ., :, /", plain.Quoted(name), maxName)
		return ""
	}
	return name
}

// addRules keeps the rules of a file until all files have declared their attributes.
func (l *loader) addRules(n node) {
	if _, empty := n.scalar(); empty || n.Type().String() == "Null" || n.Type().String() == "Mapping" {
		n.unlike("a list of rules, each beginning with '- name: '")
		return
	}
	items := n.list(maxRules)
	if all := len(l.items) + len(items) + len(n.doc.rest); all > maxRules {
		n.fail("brings the rules to %d, want at most %d", all, maxRules)
		return
	}
	for _, n := range items {
		l.items = append(l.items, item{node: n})
	}
	for _, p := range n.doc.rest {
		l.items = append(l.items, item{node: node{doc: n.doc}, piece: p})
	}
}

// readRules reads the rules of all files. It returns false if one is no YAML, whose problem hides those of rules.
func (l *loader) readRules() bool {
	before := len(*l.problems)
	for i := range l.items {
		n := l.items[i].node
		if l.items[i].node = (node{}); n.Node == nil {
			at := len(*l.problems)
			parsed, ok := n.doc.parse(l.items[i].piece)
			if !ok {
				*l.problems = append((*l.problems)[:before], (*l.problems)[at:]...)
				return false
			}
			n = parsed
		}
		l.readRule(n)
	}
	return true
}

// readRule reads one rule. All its problems are noted.
func (l *loader) readRule(n node) {
	n.where = "rule"
	before := len(*l.problems)
	members, ok := n.members("the fields of a rule")
	if !ok {
		return
	}
	*l.problems = (*l.problems)[:before] // read notes them again, with the name
	for _, m := range members {
		if name, ok := m.scalar(); ok && m.name == "name" {
			n.where = "rule " + plain.Quoted(name)
		}
	}
	d := &draft{loader: l, Rule: &Rule{order: len(l.config.Rules), cost: 1, costFrom: -1, planBy: -1, missing: MissingShare}}
	d.given = ruleFields.read(n, "a rule", d)
	if d.given["name"].Node == nil && len(*l.problems) == before {
		n.fail("has no name")
	}
	if first := l.config.names[d.Name]; first != nil && d.Name != "" {
		d.given["name"].fail("a rule in %s, line %d, has the name %s, too", first.File, first.Line, plain.Quoted(d.Name))
	} else if d.Name != "" {
		l.config.names[d.Name] = d.Rule
	}
	d.completeReplaces()
	d.node = n.place()
	d.File, d.Line = n.doc.name, n.token().Position.Line
	if len(*l.problems) == before {
		d.checkKind()
	}
	d.makeLimits()
	if match, given := d.given["match"]; given {
		d.given["match"] = match.place()
	}
	if l.config.Rules = append(l.config.Rules, d.Rule); len(*l.problems) == before {
		d.noteFields()
		l.sound = append(l.sound, d)
	}
}

// makeLimits makes the rules of engines.
func (d *draft) makeLimits() {
	name := d.stateName()
	switch {
	case d.limitNode.Node != nil:
		d.Limit = d.limit(d.limitNode, name)
	case d.Deny && d.Shadow && d.Name != "":
		d.Limit, _ = weir.NewRule(name, weir.DenyAll{})
	}
	d.completeEstimate()
	d.plans = d.limitsOf(d.planNode, name, d.planBy)
	keyed := -1
	if len(d.key) == 1 {
		keyed = d.key[0]
	}
	d.keys = d.limitsOf(d.keyNode, name, keyed)
	if d.candidateNode.Node != nil {
		d.Candidate = d.limit(d.candidateNode, d.Name+candidateSuffix)
	}
	if n, given := d.given["plans"]; given && d.planNode.Node == nil {
		n.fail("has no limits")
	}
	if n, given := d.given["hashed"]; given && len(d.key) == 0 {
		n.fail("hashes a key, and the rule has no key")
	}
	if n, given := d.given["keys"]; given && len(d.key) == 0 {
		n.fail("has limits of keys, and the rule has no key")
	}
}

// limitsOf reads limits by a name: of plans or keys. The names are values of the attribute in a slot, or of none if that is
// -1. In another form than the normal one they would never be found.
func (d *draft) limitsOf(n node, rule string, slot int) map[string]*weir.Rule {
	if n.Node == nil {
		return nil
	}
	members, _ := n.members("limits by their names")
	if len(members) > maxPlans {
		n.fail("has %d limits, want at most %d", len(members), maxPlans)
		return nil
	}
	limits := make(map[string]*weir.Rule, len(members))
	for _, m := range members {
		if limit := d.limit(m.node, rule); limit != nil {
			limits[m.name] = limit
		}
		if slot < 0 || !isPlain(m.name) {
			continue
		}
		of := d.loader.config.mentions[slot]
		if want := writtenValue(of.family, m.name).key; want != m.name {
			m.key.failMeant(want, "%s is no value of %s in its normal form", plain.Quoted(m.name), of.name)
		}
	}
	return limits
}

// limit reads a limit, or a list of limits. It returns nil, and has noted a problem, if it cannot.
func (l *loader) limit(n node, name string) *weir.Rule {
	var limits []weir.Limit
	for _, v := range n.list(16) {
		text, ok := v.text("a limit, like 10/s or token bucket 5/m burst 10")
		if !ok {
			return nil
		}
		read, err := weir.ParseLimits(text)
		if err != nil {
			v.failLimit(err)
			return nil
		}
		limits = append(limits, read...)
	}
	if len(limits) == 0 || strings.HasPrefix(name, "~") || name == "" {
		return nil
	}
	bound(limits)
	rule, err := weir.NewRule(name, limits...)
	if err == nil && l.Check != nil {
		err = l.Check(rule)
	}
	if err != nil {
		n.failLimit(err)
		return nil
	}
	return rule
}

// bound gives limits of slots a lease, unless they have one.
func bound(limits []weir.Limit) {
	for i, limit := range limits {
		if d := weir.Describe(limit); d.Held && d.Lease == 0 {
			limits[i] = weir.Concurrency{Slots: d.Capacity, Lease: defaultLease}
		}
	}
}

// failLimit notes an error of the library about limits, and points at the word.
func (n node) failLimit(err error) {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range many.Unwrap() {
			n.failLimit(one)
		}
		return
	}
	if refused, ok := errors.AsType[*weir.LimitError](err); ok {
		n.fail("%s: %s %s", refused.Limit, refused.Field, refused.Reason)
		return
	}
	syntax, ok := errors.AsType[*weir.SyntaxError](err)
	if !ok {
		n.fail("%v", err)
		return
	}
	want, _, _ := strings.Cut(syntax.Want, " (")
	text := fmt.Sprintf("unexpected %s, want %s", plain.Quoted(syntax.Word), want)
	if syntax.Word == "" {
		text = "the text ends where " + want + " should follow"
	}
	t := *n.GetToken()
	at := *t.Position
	origin := strings.TrimSpace(t.Origin)
	if before, _, ok := strings.Cut(origin, syntax.Text); ok && syntax.Word != "" { // on one line, as it is
		at.Column += utf8.RuneCountInString(before + syntax.Text[:syntax.Offset])
		t.Origin = syntax.Word
	}
	t.Position = &at
	n.doc.failAt(&t, n.where, text, syntax.Meant)
}

// readMatch reads the patterns of a rule.
func (d *draft) readMatch(n node) {
	if _, plain := n.scalar(); plain {
		word := n.oneOf("any", Otherwise, "patterns by attribute, like {path: /login}")
		d.any, d.Pool = word == "any", word == Otherwise
		return
	}
	d.match = d.conditions("match", n)
}

// conditions reads the patterns of match or except, by attribute.
func (d *draft) conditions(field string, n node) (all []condition) {
	members, _ := n.members("patterns by attribute, like {path: /login}")
	for _, m := range members {
		m.key.where = n.where
		slot, ok := d.loader.slot(m.key)
		if !ok {
			continue
		}
		c := condition{slot: slot}
		patterns := m.list(maxPatterns)
		c.patterns = make([]pattern, 0, len(patterns))
		for _, v := range patterns {
			text, ok := v.text("a pattern")
			if !ok {
				continue
			}
			p, err := parsePattern(d.loader.config.mentions[slot].family, text)
			if err != nil {
				v.fail("%v", err)
				continue
			}
			c.patterns = append(c.patterns, p)
		}
		if slices.ContainsFunc(all, func(other condition) bool { return other.slot == slot }) {
			m.key.fail("%s is given twice", plain.Quoted(m.name))
		}
		all = append(all, c)
		d.noteCondition(field, m, slot, patterns)
	}
	if len(members) == 0 && n.Type().String() == "Mapping" {
		n.fail("is empty, want patterns by attribute")
	}
	return all
}

// maxKeyAttributes bounds the attributes of a key.
const maxKeyAttributes = 8

func (d *draft) readKey(n node) {
	for _, v := range n.list(maxKeyAttributes) {
		slot, ok := d.loader.slot(v)
		if !ok {
			continue
		}
		if slices.Contains(d.key, slot) {
			v.fail("is given twice")
		}
		d.key = append(d.key, slot)
	}
}

func (d *draft) readPlans(n node) {
	given := planFields.read(n, "plans", d)
	if given["by"].Node == nil {
		n.fail("has no by, want the attribute that names the plan")
	}
}

// readCost reads a number, or the attribute that holds it.
func (d *draft) readCost(n node) {
	d.ownCost = true
	if _, plain := n.scalar(); plain {
		d.cost = n.whole(0, weir.MaxCount)
		return
	}
	if given := costFields.read(n, "a cost", d); given["from"].Node == nil && len(given) > 0 {
		n.fail("has no from, want the attribute that holds the cost")
	}
}

func (d *draft) readCostFrom(n node) {
	slot, ok := d.loader.slot(n)
	if d.costFrom = slot; ok && d.loader.config.mentions[slot].family != asText {
		n.fail("is never a number")
	}
}

func (d *draft) readMessage(n node) {
	text, ok := n.text("a text")
	if ok && len(text) > maxMessage {
		n.fail("has %d bytes, want at most %d", len(text), maxMessage)
	}
	d.Message = text
}

// checkAlone notes rules with a limit that stands alone and that may meet another one.
func (l *loader) checkAlone() {
	alone := 0
	for _, r := range l.sound {
		if !r.limited() || !r.standsAlone() {
			continue
		}
		if alone++; alone > maxAlone {
			r.node.fail("is rule %d with a limit that stands alone, want at most %d", alone, maxAlone)
			return
		}
		for _, other := range l.sound {
			if other == r || !other.limited() || other.order < r.order && other.standsAlone() || !r.meets(other.Rule) {
				continue
			}
			r.node.fail("holds a limit that stands alone, and a request may match the rule %s in %s, line %d, too; let match divide them",
				plain.Quoted(other.Name), other.File, other.Line)
			break
		}
	}
}

// standsAlone reports whether a limit of the rule cannot be decided beside others: no rule can join it to another.
func (r *Rule) standsAlone() bool {
	for _, limits := range r.limits() {
		if all := limits.Limits(); len(all) == 1 {
			_, err := weir.NewRule(limits.Name(), all[0], weir.Unlimited{})
			if refused, ok := errors.AsType[*weir.LimitError](err); ok && refused.Code == weir.CodeAlone {
				return true
			}
		}
	}
	return false
}
