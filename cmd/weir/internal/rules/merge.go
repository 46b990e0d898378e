package rules

import (
	"github.com/goccy/go-yaml/ast"

	"github.com/weirflow/weir/cmd/weir/internal/plain"
)

// fieldsRead are the fields of a mapping in a file of another format, while it is read.
type fieldsRead struct {
	Value
	want   string
	fields []Entry
	lines  map[string]int // of the fields that the mapping has itself
	merged map[string]int // places in fields of those that a merge key brings
}

// Fields returns the fields of a mapping, with those that a merge key of YAML brings. It notes a problem, and returns
// false, for any other value.
//
// A field goes before a merged one if it stands below the merge key. Programs do not agree about the other order, or
// about mappings in both places, so these are problems.
func (v Value) Fields(want string) (fields []Entry, ok bool) {
	if !v.opens() {
		return nil, false
	}
	pairs, ok := v.n.pairs(want)
	r := &fieldsRead{Value: v, want: want, lines: make(map[string]int, len(pairs)), merged: map[string]int{}}
	for _, pair := range pairs {
		if key, merges := pair.Key.(*ast.MergeKeyNode); merges {
			r.merge(key, v.of(pair.Value))
		} else if m, ok := v.n.member(pair, want, r.lines); ok {
			r.add(Entry{m.name, v.of(m.key.Node), v.of(m.Node)})
		}
	}
	return r.fields, ok
}

// add adds a field of the mapping itself.
func (r *fieldsRead) add(e Entry) {
	at, twice := r.merged[e.Name]
	switch {
	case !twice:
		r.fields = append(r.fields, e)
	case e.hasFields() || r.fields[at].hasFields():
		_, line := r.fields[at].Key.Place()
		e.Key.Fail("%s is merged from line %d, too, and programs differ on which of its fields count: write all of them here, without the merge", plain.Quoted(e.Name), line)
	default:
		r.fields[at] = e
	}
}

// merge adds the fields of a mapping, or of a list of mappings, where the first with a field counts.
func (r *fieldsRead) merge(key *ast.MergeKeyNode, from Value) {
	if len(r.merged) > 0 {
		r.of(key).Fail("<< is given twice; write one, with a list of values")
		return
	}
	sources := []Value{from}
	if _, list := from.n.Node.(*ast.SequenceNode); list {
		sources = from.List("mappings to merge")
	}
	for _, source := range sources {
		fields, _ := source.Fields("a mapping to merge")
		for _, e := range fields {
			if line, above := r.lines[e.Name]; above {
				r.of(key).Fail("brings %s, which stands above in line %d, and programs differ on which of them counts: write << first", plain.Quoted(e.Name), line)
			} else if _, known := r.merged[e.Name]; !known {
				r.merged[e.Name] = len(r.fields)
				r.fields = append(r.fields, e)
			}
		}
	}
}

func (v Value) hasFields() bool {
	switch v.n.Node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return true
	}
	return false
}
