package envoyproxy

import (
	"fmt"
	"maps"
	"slices"

	"github.com/weirflow/weir/cmd/weir/internal/imported"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// note notes what envoyproxy/ratelimit accepts, though it hardly does what its author wanted.
func (r *reader) note(at rules.Value, format string, values ...any) {
	file, line := at.Place()
	r.config.Notes = append(r.config.Notes, imported.Note{File: file, Line: line, Text: fmt.Sprintf(format, values...)})
}

// places are where a descriptor sets keys of a limit.
type places map[string]rules.Value

// flag reads a flag, and keeps the place of one that is on.
func (p places) flag(key string, v rules.Value) bool {
	on := v.Flag()
	if on {
		p[key] = v
	}
	return on
}

// noteNoLimit notes keys of a limit in a descriptor that has none.
func (r *reader) noteNoLimit(set places) {
	for _, key := range slices.Sorted(maps.Keys(set)) {
		r.note(set[key], "%s has no meaning in a descriptor without rate_limit", key)
	}
}

// noteUnreached notes a pattern whose values all fit an earlier one. A star of the pattern fits only stars of that.
func (r *reader) noteUnreached(in *level, d *descriptor, at rules.Value) {
	for _, other := range in.wild {
		if other != d && other.key == d.key && fits(other.parts, d.value) {
			r.note(at, "no value reaches %q: the pattern %q comes first", d.value, other.value)
			return
		}
	}
}

// noteEmpty notes a domain without descriptors.
func (r *reader) noteEmpty(l *level, domain string, at rules.Value) {
	if len(l.all) == 0 {
		r.note(at, "the domain %q has no descriptors, so it limits nothing", domain)
	}
}

// noteReplaces notes names that no limit has.
func (r *reader) noteReplaces() {
	names := map[string]bool{}
	for _, l := range r.config.Limits {
		names[l.Name] = true
	}
	for _, n := range r.replaced {
		if !names[n.name] {
			r.note(n.at, "replaces names %q, and no limit has this name", n.name)
		}
	}
}
