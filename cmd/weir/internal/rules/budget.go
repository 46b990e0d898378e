package rules

import (
	"maps"
	"slices"
	"strconv"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/plain"
)

// stateName returns the name that the rule's states have.
func (r *Rule) stateName() string {
	if r.Budget != "" {
		return r.Budget
	}
	return r.Name
}

// checkBudgets notes rules that name the budget of another rule and would not share it.
func (l *loader) checkBudgets() {
	engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return 0 }})
	for _, d := range l.sound {
		if d.Budget == "" {
			continue
		}
		n, owner := d.given["budget"], l.config.names[d.Budget]
		switch {
		case owner == nil || owner.Limit == nil || owner.Budget != "" || owner == d.Rule:
			n.fail("is %s, want the name of another rule that has a limit and counts in a budget of its own", plain.Quoted(d.Budget))
		case owner.Pool:
			n.fail("is %s, which has match: otherwise and counts what other rules refuse, and nothing else", plain.Quoted(d.Budget))
		case owner.Otherwise != d.Otherwise:
			n.fail("is that of %s, and only requests with the same otherwise can share it", plain.Quoted(d.Budget))
		case owner.Shadow != d.Shadow:
			n.fail("is that of %s, and only one of the two rules is a shadow: rules of one budget are shadows together, or enforced", plain.Quoted(d.Budget))
		case !slices.Equal(owner.key, d.key) || owner.hashed != d.hashed:
			n.fail("is that of %s, which has another key, so the two would not share it", plain.Quoted(d.Budget))
		case !goesOn(engine, d.Name, owner.Limit, d.Limit):
			n.fail("is that of %s, which has another algorithm or window, so the two would not share it", plain.Quoted(d.Budget))
		}
		for _, name := range []string{"plans", "keys", "candidate", "estimate", "on_failure", "message"} {
			if other, given := d.given[name]; given {
				other.fail("belongs to the rule %s, whose budget this one counts in", plain.Quoted(d.Budget))
			}
		}
	}
}

// StatesOf returns limits whose states are all that requests may have left for a key, as engines have it, under a rule that callers
// can name. The limit of the rule comes first, and others follow if they do not go on from it.
func (c *Config) StatesOf(rule, key string) (limits []*weir.Rule) {
	r := c.names[rule]
	if r == nil || r.Limit == nil {
		return nil
	}
	others := slices.Collect(maps.Values(r.plans))
	if own := r.ownLimit(key); own != nil {
		others = []*weir.Rule{own}
	}
	engine, tried := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return 0 }}), 0
	limits = []*weir.Rule{r.Limit}
	for _, limit := range others {
		if !slices.ContainsFunc(limits, func(kept *weir.Rule) bool {
			tried++
			return goesOn(engine, strconv.Itoa(tried), kept, limit)
		}) {
			limits = append(limits, limit)
		}
	}
	return limits
}

// goesOn reports whether each limit of a rule goes on from the states of another rule of its name. It tries keys of its own.
func goesOn(engine weir.Engine, key string, before, now *weir.Rule) bool {
	for i, limit := range now.Limits() {
		alone, err := weir.NewRule(now.Name(), limit)
		if err == nil && !carries(engine, key+"|"+strconv.Itoa(i), before, alone) {
			return false
		}
	}
	return true
}
