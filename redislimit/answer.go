package redislimit

import (
	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/redislimit/internal/calls"
	"github.com/weirflow/weir/redislimit/internal/fault"
	"github.com/weirflow/weir/redislimit/internal/stored"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// withoutState answers requests whose limits all have no state.
func (e *Engine) withoutState(o wire.Op, requests []weir.Request) (weir.Decision, error) {
	switch {
	case e.calls.Closed.Load():
		return weir.Decision{}, cannotDecide(o.String(), fault.ErrClosed)
	case o == wire.OpReset:
		return weir.Decision{}, nil
	}
	return answer(o, nil, requests), nil
}

// answer combines the measurements of a decision's parts with those of limits without a state.
func answer(o wire.Op, parts []wire.Part, requests []weir.Request) weir.Decision {
	d, request := calls.Compose(o, allParts(parts, requests))
	return named(d, &requests[request])
}

func named(d weir.Decision, q *weir.Request) weir.Decision {
	d.Rule, d.Key = q.Rule.Name(), q.Key
	return d
}

// constant returns the measured part of a request under a limit without a state.
func constant(l *stored.Limit, request int, cost int64) wire.Part {
	p, fresh := wire.Part{Limit: l, Request: request, Cost: cost, Measure: enginekit.Measure{Cost: cost}}, l.Functions.Fresh()
	l.Functions.Measure(&p.Measure, &fresh, 0, stored.Tick, false)
	return p
}

// allParts returns the parts that the script answered together with those without
// a state, in the order of the requests and of their limits.
func allParts(parts []wire.Part, requests []weir.Request) []wire.Part {
	if !withoutStates(requests) {
		return parts
	}
	all := make([]wire.Part, 0, len(parts)+len(requests))
	for i := range requests {
		limits := enginekit.Keep(requests[i].Rule, stored.Compile).Limits
		for j := range limits {
			if l := &limits[j]; l.Kind == stored.KindNone {
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
		if enginekit.Keep(requests[i].Rule, stored.Compile).Stateless {
			return true
		}
	}
	return false
}
