package envoyproxy

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// Names lets an engine know limits by their full names, though people see short ones. So the states of a limit stay
// when its short name changes, and daemons that share an engine agree. It is safe for concurrent use.
type Names struct{ current atomic.Pointer[nameTable] }

// nameTable are the names of the limits in force.
type nameTable struct {
	rules  map[*weir.Rule]*weir.Rule // with full names, by those with short names
	full   map[string]string         // by the short name
	short  map[string]string         // by the full name
	made   sync.Map                  // like rules, of limits in place of those of a rule
	number atomic.Int64              // in made
	before *nameTable                // of the limits before, for calls in flight; its own before is nil
}

// mostMade bounds the rules that stand in place of those of limits.
const mostMade = 10_000

// Use takes the names of limits.
func (n *Names) Use(c *Config) {
	t := &nameTable{rules: map[*weir.Rule]*weir.Rule{}, full: map[string]string{}, short: map[string]string{}}
	for _, l := range c.Limits {
		if l.Full == "" || l.Rule == nil {
			continue
		}
		t.full[l.Rule.Name()], t.short[l.Full] = l.Full, l.Rule.Name()
		for _, r := range []*weir.Rule{l.Rule, l.Beyond} {
			if r != nil && t.rules[r] == nil {
				t.rules[r] = renamed(r, l.Full)
			}
		}
	}
	if old := n.current.Load(); old != nil {
		t.before = &nameTable{rules: old.rules, full: old.full, short: old.short}
	}
	n.current.Store(t)
}

// renamed returns a rule by another name.
func renamed(r *weir.Rule, name string) *weir.Rule {
	again, err := weir.NewRule(name, r.Limits()...)
	if err != nil { // the limits are valid, and so is the name of a limit that was read
		return r
	}
	return again
}

// Around returns an engine that has full names for the engine below.
func (n *Names) Around(below weir.Engine) weir.Engine { return weir.Wrap(below, n.around) }

func (n *Names) around(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
	t := n.current.Load()
	if t == nil {
		return next(ctx, call)
	}
	call = enginekit.Copied(call)
	for i := range enginekit.Decisions(&call) {
		c, _, _, _ := enginekit.DecisionAt(&call, &weir.Answer{}, nil, i)
		c.Requests = t.lengthen(c.Requests)
	}
	a, err := next(ctx, call)
	for i := range enginekit.Decisions(&call) {
		_, d, r, _ := enginekit.DecisionAt(&call, &a, err, i)
		t.shorten(d)
		if r != nil {
			t.shorten(&r.Decision)
		}
	}
	return a, err
}

// lengthen returns requests with full names.
func (t *nameTable) lengthen(requests []weir.Request) []weir.Request {
	var changed []weir.Request
	for i, q := range requests {
		r := t.ruleOf(q.Rule)
		if r == q.Rule {
			continue
		}
		if changed == nil {
			changed = slices.Clone(requests)
		}
		changed[i].Rule = r
	}
	if changed == nil {
		return requests
	}
	return changed
}

// ruleOf returns the rule that the engine gets.
func (t *nameTable) ruleOf(r *weir.Rule) *weir.Rule {
	if r == nil {
		return nil
	}
	if full := t.rules[r]; full != nil {
		return full
	}
	if t.before != nil && t.before.rules[r] != nil {
		return t.before.rules[r]
	}
	name := t.full[r.Name()]
	if name == "" {
		return r
	}
	if made, ok := t.made.Load(r); ok {
		return made.(*weir.Rule)
	}
	if t.number.Add(1) > mostMade { // each change of an override makes new rules
		t.made.Clear()
		t.number.Store(0)
	}
	made, _ := t.made.LoadOrStore(r, renamed(r, name))
	return made.(*weir.Rule)
}

// shorten gives a decision the short name.
func (t *nameTable) shorten(d *weir.Decision) {
	if short, ok := t.short[d.Rule]; ok {
		d.Rule = short
	} else if t.before != nil {
		if short, ok := t.before.short[d.Rule]; ok {
			d.Rule = short
		}
	}
}
