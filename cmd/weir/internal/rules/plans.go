package rules

import (
	"maps"
	"slices"

	"github.com/weirflow/weir"
)

// Plan is the limit of the requests of one plan, in place of that of their rule.
type Plan struct {
	Name  string
	Limit *weir.Rule
}

// Plans returns the plans of a rule, in order of name.
func (r *Rule) Plans() (plans []Plan) {
	for _, name := range slices.Sorted(maps.Keys(r.plans)) {
		plans = append(plans, Plan{name, r.plans[name]})
	}
	return plans
}

// OwnLimits returns the limits of single keys of a rule, in no order.
func (r *Rule) OwnLimits() []*weir.Rule { return slices.Collect(maps.Values(r.keys)) }

// KeyedBy returns the attributes that make the key of a rule, and whether the engine gets its hash.
func (c *Config) KeyedBy(r *Rule) (attributes []string, hashed bool) {
	return c.attributeNames(r.key), r.hashed
}

// CostFrom returns the attribute that is the cost of a request under a rule, or "".
func (c *Config) CostFrom(r *Rule) string {
	if r.costFrom < 0 {
		return ""
	}
	return c.mentions[r.costFrom].name
}

// PlanFrom returns the attribute that is the plan of a request under a rule, or "".
func (c *Config) PlanFrom(r *Rule) string {
	if r.planBy < 0 {
		return ""
	}
	return c.mentions[r.planBy].name
}
