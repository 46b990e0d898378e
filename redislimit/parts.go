package redislimit

import (
	"fmt"
	"slices"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/redislimit/internal/calls"
	"github.com/weirflow/weir/redislimit/internal/fault"
	"github.com/weirflow/weir/redislimit/internal/stored"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// mergedOf returns the merged requests of a call. A return is a record of negative costs.
func mergedOf(o wire.Op, c *weir.Call) ([]weir.Request, error) {
	if c.Op != weir.OpReturn {
		return enginekit.Merge(o.Verb(), c.Requests)
	}
	merged, err := enginekit.Merge(c.Op, c.Requests)
	if err != nil {
		return nil, err
	}
	merged = slices.Clone(merged)
	for i := range merged {
		merged[i].Cost *= -1
	}
	return merged, nil
}

// layout describes how to decide the parts of a decision.
type layout struct {
	oneLane bool // one call can decide them
	refused bool // a cost is above a capacity
	leased  bool // some of the parts are slots
}

// parts returns the limits of merged requests, with their keys. It leaves out limits without a state.
func (e *Engine) parts(parts []wire.Part, requests []weir.Request, lease uint64) (_ []wire.Part, at layout, err error) {
	at.oneLane = true
	all := e.calls.Number() == 1
	for i := range requests {
		q := &requests[i]
		c := enginekit.Keep(q.Rule, stored.Compile)
		if c.Err != nil {
			return nil, layout{}, c.Err
		}
		lane := e.keys.LaneOf(q)
		shared := "" // the key of the states of fixed size
		for j := range c.Limits {
			l := &c.Limits[j]
			at.refused = at.refused || q.Cost > l.Capacity
			if l.Kind == stored.KindNone {
				continue
			}
			at.leased = at.leased || l.Kind == stored.KindSlots
			at.oneLane = at.oneLane && (len(parts) == 0 || all || lane == parts[0].Lane)
			parts = append(parts, wire.Part{Limit: l, Lane: lane, Request: i, Cost: q.Cost, Lease: lease})
			p := &parts[len(parts)-1]
			if p.Joins = l.Fixed && shared != ""; p.Joins {
				p.Key = shared
			} else {
				p.Key = e.keys.Name(lane, l.State, q.Key)
			}
			if l.Fixed {
				shared = p.Key
			}
		}
	}
	return parts, at, nil
}

// spare has no refusal of a call whose caller waits count towards a ban.
func spare(parts []wire.Part, waits bool) {
	for i := range parts {
		parts[i].Spared = waits
	}
}

// checkLeases refuses slots that no caller could release or renew: units taken without an identity under a limit without
// a lease.
func checkLeases(o wire.Op, parts []wire.Part, requests []weir.Request) error {
	if o != wire.OpTake && o != wire.OpRecord {
		return nil
	}
	for i := range parts {
		if p := &parts[i]; p.Limit.Leaseless && p.Lease == 0 && p.Cost > 0 {
			return &weir.RequestError{Op: o.String(), Rule: requests[p.Request].Rule.Name(), Field: "lease",
				Reason: fmt.Sprintf("is missing: on Redis use Reserve, which renews a lease of %v, or give the limit a lease, such as concurrency %d lease 30s", DefaultLease, p.Limit.Capacity)}
		}
	}
	return nil
}

// tooMuch refuses a decision that would read more entries than a call may.
func tooMuch(o wire.Op, parts []wire.Part) error {
	total := 0
	for i := range parts {
		if l := parts[i].Limit; !l.Fixed {
			total += l.Weight
		}
	}
	if total <= stored.MostWork {
		return nil
	}
	return &weir.RequestError{Op: o.String(), Field: "requests", Reason: fmt.Sprintf("need logs and slots of up to %d KB at once, above %d (Redis)", total*3/2, stored.MostWork*3/2)}
}

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
	l.Functions.Measure(&p.Measure, weir.OpPeek, &fresh, 0, stored.Tick, false)
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
