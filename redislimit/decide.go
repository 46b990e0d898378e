package redislimit

import (
	"cmp"
	"context"
	"slices"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/redislimit/internal/calls"
	"github.com/weirflow/weir/redislimit/internal/fault"
	"github.com/weirflow/weir/redislimit/internal/stored"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// plain makes one decision on requests without a lease or an identity.
func (e *Engine) plain(ctx context.Context, o wire.Op, requests []weir.Request) (weir.Decision, error) {
	a, err := e.decideTimes(ctx, o, 1, weir.Call{Requests: requests})
	return a.Decision, err
}

// decide makes one decision on the requests of a call.
func (e *Engine) decide(ctx context.Context, o wire.Op, c weir.Call) (weir.Answer, error) {
	a, err := e.decideTimes(ctx, o, 1, c)
	a.Times = 0
	return a, asMade(c.Op, err)
}

// decideTimes works like decide, except that a take takes the requests as often as they fit, up to most times. The answer
// has the number of times.
func (e *Engine) decideTimes(ctx context.Context, o wire.Op, most int64, c weir.Call) (a weir.Answer, err error) {
	identity := c.Identity
	if err := enginekit.CheckIdentity(o.Verb(), identity); err != nil {
		return a, err
	}
	requests, err := mergedOf(o, &c)
	if err != nil {
		return a, err
	}
	if err := ctx.Err(); err != nil {
		return a, cannotDecide(o.String(), fault.Uncounted(fault.Cancelled, err))
	}
	s := e.calls.Submission()
	parts, at, err := e.parts(s.Few[:0], requests, c.Lease)
	if err == nil {
		err = cmp.Or(checkLeases(o, parts, requests), tooMuch(o, parts))
	}
	if err != nil {
		return a, err
	}
	spare(parts, c.Waits)
	if at.leased && o == wire.OpRecord {
		settle, whole := e.keeper.Releasing(parts)
		defer func() { settle(err == nil && !a.Decision.Unrecorded) }()
		if whole {
			identity = "" // an earlier decision may have had it, and the release of that one would be taken for this one
		}
	}
	ask, wanted := int64(1), most
	if most > 1 {
		most, ask = ofFresh(most, requests)
	}
	s.One[0] = asking(o, ask, parts, at)
	if free := ask < most; identity != "" && o == wire.OpTake && !free {
		s.One[0].TakesAgain(wanted, ask)
	}
	s.One[0].Final = c.Final
	upTo := cmp.Or(s.One[0].First, s.One[0].Op) == wire.OpUpTo
	if upTo {
		s.One[0].Most = wanted
	}
	var taken takenAt
	if o == wire.OpTake && c.Lease != 0 {
		taken = newTakenAt(requests)
	}
	switch {
	case len(parts) == 0:
		a.Decision, err = e.withoutState(o, requests)
	case at.oneLane:
		a.Times, a.Decision, err = e.inOneCall(ctx, o, s, identity, requests, taken)
	default:
		a.Times, a.Decision, err = e.across(ctx, o, s.One[0], identity, requests, taken)
	}
	if !upTo || len(parts) == 0 {
		a.Times = most
	}
	if err != nil || !a.Decision.Allowed {
		return weir.Answer{Decision: a.Decision}, err
	}
	a.Taken = taken.of(requests, c.Requests)
	return a, nil
}

// takeUpTo takes the requests as many times as they fit, most times at most, in one
// call of the script. If the keys are on several lanes of a cluster, it takes what
// fits on one lane after the other, and gives back the surplus of the earlier lanes.
func (e *Engine) takeUpTo(ctx context.Context, c weir.Call) (a weir.Answer, err error) {
	if err := enginekit.CheckMost(c.Most); err != nil {
		return a, err
	}
	if c.Most > 0 {
		return e.decideTimes(ctx, wire.OpTake, c.Most, c)
	}
	c.Requests = slices.Clone(c.Requests)
	for i := range c.Requests {
		c.Requests[i].Cost = min(c.Requests[i].Cost, 0) // a negative one stays an error
	}
	return e.decide(ctx, wire.OpTake, c)
}

// ofFresh returns how many times fresh keys admit the requests, up to most, and the
// number to ask the script for. That is 1 if the requests cost nothing.
func ofFresh(most int64, requests []weir.Request) (times, ask int64) {
	free := true
	for i := range requests {
		q := &requests[i]
		if q.Cost <= 0 {
			continue
		}
		free = false
		limits := enginekit.Keep(q.Rule, stored.Compile).Limits
		for j := range limits {
			most = min(most, limits[j].Capacity/q.Cost)
		}
	}
	if free {
		return most, 1
	}
	return most, most
}

// asking returns what to ask the script for a verb. A take takes its costs up to
// most times. If a cost can never fit, the script only peeks.
func asking(o wire.Op, most int64, parts []wire.Part, at layout) wire.Decision {
	switch {
	case o == wire.OpTake && at.refused:
		return wire.Decision{Op: wire.OpPeek, Parts: parts}
	case o == wire.OpTake && most > 1:
		return wire.Decision{Op: wire.OpUpTo, Parts: parts, Times: most}
	}
	return wire.Decision{Op: o, Parts: parts}
}

// inOneCall answers s, which has one decision, with one call of the script.
func (e *Engine) inOneCall(ctx context.Context, o wire.Op, s *calls.Submission, identity string, requests []weir.Request, taken takenAt) (times int64, d weir.Decision, err error) {
	q := &s.One[0]
	q.Identify(&e.keys, identity)
	s.Decisions = s.One[:]
	s.Composed.Verb, s.Composed.Asked = o, o != wire.OpReset && !withoutStates(requests)
	asked := cmp.Or(q.First, q.Op)
	if err := e.calls.Ask(ctx, s); err != nil {
		return 0, weir.Decision{}, cannotDecide(o.String(), peekUncounted(asked, err))
	}
	switch {
	case q.Err == fault.ErrCrossing:
		times, d, err = e.across(ctx, o, *q, identity, requests, taken)
	case q.Err != nil:
		err = cannotDecide(o.String(), q.Err)
	case s.Composed.Asked:
		times, d = q.Count(), named(s.Composed.Answer, &requests[s.Composed.Request])
	case o != wire.OpReset:
		times, d = q.Count(), answer(o, q.Parts, requests)
	}
	taken.note(q.Parts)
	e.calls.Release(s)
	return times, d, err
}
