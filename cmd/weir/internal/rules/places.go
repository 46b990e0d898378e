package rules

import (
	"slices"

	"github.com/weirflow/weir/cmd/weir/internal/plain"
)

// Place is where a value stands in the file of its rule.
type Place struct {
	Name                string // of a limit in plans or keys, and of an attribute, as the file has it
	Line, Column, Width int32  // from 1; the width of its text, in characters
}

// placed are the places of a field of a rule.
type placed struct {
	field string
	at    []Place
}

// Places returns where the file has a field of the rule, and behind that the names of limits, or the patterns of an attribute, in it. The
// fields are "" for the whole rule, key, cost, otherwise, limit, candidate, message, keys, "plans: limits", and "except: path" for the patterns of
// an attribute; those of match are noted for uri alone. It returns nil for a field that the file does not have.
func (r *Rule) Places(field string) []Place {
	at := slices.IndexFunc(r.places, func(p placed) bool { return p.field == field })
	if at < 0 {
		return nil
	}
	return r.places[at].at
}

// ProblemAt returns a problem of a field of the rule, without the line of the file.
func (r *Rule) ProblemAt(field string, at Place, text string) Problem {
	where := whereOf(r.Name)
	if field != "" {
		where += ": " + field
	}
	return Problem{File: r.File, Line: int(at.Line), Column: int(at.Column), Width: int(at.Width), Where: where, Text: text}
}

// whereOf is how problems name a rule.
func whereOf(name string) string { return "rule " + plain.Quoted(name) }

// note notes where the rule has a field.
func (d *draft) note(field string, n node) {
	if n.Node != nil {
		d.places = append(d.places, placed{field, []Place{n.written()}})
	}
}

// noteCondition notes the patterns of an attribute, if warnings may be about one.
func (d *draft) noteCondition(field string, m member, slot int, patterns []node) {
	a := d.loader.config.mentions[slot]
	if field == "match" && a.family != asURI {
		return
	}
	p := placed{field + ": " + a.name, []Place{m.key.written()}}
	p.at[0].Name = m.name
	for _, v := range patterns {
		p.at = append(p.at, v.written())
	}
	d.places = append(d.places, p)
}

// noteFields notes the fields of a rule without a problem.
func (d *draft) noteFields() {
	d.note("", d.node)
	for _, field := range []string{"key", "cost", "otherwise", "message"} {
		d.note(field, d.given[field])
	}
	d.note("limit", d.limitNode)
	d.note("candidate", d.candidateNode)
	d.noteLimits("plans: limits", d.planNode)
	d.noteLimits("keys", d.keyNode)
}

// noteLimits notes limits by their names.
func (d *draft) noteLimits(field string, n node) {
	if n.Node == nil {
		return
	}
	p := placed{field, []Place{n.written()}}
	members, _ := n.members("")
	for _, m := range members {
		at := m.key.written()
		at.Name = m.name
		p.at = append(p.at, at)
	}
	d.places = append(d.places, p)
}

// written returns the place of a value.
func (n node) written() Place {
	t := n.token()
	return Place{Line: int32(t.Position.Line), Column: int32(t.Position.Column), Width: int32(widthOf(t))}
}
