package front

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

// Rules are the rules of some options, ready to use.
type Rules[R, A any] struct {
	Options[R, A]      // with their defaults
	own           bool // the engine, which no other rules use
	list          []Rule[R, A]
	fixed         []*Set          // of each of the list; nil if it has a Plan
	names         map[string]bool // names of the rules without plans
	plans         plans
	asks          sync.Pool
}

// NewRules returns the rules of options, which may have none. Its errors are those of New.
func NewRules[R, A any](o Options[R, A]) (*Rules[R, A], error) {
	own := o.Engine == nil
	o.setDefaults()
	if err := o.layers(); err != nil {
		return nil, err
	}
	rs := &Rules[R, A]{Options: o, names: map[string]bool{}, own: own}
	problems := o.check()
	for i, given := range o.Rules {
		field := fmt.Sprintf("rules[%d]", i)
		set, err := rs.compile(&given)
		if err != nil {
			problems = append(problems, inField(field, err))
			continue
		}
		if set != nil {
			name := set.Rule.Name()
			if rs.names[name] {
				problems = append(problems, OptionError(o.Name, field, "has the name %q of an earlier rule and would share its states: give it another name", name))
			}
			rs.names[name] = true
		}
		rs.list, rs.fixed = append(rs.list, given), append(rs.fixed, set)
	}
	return rs, errors.Join(problems...)
}

// compile checks a rule, and gives it a key. It returns the rule's set, or nil if it has a Plan.
func (rs *Rules[R, A]) compile(given *Rule[R, A]) (*Set, error) {
	sources := 0
	for _, is := range [...]bool{given.Limit != "", given.Rule != nil, given.Plan != nil} {
		if is {
			sources++
		}
	}
	switch {
	case sources != 1:
		return nil, OptionError(rs.Name, "", "has not exactly one of Limit, Rule and Plan")
	case given.Missing < MissingShares || given.Missing > MissingUnlimited:
		return nil, OptionError(rs.Name, "missing", "%d is no policy", given.Missing)
	case given.Estimate != nil && given.After == nil && !given.Settled:
		return nil, OptionError(rs.Name, "estimate", "learns true costs, and the rule has none: set After or Settled")
	}
	name := "client"
	if given.Key == nil {
		given.Key = rs.Key
	} else {
		name = "key"
	}
	switch {
	case given.Plan != nil:
		return nil, nil
	case given.Rule != nil:
		return rs.newSetFor(given, given.Rule)
	}
	rule, err := rs.parse(given.Limit, name)
	if err != nil {
		return nil, err
	}
	return rs.newSetFor(given, rule)
}

// parse reads the text of a rule. Only an engine that no other rules use gives it a name, because states belong to names.
func (rs *Rules[R, A]) parse(text, name string) (*weir.Rule, error) {
	switch {
	case strings.Contains(text, "="):
	case rs.own:
		text = name + "=" + text
	default:
		if _, err := weir.ParseLimits(text); err != nil {
			return nil, err
		}
		return nil, OptionError(rs.Name, "limit", "%q has no name, and rules of one name share their states on the Engine: name it, as in %q", text, "reads="+text)
	}
	return weir.ParseRule(text)
}

// newSetFor also checks that the units of the rule can be estimated, if they are to be.
func (rs *Rules[R, A]) newSetFor(given *Rule[R, A], r *weir.Rule) (*Set, error) {
	s, err := rs.newSet(r)
	if err == nil && given.Estimate != nil && s.slots != nil {
		return nil, OptionError(rs.Name, "estimate", "is of units that a request uses, and %s holds slots: give the slots a rule of their own", r)
	}
	return s, err
}

// newSet checks that a rule can be used, and takes it apart.
func (rs *Rules[R, A]) newSet(r *weir.Rule) (s *Set, err error) {
	if err := rs.Engine.Check(r); err != nil {
		return nil, err
	}
	s = newSet(r)
	if rs.Check != nil {
		if err := rs.Check(r); err != nil {
			return nil, err
		}
	}
	for _, limit := range r.Limits() {
		if err := rs.checkAlone(limit); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// checkAlone refuses a limit that decides alone beside other rules, and a bucket that delays for longer than a request
// may be held.
func (rs *Rules[R, A]) checkAlone(limit weir.Limit) error {
	d := weir.Describe(limit)
	if d.Alone && len(rs.Rules) > 1 {
		return OptionError(rs.Name, "limit", "%s cannot be decided together with other rules: give it a limiter of its own", limit)
	}
	if d.Delay > rs.MaxWait {
		return OptionError(rs.Name, "limit", "%s holds requests for up to %v, above MaxWait of %v: shorten the queue or raise MaxWait", limit, d.Delay, rs.MaxWait)
	}
	return nil
}

// inField names the option in an option error.
func inField(field string, err error) error {
	e, ok := err.(*weir.OptionError)
	if !ok {
		return err
	}
	if e.Field != "" {
		field += "." + e.Field
	}
	return &weir.OptionError{Op: e.Op, Field: field, Reason: e.Reason}
}

// Away reports whether the engine is away, so that the policy of its Guard answers.
func (rs *Rules[R, A]) Away() bool {
	guard, ok := weir.Find[*layer.Guarded](rs.Engine)
	return ok && guard.Stats().Away
}

// RuleName returns the name of a rule for log lines: "plan" if plans name it.
func (rs *Rules[R, A]) RuleName(at int) string {
	if set := rs.fixed[at]; set != nil {
		return set.Rule.Name()
	}
	return "plan"
}

// Settle reports whether a rule has an After or is Settled, so that costs are settled when requests end.
func (rs *Rules[R, A]) Settle() bool {
	return slices.ContainsFunc(rs.list, func(r Rule[R, A]) bool { return r.After != nil || r.Settled })
}

// setOf returns the set of a rule, or of the plan of a request.
func (rs *Rules[R, A]) setOf(at int, r R) (*Set, error) {
	if set := rs.fixed[at]; set != nil {
		return set, nil
	}
	rule := rs.list[at].Plan(r)
	if rule == nil {
		return nil, OptionError(rs.Name, "plan", "is nil: name a rule, of weir.Unlimited if there is no limit")
	}
	if known := rs.plans.known(rule); known != nil {
		return known, nil
	}
	if rs.names[rule.Name()] {
		return nil, OptionError(rs.Name, "plan", "has the name %q of another rule and would share its states: give it another name", rule.Name())
	}
	set, err := rs.newSetFor(&rs.list[at], rule)
	if err == nil && rs.plans.add(rule, set) {
		rs.Logger.Warn(rs.Name+": plans have named very many rules: answer with the same rules again instead of making new ones", "rules", maxPlans)
	}
	return set, err
}
