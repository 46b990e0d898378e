package envoyproxy

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

const day = 24 * time.Hour

// periods are the lengths of units. Windows begin at whole multiples of them since 1970.
var periods = map[service.RateLimitResponse_RateLimit_Unit]time.Duration{
	service.RateLimitResponse_RateLimit_SECOND: time.Second,
	service.RateLimitResponse_RateLimit_MINUTE: time.Minute,
	service.RateLimitResponse_RateLimit_HOUR:   time.Hour,
	service.RateLimitResponse_RateLimit_DAY:    day,
	service.RateLimitResponse_RateLimit_WEEK:   7 * day,
	service.RateLimitResponse_RateLimit_MONTH:  30 * day,
	service.RateLimitResponse_RateLimit_YEAR:   365 * day,
}

// Period returns the length of a unit, or 0.
func Period(unit service.RateLimitResponse_RateLimit_Unit) time.Duration { return periods[unit] }

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
}

// Parser returns a parser of files for [rules.Options].
func Parser(s Settings, stats *Stats) func(rules.Options, ...rules.File) (*rules.Config, error) {
	return func(o rules.Options, files ...rules.File) (*rules.Config, error) {
		var problems rules.Problems
		r := &reader{
			Options: o, problems: &problems, names: map[string]bool{}, first: map[string]string{},
			config: &Config{Settings: s, domains: map[string]*level{}, stats: stats},
		}
		left := rules.NewSize()
		for _, f := range files {
			if root, ok := rules.ReadForeign(f, left, &problems); ok {
				r.file(f.Name, root)
			}
		}
		if len(problems) > 0 {
			stats.failed.Add(1)
			return nil, problems
		}
		stats.loaded.Add(1)
		return rules.New(r.list, r.config), nil
	}
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
			r.ignore(f.Key, f.Name, want)
		default:
			f.Key.Fail("the key %q is unknown, want one of %s", f.Name, strings.Join(keys, ", "))
		}
	}
}

// ignore notes a key that has no meaning where it stands.
func (r *reader) ignore(at rules.Value, name, within string) {
	file, line := at.Place()
	r.config.Ignored = append(r.config.Ignored, fmt.Sprintf("%s:%d: %s has no meaning in %s", file, line, name, within))
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
	first, twice := r.first[domain]
	switch {
	case domain == "":
		root.Fail("the domain is missing")
		return
	case twice && !r.config.MergeDomains:
		given.Fail("the domain %q is in %s, too; MERGE_DOMAIN_CONFIG=true merges them", domain, first)
		return
	case !twice:
		r.first[domain], r.config.domains[domain] = name, newLevel()
		r.config.order = append(r.config.order, domain)
	}
	r.descriptors(r.config.domains[domain], domain, descriptors)
}

func newLevel() *level { return &level{exact: map[pair]*descriptor{}, any: map[string]*descriptor{}} }

