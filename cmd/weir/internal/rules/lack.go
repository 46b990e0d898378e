package rules

import (
	"slices"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/front"
)

// Partial is a Source that does not know all of a request, such as a line of a log. A rule that depends on an attribute which the
// source lacks is undecided.
type Partial interface {
	Source
	// Lacks reports whether the source does not know if the request had the attribute.
	Lacks(name string) bool
}

// Undecided is a rule that takes no part in a decision, because the source lacks an attribute that it depends on.
type Undecided struct {
	Rule      *Rule
	Attribute string
}

// lacks reports whether a source does not know if a request had an attribute.
func (a attribute) lacks(from Partial) bool {
	if a.family == asURI || a.family == asTarget { // made of the path
		return from.Lacks(a.name) && from.Lacks("path")
	}
	return from.Lacks(a.name)
}

// Open reports whether a rule that is undecided may change the answer.
func (o *Outcome) Open() bool {
	if o.Verdict == Refuse && (o.Reason == ByPath || o.Reason == ByRule) {
		return false
	}
	return slices.ContainsFunc(o.Undecided, func(u Undecided) bool {
		return !u.Rule.Shadow && (u.Rule.Deny || o.Verdict != Allow || o.Reason != ByRule)
	})
}

// leaveOut notes the rules that depend on unknown values, and returns the others that match.
func (c *Config) leaveOut(matched []int32, values []value, o *Outcome) []int32 {
	for slot := range values {
		if !values[slot].unknown {
			continue
		}
		for _, r := range c.Rules {
			if r.dependsOn(values) == slot {
				o.Undecided = append(o.Undecided, Undecided{r, c.mentions[slot].name})
			}
		}
	}
	return slices.DeleteFunc(matched, func(at int32) bool {
		return slices.ContainsFunc(o.Undecided, func(u Undecided) bool { return u.Rule == c.Rules[at] })
	})
}

// dependsOn returns the slot of an unknown value that decides whether the rule matches, or its key, limit or cost. It
// returns -1 if there is none: the rule certainly does not match, or everything that it needs is known.
func (r *Rule) dependsOn(values []value) int {
	unknown := -1
	if !r.matchable() {
		return unknown
	}
	for i := range r.match {
		switch slot := r.match[i].slot; {
		case values[slot].unknown:
			unknown = slot
		case !r.match[i].fits(&values[slot]):
			return -1
		}
	}
	for i := range r.except {
		switch slot := r.except[i].slot; {
		case values[slot].unknown:
			unknown = slot
		case r.except[i].fits(&values[slot]):
			return -1
		}
	}
	if unknown >= 0 || r.Deny || r.Unlimited {
		return unknown
	}
	if slot := r.readsUnknown(values); slot >= 0 || r.Shadow {
		return slot
	}
	for _, p := range r.chain {
		if slot := p.readsUnknown(values); slot >= 0 {
			return slot
		}
	}
	return -1
}

// readsUnknown returns the slot of an unknown value that decides the key, limit or cost of the rule, or -1.
func (r *Rule) readsUnknown(values []value) int {
	for _, slot := range r.key {
		if values[slot].unknown {
			return slot
		}
	}
	if r.planBy >= 0 && values[r.planBy].unknown {
		if key, _ := r.keyOf(values); r.keys[key] == nil {
			return r.planBy
		}
	}
	if r.costFrom >= 0 && values[r.costFrom].unknown {
		return r.costFrom
	}
	return -1
}

