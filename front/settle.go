package front

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Settle states the true cost of a request under the named rule, such as the tokens that it used; 0 refunds it. The rule
// must be Settled, and ctx the request's context. The front gives back or counts the difference when the request ends; of
// several statements the last one holds.
//
// A request that its rule does not charge, because it is skipped, has no key or was admitted by the policy of a Guard, has
// nothing to settle, which is no error. Settle returns an error if no Settled rule of the request has the name, if the cost
// is negative, and after the end of the request.
func Settle(ctx context.Context, rule string, cost int64) error {
	s, _ := ctx.Value(settlerKey{}).(settler)
	switch {
	case s == nil:
		return fmt.Errorf("front: settle: rule %q: the context is not that of a request under a Settled rule", rule)
	case cost < 0:
		return fmt.Errorf("front: settle: rule %q: cost %d is negative", rule, cost)
	}
	found, err := s.settle(rule, cost)
	if err == nil && !found {
		err = fmt.Errorf("front: settle: rule %q: the request has no Settled rule of this name, but %s", rule, strings.Join(s.names(nil), ", "))
	}
	return err
}

type settlerKey struct{}

// settler is what Settle finds in the context of a request: an admission of any front.
type settler interface {
	settle(rule string, cost int64) (found bool, err error)
	names(inner []string) []string // the rules that Settle may name, quoted
}

// admission is a request that has passed a front with Settled rules.
type admission[R, A any] struct {
	rules *Rules[R, A]
	grant *Grant[R, A] // nil if the request is not charged
	outer settler      // the front that the request passed before; nil without one
}

// Context returns the context for a request that passes. [Settle] finds in it the rules that are Settled. The grant is
// nil if nothing is charged.
func (rs *Rules[R, A]) Context(ctx context.Context, g *Grant[R, A]) context.Context {
	if !slices.ContainsFunc(rs.list, func(r Rule[R, A]) bool { return r.Settled }) {
		return ctx
	}
	outer, _ := ctx.Value(settlerKey{}).(settler)
	return context.WithValue(ctx, settlerKey{}, admission[R, A]{rs, g, outer})
}

// settle finds the charge of the innermost front. It also finds a rule that does not charge this request.
func (a admission[R, A]) settle(rule string, cost int64) (found bool, err error) {
	if a.grant != nil {
		found, err = a.grant.state(rule, cost)
	}
	if !found && a.outer != nil {
		found, err = a.outer.settle(rule, cost)
	}
	return found || a.mayCharge(rule), err
}

// mayCharge reports whether another request might be charged under a rule of this name: under any name, if a plan does not
// charge this one.
func (a admission[R, A]) mayCharge(rule string) bool {
	for at, set := range a.rules.fixed {
		settled := a.rules.list[at].Settled
		if settled && set != nil && set.Rule.Name() == rule || settled && set == nil && !a.grant.charged(at) {
			return true
		}
	}
	return false
}

func (a admission[R, A]) names(inner []string) []string {
	for at, set := range a.rules.fixed {
		name := "one of a Plan"
		if set != nil {
			name = fmt.Sprintf("%q", set.Rule.Name())
		}
		if a.rules.list[at].Settled {
			inner = append(inner, name)
		}
	}
	if a.outer != nil {
		return a.outer.names(inner)
	}
	return inner
}

// charged reports whether the rule at an index charges the request.
func (g *Grant[R, A]) charged(at int) bool {
	return g != nil && slices.ContainsFunc(g.charges, func(c charge) bool { return c.at == at })
}

// state states the cost of a charge, if there is one of the rule.
func (g *Grant[R, A]) state(rule string, cost int64) (found bool, err error) {
	for i := range g.charges {
		c := &g.charges[i]
		if c.name != rule || !g.rules.list[c.at].Settled {
			continue
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.ended {
			return true, fmt.Errorf("front: settle: rule %q: the request has ended", rule)
		}
		c.actual, c.known, c.stated = cost, true, true
		return true, nil
	}
	return false, nil
}
