package rules

import (
	"maps"
	"slices"
)

// The attributes of a descriptor that are of the pushed limit that it finds. Files cannot name them: replaces does.
const (
	PushedLimit = "pushed.limit" // its name
	PushedKey   = "pushed.key"
)

// readReplaces reads the name of a pushed limit.
func (d *draft) readReplaces(n node) {
	d.Replaces, _ = n.text("the name of a pushed limit, as weir ctl rules shows it")
}

// completeReplaces has a rule that replaces a pushed limit match what finds that. Without a key of its own it has the key of
// that limit.
func (d *draft) completeReplaces() {
	if d.Replaces == "" {
		return
	}
	n := d.given["replaces"]
	if slot := d.loader.mention(n, PushedLimit); slot >= 0 {
		d.match = append(d.match, condition{slot, []pattern{{kind: exact, head: d.Replaces, source: d.Replaces}}})
	}
	if _, given := d.given["key"]; given || d.Deny || d.Unlimited {
		return
	}
	if slot := d.loader.mention(n, PushedKey); slot >= 0 {
		d.key = []int{slot}
	}
}

// mention returns the place of a text attribute among those that rules mention, or -1 after a problem.
func (l *loader) mention(n node, name string) int {
	if slot, seen := l.slots[name]; seen {
		return slot
	}
	if len(l.config.mentions) == maxAttributes {
		n.fail("is attribute %d, want at most %d in all rules", maxAttributes+1, maxAttributes)
		return -1
	}
	l.slots[name] = len(l.config.mentions)
	l.config.mentions = append(l.config.mentions, attribute{name, asText})
	return l.slots[name]
}

// Beside returns the rules of files together with those of another format, as New has them. Attributes find the former.
func (c *Config) Beside(list []*Rule, foreign any) *Config {
	all := *c
	all.Foreign, all.Rules, all.names = foreign, slices.Concat(c.Rules, list), maps.Clone(c.names)
	for i, r := range list {
		r.order, r.cost, r.costFrom, r.planBy, r.missing, r.foreign = len(c.Rules)+i, 1, -1, -1, MissingShare, true
		all.names[r.Name] = r
	}
	return &all
}

// Overlaid reports whether the files have rules that decide requests beside those of another format.
func (c *Config) Overlaid() bool {
	return c.Foreign != nil && slices.ContainsFunc(c.Rules, func(r *Rule) bool { return r.matchable() })
}

// OnlyRules returns a problem for each setting that a file over pushed rules cannot have.
func (c *Config) OnlyRules() Problems {
	var problems Problems
	for _, has := range []struct {
		field string
		is    bool
	}{{"listen", len(c.Listen) > 0}, {"engine, peers or deadline", len(c.Engine) > 0}, {"default: deny", c.Deny}} {
		if has.is {
			file := "--overlay"
			if len(c.Rules) > 0 {
				file = c.Rules[0].File
			}
			problems = append(problems, Problem{File: file, Text: has.field + " has no place in a file of --overlay: it has rules alone"})
		}
	}
	return problems
}

// Replacing returns the first rule that replaces a pushed limit, or nil.
func (c *Config) Replacing() *Rule {
	for _, r := range c.Rules {
		if r.Replaces != "" {
			return r
		}
	}
	return nil
}
