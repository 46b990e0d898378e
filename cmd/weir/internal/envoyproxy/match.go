package envoyproxy

import (
	"maps"
	"slices"
	"strings"

	envoy "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"github.com/weirflow/weir/front"
)

// Has reports whether a domain has rules.
func (c *Config) Has(domain string) bool { return c.domains[domain] != nil }

// Match finds the limit of a descriptor: that of the descriptor in the files that its last entry leads to. In a list
// of descriptors an exact value goes before one with stars, which goes before none.
func (c *Config) Match(domain string, entries []*envoy.RateLimitDescriptor_Entry) Match {
	at := c.domains[domain]
	var space [8]*descriptor
	path := space[:0]
	for i, e := range entries {
		if at == nil {
			return Match{}
		}
		found := at.find(e)
		if found == nil {
			return Match{}
		}
		path = append(path, found)
		if i == len(entries)-1 && found.limit != nil {
			return Match{found.limit, keyOf(path, entries), c.statOf(domain, path, entries), found.metadata}
		}
		at = found.below
	}
	return Match{}
}

// mostFound bounds the entries whose order Find looks for.
const mostFound = 8

// Find is Match for entries whose order is not known: it looks for one that leads to a limit.
func (c *Config) Find(domain string, values map[string]string) Match {
	if len(values) > mostFound {
		return Match{}
	}
	var entries []*envoy.RateLimitDescriptor_Entry
	var look func(at *level) Match
	look = func(at *level) Match {
		if at == nil {
			return Match{}
		}
		for _, key := range slices.Sorted(maps.Keys(values)) {
			e := &envoy.RateLimitDescriptor_Entry{Key: key, Value: values[key]}
			found := at.find(e)
			if found == nil || slices.ContainsFunc(entries, func(e *envoy.RateLimitDescriptor_Entry) bool { return e.Key == key }) {
				continue
			}
			entries = append(entries, e)
			m := Match{}
			if len(entries) == len(values) {
				m = c.Match(domain, entries)
			} else {
				m = look(found.below)
			}
			if m.Limit != nil {
				return m
			}
			entries = entries[:len(entries)-1]
		}
		return Match{}
	}
	return look(c.domains[domain])
}

// find returns the descriptor for an entry, or nil.
func (l *level) find(e *envoy.RateLimitDescriptor_Entry) *descriptor {
	if d := l.exact[pair{e.Key, e.Value}]; d != nil {
		return d
	}
	for _, d := range l.wild {
		if d.key == e.Key && fits(d.parts, e.Value) {
			return d
		}
	}
	return l.any[e.Key]
}

// fits reports whether a value has the parts of a pattern, in order. Each is found at its first place, which leaves most
// for the later ones.
func fits(parts []string, value string) bool {
	last := len(parts) - 1
	rest, ok := strings.CutPrefix(value, parts[0])
	if !ok {
		return false
	}
	if rest, ok = strings.CutSuffix(rest, parts[last]); !ok {
		return false
	}
	for _, part := range parts[1:last] {
		at := strings.Index(rest, part)
		if at < 0 {
			return false
		}
		rest = rest[at+len(part):]
	}
	return true
}

// keyOf joins the values of entries, so that different ones make different keys. Values that share a threshold count as
// their pattern.
func keyOf(path []*descriptor, entries []*envoy.RateLimitDescriptor_Entry) string {
	if len(path) == 1 && !strings.ContainsAny(path[0].shared(entries[0].Value), `\|`) {
		return front.BoundedKey(path[0].shared(entries[0].Value))
	}
	var b strings.Builder
	for i, d := range path {
		if i > 0 {
			b.WriteByte('|')
		}
		_, _ = escaper.WriteString(&b, d.shared(entries[i].Value))
	}
	return front.BoundedKey(b.String())
}

var escaper = strings.NewReplacer(`\`, `\\`, `|`, `\|`)

// shared returns the value that counts: the pattern, if its values share a threshold.
func (d *descriptor) shared(value string) string {
	if d.share {
		return d.value
	}
	return value
}

// statOf returns the name of the statistics of a match. detailed_metric shows each value, and an empty one as such;
// otherwise a value is shown if the file names it, or asks for it by value_to_metric. A pattern that shares its threshold
// is always shown as it is, and leaves no empty values.
func (c *Config) statOf(domain string, path []*descriptor, entries []*envoy.RateLimitDescriptor_Entry) string {
	limit := path[len(path)-1].limit
	shows, shares := limit.Detailed, false
	for _, d := range path {
		shows, shares = shows || d.valueToMetric, shares || d.share
	}
	if !shows {
		return limit.path
	}
	name := domain
	for i, d := range path {
		value := d.value
		if !d.share && (limit.Detailed || d.valueToMetric) {
			value = entries[i].Value
		}
		if limit.Detailed && !shares {
			name += "." + d.key + "_" + value
		} else {
			name += "." + joined(d.key, value)
		}
	}
	return name
}

// StatOf returns the name of the statistics of a limit in the call.
func StatOf(domain string, entries []*envoy.RateLimitDescriptor_Entry) string {
	for _, e := range entries {
		domain += "." + joined(e.Key, e.Value)
	}
	return domain
}

// joined joins a key and a value as envoyproxy/ratelimit does.
func joined(key, value string) string {
	if value == "" {
		return key
	}
	return key + "_" + value
}
