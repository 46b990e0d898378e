package envoyproxy

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/weirflow/weir/cmd/weir/internal/imported"
)

// Import makes rules of our own of the files. A rule matches the entries that lead to its descriptor, without entries
// that have a better descriptor in the files: of the same key, or with a further entry. Settings without a counterpart
// are noted.
func Import(c *Config) *imported.Result {
	m := &importer{config: c, names: map[string]bool{}, Result: &imported.Result{}}
	for _, text := range []string{
		"these rules take from all limits of a call or from none; weir serve --compat envoyproxy counts as envoyproxy/ratelimit does",
		"they match entries in any order, beside entries of keys that the files do not mention",
	} {
		m.Notes = append(m.Notes, imported.Note{Text: text})
	}
	m.Notes = append(m.Notes, c.Notes...)
	for _, domain := range c.order {
		keys := map[string]bool{}
		c.domains[domain].keys(keys)
		m.level(domain, keys, c.domains[domain], nil)
	}
	return m.Result
}

// keys collects the keys of entries.
func (l *level) keys(into map[string]bool) {
	for _, d := range l.all {
		into[d.key] = true
		if d.below != nil {
			d.below.keys(into)
		}
	}
}

// importer makes rules.
type importer struct {
	*imported.Result
	config *Config
	names  map[string]bool
}

// step is a descriptor on the way to a limit, and the values of its key that have a better one.
type step struct {
	*descriptor
	better []string
}

func (m *importer) level(domain string, keys map[string]bool, l *level, way []step) {
	for i, d := range l.all {
		at := step{descriptor: d}
		for j, other := range l.all {
			if other.key == d.key && better(other, d, j < i) {
				at.better = append(at.better, patternOf(other))
			}
		}
		path := append(way[:len(way):len(way)], at)
		if d.limit != nil {
			m.rule(domain, keys, path)
		}
		if d.below != nil {
			m.level(domain, keys, d.below, path)
		}
	}
}

// better reports whether an entry may lead to another descriptor than d though d fits it: exact values go before patterns,
// the first pattern before later ones, and these before the key alone.
func better(other, d *descriptor, before bool) bool {
	pattern, otherPattern := strings.Contains(d.value, "*"), strings.Contains(other.value, "*")
	switch {
	case other == d || other.value == "":
		return false
	case d.value == "":
		return true
	case !pattern:
		return false
	case otherPattern:
		return before
	}
	return fits(d.parts, other.value)
}

// patternOf returns the value of a descriptor as a rule has it.
func patternOf(d *descriptor) string {
	if d.value == "" {
		return "*"
	}
	return strings.ReplaceAll(d.value, `\`, `\\`)
}

// rule adds the rule of a limit, if it has a counterpart.
func (m *importer) rule(domain string, keys map[string]bool, path []step) {
	limit := path[len(path)-1].limit
	note := func(format string, args ...any) {
		m.Notes = append(m.Notes, imported.Note{File: limit.File, Line: limit.Line, Text: fmt.Sprintf(format, args...)})
	}
	match, except := imported.Patterns{"domain": {strings.NewReplacer(`\`, `\\`, "*", `\*`).Replace(domain)}}, imported.Patterns{}
	r := imported.Rule{Match: match, Shadow: limit.Shadow || m.config.Shadow}
	name := domain
	for _, s := range path {
		attribute := "descriptor." + s.key
		if match[attribute] != nil {
			note("not imported: the key %q comes twice, and a rule sees the first", s.key)
			return
		}
		match[attribute] = []string{patternOf(s.descriptor)}
		if len(s.better) > 0 {
			except[attribute] = s.better
		}
		if !s.share && (s.value == "" || strings.Contains(s.value, "*")) {
			r.Key = append(r.Key, attribute)
		}
		name += "." + joined(s.key, s.value)
	}
	for key := range keys {
		if attribute := "descriptor." + key; match[attribute] == nil {
			except[attribute] = []string{"*"}
		}
	}
	if len(except) > 0 {
		r.Except = except
	}
	decides(&r, limit)
	r.Name = m.name(name)
	if err := (&imported.Result{Rules: []imported.Rule{r}}).Check(); err != nil {
		note("not imported: %s", strings.Join(strings.Fields(err.Error()), " "))
		return
	}
	if limit.Quota || m.config.Quota {
		note("quota_mode has no counterpart: the limit refuses")
	}
	if len(limit.Replaces) > 0 {
		note("replaces has no counterpart: the limits decide beside each other")
	}
	m.Rules = append(m.Rules, r)
}

// odd are the characters that a name of a rule cannot have.
var odd = regexp.MustCompile(`[^A-Za-z0-9_.:/-]+`)

// name returns a name that no other rule has.
func (m *importer) name(path string) string {
	const most = 120
	path = odd.ReplaceAllString(path, "-")
	name := path[:min(len(path), most)]
	for i, base := 2, name; m.names[name]; i++ {
		name = fmt.Sprintf("%s-%d", base, i)
	}
	m.names[name] = true
	return name
}

// decides writes how a limit decides.
func decides(r *imported.Rule, limit *Limit) {
	switch {
	case limit.Unlimited:
		r.Unlimited = true
	case limit.Refuses():
		r.Deny = true
	default:
		var texts []string
		for _, l := range limit.Rule.Limits() {
			texts = append(texts, fmt.Sprint(l))
		}
		r.Limit = strings.Join(texts, " and ")
	}
	if limit.HasPolicy {
		r.OnFailure = limit.OnFailure.String()
	}
	if r.Unlimited || r.Deny {
		r.Key = nil
	}
}
