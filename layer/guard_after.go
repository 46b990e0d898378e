package layer

import (
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// A record under rules that charge after the work (weir.Rule.ChargeAfter) is for work that was done. No policy can
// refuse it, so the Guard keeps it for the engine: as a debt of its key, or in the queue if the engine may have counted
// it and recognises its identity.

// knownFor is how long after a call its identity is certain to be recognised. Engines recognise it for a minute.
const knownFor = 50 * time.Second

// isAfter reports whether a call records costs of work that was done.
func isAfter(call *weir.Call) bool {
	return call.Op == weir.OpRecord && call.Lease == 0 && !slices.ContainsFunc(call.Requests, func(q weir.Request) bool { return !q.Rule.ChargesAfter() })
}

// keep keeps such a record, whether or not the engine has counted part of it.
func (g *Guarded) keep(call weir.Call, counted weir.Counted, cause error) (weir.Answer, error) {
	switch {
	case counted == weir.CountedNo:
		return g.keepDebt(call), nil
	case call.Identity != "" && g.owed.settle(call):
		return g.noted(call), nil
	}
	g.counts.lost.Add(costOf(call))
	return weir.Answer{}, &OutageError{call.Op, counted, cause}
}

// keepDebt notes a record that the engine has not counted.
func (g *Guarded) keepDebt(call weir.Call) weir.Answer {
	kept := g.noted(call)
	g.owed.add(call, 1)
	return kept
}

// noted notes a record under Local also in process, where decisions are made meanwhile.
func (g *Guarded) noted(call weir.Call) weir.Answer {
	if g.policy(call.Requests) == Local {
		g.counts.local.Add(1)
		if a, err := g.local.do(call); err == nil {
			return a
		}
	}
	return weir.Answer{Decision: admitted(call)}
}

// isForgotten reports whether the engine may have forgotten the identity of a queued call, so that it could count it twice.
func (j *job) isForgotten(now time.Time) bool {
	return j.call.Op == weir.OpRecord && j.call.Identity != "" && now.Sub(j.at) > knownFor
}

// costOf returns the units of a call.
func costOf(call weir.Call) (units uint64) {
	for _, q := range call.Requests {
		units += uint64(q.Cost)
	}
	return units
}