// Recorded adds to an outcome what a rule makes of a key, or the hash of one, and a cost that a recording of a daemon names. It
// returns false if no rule has the name. The rule is undecided if the recording does not tell which of its limits decides.
func (c *Config) Recorded(rule, key string, hashed bool, cost int64, o *Outcome) bool {
	r := c.names[rule]
	if r == nil || r.Deny || r.Unlimited {
		return false
	}
	if shared := slices.ContainsFunc(c.Rules, func(other *Rule) bool { return other.Budget == rule }); shared {
		o.Undecided = append(o.Undecided, Undecided{r, "the rule beside its budget"})
		return true
	}
	if hashed && len(r.keys) > 0 {
		o.Undecided = append(o.Undecided, Undecided{r, "the keys, which it has as hashes"})
		return true
	}
	limit := r.Limit
	if own := r.ownLimit(key); own != nil {
		limit = own
	} else if len(r.plans) > 0 {
		o.Undecided = append(o.Undecided, Undecided{r, c.mentions[r.planBy].name})
		return true
	}
	if r.Shadow {
		o.Beside, o.BesideRules = append(o.Beside, limit.For(key, cost)), append(o.BesideRules, r)
		return true
	}
	if r.untold[untoldOf(hashed)] {
		why := "the calls of others that the rule " + r.chain[0].Name + " pays for"
		if at := slices.IndexFunc(r.chain, func(p *Rule) bool { return !r.tells(p, hashed) }); at >= 0 {
			why = "what the rule " + r.chain[at].Name + " in its place reads"
		}
		o.Undecided = append(o.Undecided, Undecided{r, why})
		return true
	}
	q := limit.For(key, cost)
	q.Otherwise = c.Otherwise(rule, key, "", cost)
	o.Requests, o.Rules = append(o.Requests, q), append(o.Rules, r)
	if r.Candidate != nil && limit == r.Limit {
		o.Beside, o.BesideRules = append(o.Beside, r.Candidate.For(key, cost)), append(o.BesideRules, r)
	}
	return true
}

// untoldOf returns the place in Rule.untold of recordings with keys, or with hashes of them.
func untoldOf(hashed bool) int {
	if hashed {
		return 1
	}
	return 0
}

// markUntold marks the rules whose calls a recording does not tell, because it does not say what a pool reads of them, or which of their
// limits decides. Then nobody knows what is left in that pool, so the other rules that name it are marked, too.
func markUntold(rules []*Rule) {
	floors, shared := map[*Rule][]*Rule{}, map[string]bool{}
	for _, r := range rules {
		shared[r.Budget] = true
		for _, p := range r.chain {
			if !r.Pool {
				floors[p] = append(floors[p], r)
			}
		}
	}
	for place, hashed := range []bool{false, true} {
		var todo []*Rule
		for _, r := range rules {
			if len(r.chain) > 0 && !r.Pool && (shared[r.Name] || len(r.plans) > 0 || hashed && len(r.keys) > 0 || slices.ContainsFunc(r.chain, func(p *Rule) bool { return !r.tells(p, hashed) })) {
				todo = append(todo, r)
			}
		}
		passed := map[*Rule]bool{}
		for ; len(todo) > 0; todo = todo[1:] {
			todo[0].untold[place] = true
			for _, p := range todo[0].chain {
				if !passed[p] {
					passed[p] = true
					todo = append(todo, floors[p]...)
				}
			}
		}
	}
}

// tells reports whether a key of the rule, or the hash of one, is all that a pool reads of a request.
func (r *Rule) tells(pool *Rule, hashed bool) bool {
	if len(pool.plans) > 0 || pool.ownCost || hashed && len(pool.keys) > 0 {
		return false
	}
	told := !hashed && !r.hashed && !slices.ContainsFunc(pool.key, func(slot int) bool { return !slices.Contains(r.key, slot) })
	return told || len(pool.key) == 0 || r.keyedLike(pool)
}

// ownLimit returns the limit of a single key, as engines have it, or nil.
func (r *Rule) ownLimit(key string) *weir.Rule {
	if !r.hashed {
		return r.keys[key]
	}
	for name, limit := range r.keys {
		if front.HashOf(name) == key {
			return limit
		}
	}
	return nil
}

// Mentions returns the names of the attributes that rules mention.
func (c *Config) Mentions() (names []string) {
	for _, a := range c.mentions {
		names = append(names, a.name)
	}
	return names
}
