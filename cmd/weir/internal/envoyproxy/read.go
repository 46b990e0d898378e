package envoyproxy

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// maxLimits bounds the limits of all files.
const maxLimits = 20_000

// reader makes a Config of files.
type reader struct {
	rules.Options
	config   *Config
	problems *rules.Problems
	list     []*rules.Rule
	names    map[string]bool
	first    map[string]string // the files of domains
	replaced []named           // in replaces
	short    map[string]string // the names that people see, by the paths of limits; nil for files
}

// named is a name, and where it stands.
type named struct {
	name string
	at   rules.Value
}

// Parser returns a parser of files.
func Parser(s Settings, stats *Stats) func(rules.Options, ...rules.File) (*rules.Config, error) {
	return func(o rules.Options, files ...rules.File) (*rules.Config, error) {
		r := newReader(o, s, stats)
		left := rules.NewSize()
		for _, f := range files {
			if root, ok := rules.ReadForeign(f, left, r.problems); ok {
				r.file(f.Name, root)
			}
		}
		config, problems := r.done()
		if problems != nil {
			stats.failed.Add(1)
			return nil, problems
		}
		stats.loaded.Add(1)
		return config, nil
	}
}

func newReader(o rules.Options, s Settings, stats *Stats) *reader {
	return &reader{
		Options: o, problems: &rules.Problems{}, names: map[string]bool{}, first: map[string]string{},
		config: &Config{Settings: s, domains: map[string]*level{}, stats: stats},
	}
}

// done returns what has been read, or what is wrong with it.
func (r *reader) done() (*rules.Config, rules.Problems) {
	r.noteReplaces()
	if len(*r.problems) > 0 {
		return nil, *r.problems
	}
	return rules.New(r.list, r.config), nil
}

// fields reads a mapping. Each known key goes to its function. A key of another place has no meaning and is noted, as
// envoyproxy/ratelimit accepts it; any other key is a problem.
func (r *reader) fields(v rules.Value, want string, known map[string]func(rules.Value)) {
	fields, _ := v.Fields(want)
	for _, f := range fields {
		switch read := known[f.Name]; {
		case read != nil:
			read(f.Value)
		case slices.Contains(keys, f.Name):
			r.note(f.Key, "%s has no meaning in %s", f.Name, want)
		case f.Name == "rules":
			f.Key.Fail("is of a file of rules, which weir serve reads without --compat")
		default:
			f.Key.Fail("the key %q is unknown, want one of %s", f.Name, strings.Join(keys, ", "))
		}
	}
}

// keys are those of envoyproxy/ratelimit, and our own one.
var keys = []string{
	"domain", "key", "value", "descriptors", "rate_limit", "unit", "requests_per_unit", "unlimited", "shadow_mode", "quota_mode",
	"name", "replaces", "detailed_metric", "value_to_metric", "share_threshold", "metadata", "weir",
}

// file reads one file.
func (r *reader) file(name string, root rules.Value) {
	domain, descriptors := "", rules.Value{}
	var given rules.Value
	r.fields(root, "a file", map[string]func(rules.Value){
		"domain":      func(v rules.Value) { domain, given = v.Text("a domain"), v },
		"descriptors": func(v rules.Value) { descriptors = v },
	})
	if domain == "" {
		given = root
	}
	if into := r.domain(name, domain, given); into != nil {
		r.descriptors(into, domain, descriptors)
		r.noteEmpty(into, domain, given)
	}
}

// domain returns the descriptors of a domain, for a file or resource to add its own, or nil after a problem.
func (r *reader) domain(file, domain string, at rules.Value) *level {
	first, twice := r.first[domain]
	switch {
	case domain == "":
		at.Fail("the domain is missing")
		return nil
	case twice && !r.config.MergeDomains:
		at.Fail("the domain %q is in %s, too; MERGE_DOMAIN_CONFIG=true merges them", domain, first)
		return nil
	case !twice:
		r.first[domain], r.config.domains[domain] = file, newLevel()
		r.config.order = append(r.config.order, domain)
	}
	return r.config.domains[domain]
}

func newLevel() *level { return &level{exact: map[pair]*descriptor{}, any: map[string]*descriptor{}} }

