package redislimit

import (
	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// Limits without a state, Unlimited and DenyAll, are decided here. The script never
// sees them. If one refuses a take, the script only peeks at the other parts.

// stateless returns a limit without a state.
func stateless(f enginekit.Functions) limit {
	return limit{kind: kindNone, capacity: f.Capacity(), functions: f}
}

// constant returns the measured part of a request under a limit without a state.
func constant(l *limit, request int, cost int64) part {
	p, fresh := part{limit: l, request: request, cost: cost, measure: enginekit.Measure{Cost: cost}}, l.functions.Fresh()
	l.functions.Measure(&p.measure, &fresh, 0, Tick, false)
	return p
}

// withoutState answers requests whose limits all have no state.
func (e *Engine) withoutState(o op, requests []weir.Request) (weir.Decision, error) {
	switch {
	case e.closed.Load():
		return weir.Decision{}, cannotDecide(o.String(), errClosed)
	case o == opReset:
		return weir.Decision{}, nil
	}
	return answer(o, nil, requests), nil
}

// allParts returns the parts that the script answered together with those without
// a state, in the order of the requests and of their limits.
func allParts(parts []part, requests []weir.Request) []part {
	if !withoutStates(requests) {
		return parts
	}
	all := make([]part, 0, len(parts)+len(requests))
	for i := range requests {
		limits := enginekit.Keep(requests[i].Rule, compile).limits
		for j := range limits {
			if l := &limits[j]; l.kind == kindNone {
				all = append(all, constant(l, i, requests[i].Cost))
				continue
			}
			all = append(all, parts[0])
			parts = parts[1:]
		}
	}
	return all
}

// withoutStates reports whether some of the limits have no state.
func withoutStates(requests []weir.Request) bool {
	for i := range requests {
		if enginekit.Keep(requests[i].Rule, compile).stateless {
			return true
		}
	}
	return false
}
