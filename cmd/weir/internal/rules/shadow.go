package rules

import (
	"slices"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// A rule is enforced, or it is a shadow, which decides and counts and refuses nobody. Its file says which, and a
// running daemon may know better: then Shadowed makes the rules anew. The states are the same either way, so an
// enforced shadow goes on with its counts.
//
// Requests that attributes find ask a shadow beside the decision in force. Callers that name one get a rule of its name in its place
// that admits everything, and InPlace knows the shadow.

// standIn is a rule that admits everything in place of a shadow.
type standIn struct{ rule *weir.Rule }

// inPlace is the shadow that a rule stands in for.
type inPlace struct{ shadow *weir.Rule }

// StandIn returns the rule that callers get when they name a shadow.
func StandIn(shadow *weir.Rule) *weir.Rule {
	return enginekit.Keep(shadow, func(*weir.Rule) *standIn {
		made, err := weir.NewRule(shadow.Name(), weir.Unlimited{})
		if err == nil && shadow.ChargesAfter() {
			made, err = made.ChargeAfter()
		}
		if err != nil { // not of a name that another rule has
			return &standIn{shadow}
		}
		enginekit.Keep(made, func(*weir.Rule) *inPlace { return &inPlace{shadow} })
		return &standIn{made}
	}).rule
}

// InPlace returns the shadow that a rule stands in for, or nil.
func InPlace(rule *weir.Rule) *weir.Rule {
	return enginekit.Keep(rule, func(*weir.Rule) *inPlace { return &inPlace{} }).shadow
}

// Own returns the rule itself, even for its stand-in.
func Own(rule *weir.Rule) *weir.Rule {
	if shadow := InPlace(rule); shadow != nil {
		return shadow
	}
	return rule
}

// Modes say which rules are shadows, in place of their files.
type Modes struct {
	All   bool            // all rules are shadows, and nothing is refused without one either
	Rules map[string]bool // of single rules, before All: whether they are shadows
}

// IsShadow reports whether a rule is a shadow. One that counts in the budget of another rule has the mode of that. A pool
// is none: a shadow asks no pool.
func (m Modes) IsShadow(r *Rule) bool {
	if r.Pool {
		return false
	}
	name := r.Name
	if r.Budget != "" {
		name = r.Budget
	}
	if is, known := m.Rules[name]; known {
		return is
	}
	return m.All || r.Shadow
}

// Shadowed returns the rules with the modes. Rules of another format have modes of their own and stay as they are, and so do those that
// exempt requests. A rule stays a shadow if it cannot be enforced: see Conflict.
func (c *Config) Shadowed(m Modes) *Config {
	if !c.ByAttributes() && !c.Overlaid() || !m.All && len(m.Rules) == 0 {
		return c
	}
	all := *c
	all.admits = m.All
	all.Rules, all.names = make([]*Rule, len(c.Rules)), make(map[string]*Rule, len(c.Rules))
	for i, r := range c.Rules {
		if is := m.IsShadow(r); is != r.Shadow && !r.Unlimited && !r.foreign {
			r = r.as(is)
		}
		all.Rules[i], all.names[r.Name] = r, r
	}
	for _, r := range all.Rules {
		if before := c.names[r.Name]; before.Shadow && !r.Shadow && all.Conflict(r) != nil {
			*r = *before
		}
	}
	return &all
}

// as returns the rule as a shadow, or enforced.
func (r *Rule) as(shadow bool) *Rule {
	made := *r
	made.Shadow, made.stays = shadow, shadow && !r.Deny
	if r.Deny && shadow {
		made.Limit, _ = weir.NewRule(r.Name, weir.DenyAll{}) // of the rule's own name
	}
	return &made
}

// Conflict returns an enforced rule that may decide requests together with a rule whose limit stands alone, or nil. Neither of them
// can be enforced beside the other.
func (c *Config) Conflict(r *Rule) *Rule {
	at := slices.IndexFunc(c.Rules, func(other *Rule) bool {
		return other.Name != r.Name && other.limited() && (other.standsAlone() || r.standsAlone()) && r.meets(other)
	})
	if at < 0 || r.Deny || r.Unlimited {
		return nil
	}
	return c.Rules[at]
}

// Switches reports whether Shadowed can change the mode of a rule.
func (c *Config) Switches(r *Rule) bool {
	return !r.foreign && !r.Pool && (c.ByAttributes() || c.Overlaid())
}
