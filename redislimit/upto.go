package redislimit

import (
	"context"
	"slices"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// takeUpTo takes the requests as many times as they fit, most times at most, in one
// call of the script. If the keys are on several lanes of a cluster, it takes what
// fits on one lane after the other, and gives back the surplus of the earlier lanes.
func (e *Engine) takeUpTo(ctx context.Context, c weir.Call) (a weir.Answer, err error) {
	if err := enginekit.CheckMost(c.Most); err != nil {
		return a, err
	}
	if c.Most > 0 {
		a.Times, a.Decision, err = e.decideTimes(ctx, opTake, c.Most, c)
		return a, err
	}
	c.Requests = slices.Clone(c.Requests)
	for i := range c.Requests {
		c.Requests[i].Cost = min(c.Requests[i].Cost, 0) // a negative one stays an error
	}
	return e.decide(ctx, opTake, c)
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
		limits := enginekit.Keep(q.Rule, compile).limits
		for j := range limits {
			most = min(most, limits[j].capacity/q.Cost)
		}
	}
	if free {
		return most, 1
	}
	return most, most
}

// asking returns what to ask the script for a verb. A take takes its costs up to
// most times. If a cost can never fit, the script only peeks.
func asking(o op, most int64, parts []part, at layout) decision {
	switch {
	case o == opTake && at.refused:
		return decision{op: opPeek, parts: parts}
	case o == opTake && most > 1:
		return decision{op: opUpTo, parts: parts, times: most}
	}
	return decision{op: o, parts: parts}
}

// tookTimes turns an answered opUpTo into a take of the number of times that the
// script chose. It is false if the script cannot have chosen that.
func (d *decision) tookTimes(times int64) bool {
	if times < 1 || times > max(d.times, d.most) { // the first answer may be that of a larger limit
		return false
	}
	d.op, d.times = opTake, times
	for i := range d.parts {
		d.parts[i].cost *= times
	}
	return true
}

// count is how many times an admitted decision took its costs.
func (d *decision) count() int64 { return max(d.times, 1) }

// repeated returns the parts of an answered decision at another number of times
// their cost.
func (d *decision) repeated(times int64) []part {
	parts := slices.Clone(d.parts)
	for i := range parts {
		parts[i].cost = parts[i].cost / d.count() * times
	}
	return parts
}