// descriptors reads a list of descriptors into a level.
func (r *reader) descriptors(into *level, path string, list rules.Value) {
	for _, v := range list.List("a list of descriptors, each beginning with '- key: '") {
		d := &descriptor{}
		if at := r.descriptor(d, path, v); at != "" {
			into.add(d, at, v)
		}
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

// draft is the limit of a descriptor while it is read.
type draft struct {
	*Limit
	given       bool
	count       int64
	unit        string
	own         []weir.Limit
	extended    bool
	at          rules.Value // the rate_limit
	limitAt     rules.Value // the number, or the limit in text form
	extensionAt rules.Value
}

// descriptor reads one descriptor. It returns its path, or "" without a key.
func (r *reader) descriptor(d *descriptor, path string, v rules.Value) string {
	l := &draft{Limit: &Limit{}}
	var below, shared, shadow rules.Value
	r.fields(v, "a descriptor", map[string]func(rules.Value){
		"key":             func(v rules.Value) { d.key = v.Text("a key") },
		"value":           func(v rules.Value) { d.value = v.Text("a value") },
		"rate_limit":      func(v rules.Value) { r.rateLimit(l, v) },
		"descriptors":     func(v rules.Value) { below = v },
		"shadow_mode":     func(v rules.Value) { l.Shadow, shadow = v.Flag(), v },
		"quota_mode":      func(v rules.Value) { l.Quota = v.Flag() },
		"detailed_metric": func(v rules.Value) { l.Detailed = v.Flag() },
		"value_to_metric": func(v rules.Value) { d.valueToMetric = v.Flag() },
		"share_threshold": func(v rules.Value) { d.share, shared = v.Flag(), v },
		"metadata":        func(v rules.Value) { d.metadata = metadata(v) },
		"weir":            func(v rules.Value) { r.extension(l, v) },
	})
	path += "." + joined(d.key, d.value)
	switch {
	case d.key == "":
		v.Fail("the descriptor has no key")
		return ""
	case strings.Contains(d.key, "*"):
		v.Fail("the key %q has a star, and only values are patterns", d.key)
		return ""
	case d.share && !strings.Contains(d.value, "*"):
		shared.Fail("share_threshold needs a value with a star")
	case l.extended && !l.given:
		l.extensionAt.Fail("weir belongs to a rate_limit, and the descriptor has none")
	case l.Shadow && !l.given:
		r.ignore(shadow, "shadow_mode", "a descriptor without rate_limit")
	}
	if l.given {
		d.limit = l.Limit
		r.finish(l, path, v)
	}
	if !below.IsEmpty() {
		d.below = newLevel()
		r.descriptors(d.below, path, below)
	}
	return path
}

// rateLimit reads a rate_limit.
func (r *reader) rateLimit(l *draft, v rules.Value) {
	if v.IsEmpty() {
		return
	}
	l.given, l.at = true, v
	r.fields(v, "rate_limit", map[string]func(rules.Value){
		"unit":              func(v rules.Value) { l.unit = strings.ToUpper(v.Text("a unit")) },
		"requests_per_unit": func(v rules.Value) { l.count, l.limitAt = v.Whole(0, math.MaxUint32), v },
		"unlimited":         func(v rules.Value) { l.Unlimited = v.Flag() },
		"name":              func(v rules.Value) { l.Name = v.Text("a name") },
		"replaces":          func(v rules.Value) { r.replaces(l, v) },
	})
	if slices.Contains(l.Replaces, l.Name) && l.Name != "" {
		v.Fail("replaces names the limit itself")
	}
}

func (r *reader) replaces(l *draft, v rules.Value) {
	for _, one := range v.List("a list of names, each beginning with '- name: '") {
		name := ""
		r.fields(one, "replaces", map[string]func(rules.Value){"name": func(v rules.Value) { name = v.Text("a name") }})
		if name == "" {
			one.Fail("replaces has no name")
		}
		l.Replaces = append(l.Replaces, name)
	}
}

// extension reads our own key.
func (r *reader) extension(l *draft, v rules.Value) {
	l.extended, l.extensionAt = true, v
	fields, _ := v.Fields("limit, all_or_nothing and on_failure")
	for _, f := range fields {
		switch f.Name {
		case "limit":
			l.own, l.limitAt, l.Own = f.Limits(), f.Value, true
		case "all_or_nothing":
			l.Atomic = f.Flag()
		case "on_failure":
			_ = l.OnFailure.UnmarshalText([]byte(f.OneOf("deny", "allow", "local")))
		default:
			f.Key.Fail("the key %q of weir is unknown, want limit, all_or_nothing or on_failure", f.Name)
		}
	}
}

// finish makes the rules of the engine.
func (r *reader) finish(l *draft, path string, v rules.Value) {
	l.File, l.Line = v.Place()
	l.path = path
	unit := service.RateLimitResponse_RateLimit_Unit(service.RateLimitResponse_RateLimit_Unit_value[l.unit])
	switch {
	case l.Unlimited && unit != 0:
		l.at.Fail("rate_limit has a unit and is unlimited")
		return
	case l.Unlimited:
		r.config.Limits = append(r.config.Limits, l.Limit)
		return
	case unit == 0:
		l.at.Fail("the unit %q of rate_limit is none of second, minute, hour, day, week, month, year", strings.ToLower(l.unit))
		return
	case len(r.list) == maxLimits:
		l.at.Fail("is limit %d, want at most %d", maxLimits+1, maxLimits)
		return
	}
	l.Atomic = l.Atomic || r.config.AllOrNothing
	l.Shown = &service.RateLimitResponse_RateLimit{RequestsPerUnit: uint32(l.count), Unit: unit, Name: l.Name}
	if err := r.makeRules(l, path, periods[unit]); err != nil {
		if l.limitAt.IsEmpty() {
			l.limitAt = l.at
		}
		l.limitAt.FailLimit(err)
		return
	}
	r.config.Limits = append(r.config.Limits, l.Limit)
	r.list = append(r.list, &rules.Rule{Name: l.Rule.Name(), File: l.File, Line: l.Line, OnFailure: l.OnFailure, Limit: l.Rule})
}

// makeRules makes the rule of a limit. A limit of nothing counts in a window of one.
func (r *reader) makeRules(l *draft, path string, period time.Duration) (err error) {
	name := r.name(path)
	if l.Own {
		if l.Rule, err = weir.NewRule(name, l.own...); err == nil {
			err = r.check(l.Rule)
		}
		return err
	}
	if l.Rule, err = Window(name, max(l.count, 1), period); err != nil {
		return err
	}
	if err = r.check(l.Rule); err != nil {
		return err
	}
	if l.Beyond, err = Window(name, l.count+1, period); err != nil || r.check(l.Beyond) != nil {
		l.Beyond = l.Rule // the largest limit that is held: no count goes beyond it
	}
	return nil
}

// Window returns the rule of a window.
func Window(name string, count int64, period time.Duration) (*weir.Rule, error) {
	return weir.NewRule(name, weir.FixedWindow{Rate: weir.Rate{Count: count, Period: period}})
}

func (r *reader) check(rule *weir.Rule) error {
	if r.Check == nil {
		return nil
	}
	return r.Check(rule)
}

// name returns the name of a rule: its path, as statistics have it. A path that is no name, or the name of another one,
// is changed.
func (r *reader) name(path string) string {
	const most = 200
	name := strings.NewReplacer("=", "%3D", "\x00", "%00").Replace(path)
	name = strings.ToValidUTF8(name[:min(len(name), most)], "")
	for i, base := 2, name; r.names[name]; i++ {
		name = fmt.Sprintf("%s~%d", base, i)
	}
	r.names[name] = true
	return name
}

// metadata reads the metadata of a descriptor.
func metadata(v rules.Value) *structpb.Struct {
	if v.IsEmpty() {
		return nil
	}
	fields, ok := plain(v.Any()).(map[string]any)
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

// plain makes a value of YAML one of JSON: other keys become text, and numbers that a struct has no type for become
// another type.
func plain(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
		return v
	case map[any]any:
		m := map[string]any{}
		for k := range v {
			m[fmt.Sprint(k)] = plain(v[k])
		}
		return m
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
		return v
	}
	return value
}