// given is a descriptor as a file or a control plane gives it.
type given struct {
	*descriptor
	limit  *draft
	set    places      // keys of a limit
	shared rules.Value // share_threshold
	at     rules.Value
	below  func(into *level, path string) // reads the descriptors below; nil without them
}

// descriptors reads a list of descriptors into a level.
func (r *reader) descriptors(into *level, path string, list rules.Value) {
	for _, v := range list.List("a list of descriptors, each beginning with '- key: '") {
		r.put(into, path, r.descriptor(v))
	}
}

// add adds a descriptor, unless there is one of the same key and value.
func (l *level) add(d *descriptor, path string, v rules.Value) {
	l.all = append(l.all, d)
	switch {
	case l.exact[d.pair] != nil || d.value == "" && l.any[d.key] != nil:
		v.Fail("the descriptor %s is given twice", path)
	case d.value == "":
		l.any[d.key] = d
	default:
		l.exact[d.pair] = d // a pattern is a value, too
		if d.parts = strings.Split(d.value, "*"); len(d.parts) > 1 {
			l.wild = append(l.wild, d)
		}
	}
}

// descriptor reads one descriptor of a file.
func (r *reader) descriptor(v rules.Value) given {
	d, l, set := &descriptor{}, &draft{Limit: &Limit{}}, places{}
	var below, shared rules.Value
	r.fields(v, "a descriptor", map[string]func(rules.Value){
		"key":             func(v rules.Value) { d.key = v.Text("a key") },
		"value":           func(v rules.Value) { d.value = v.Text("a value") },
		"rate_limit":      func(v rules.Value) { r.rateLimit(l, v) },
		"descriptors":     func(v rules.Value) { below = v },
		"shadow_mode":     func(v rules.Value) { l.Shadow = set.flag("shadow_mode", v) },
		"quota_mode":      func(v rules.Value) { l.Quota = set.flag("quota_mode", v) },
		"detailed_metric": func(v rules.Value) { l.Detailed = set.flag("detailed_metric", v) },
		"value_to_metric": func(v rules.Value) { d.valueToMetric = v.Flag() },
		"share_threshold": func(v rules.Value) { d.share, shared = v.Flag(), v },
		"metadata":        func(v rules.Value) { d.metadata, set["metadata"] = metadata(v), v },
		"weir":            func(v rules.Value) { r.extension(l, v) },
	})
	g := given{descriptor: d, limit: l, set: set, shared: shared, at: v}
	if !below.IsEmpty() {
		g.below = func(into *level, path string) { r.descriptors(into, path, below) }
	}
	return g
}

// put checks a descriptor and adds it to a level, with its limit and the descriptors below it.
func (r *reader) put(into *level, path string, g given) {
	d, l := g.descriptor, g.limit
	path += "." + joined(d.key, d.value)
	switch {
	case d.key == "":
		g.at.Fail("the descriptor has no key")
		return
	case d.value == "" && strings.HasSuffix(d.key, "*"): // with a value, as Envoy Gateway writes a route without a host name, the star is text
		g.at.Fail("the key %q ends with a star and has no value, and only values are patterns", d.key)
		return
	case d.share && !strings.Contains(d.value, "*"):
		g.shared.Fail("share_threshold needs a value with a star")
	case l.extended && !l.given:
		l.extensionAt.Fail("weir belongs to a rate_limit, and the descriptor has none")
	}
	if l.given {
		d.limit = l.Limit
		r.finish(l, path, g.at)
	} else {
		r.noteNoLimit(g.set)
	}
	if g.below != nil {
		d.below = newLevel()
		g.below(d.below, path)
	}
	if into.add(d, path, g.at); len(d.parts) > 1 {
		r.noteUnreached(into, d, g.at)
	}
}

// metadata reads the metadata of a descriptor.
func metadata(v rules.Value) *structpb.Struct {
	if v.IsEmpty() {
		return nil
	}
	fields, ok := v.Any().(map[string]any)
	if !ok {
		v.Fail("metadata has no fields")
		return nil
	}
	s, err := structpb.NewStruct(fields)
	if err != nil {
		v.Fail("metadata: %v", err)
	}
	return s
}
