package desk

import (
	"context"
	"crypto/rand"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/door"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
)

// mostTold bounds the units that one told cost counts, in capacities of its limit, unless the rule has a bound of its own.
const mostTold = 10

// Told is the outcome of the units of a told cost, for metrics.
type Told string

// The outcomes of the units of told costs.
const (
	ToldCounted Told = "counted" // by the engine, or kept for it by a Guard
	ToldCapped  Told = "capped"  // above the bound of one cost
	ToldLost    Told = "lost"    // neither counted nor kept, or nobody knows
)

// Told counts costs that callers tell after the work under rules that charge after it: each by itself, and whatever is left.
// Shadows and candidates count them beside. It returns the decision on each: admitted, with what is left. The work was done, so
// neither a caller that leaves nor an error of the engine ends it.
func (d *Desk) Told(ctx context.Context, who *door.Identity, config *rules.Config, costs, beside []weir.Request) []weir.Decision {
	calls, results := make([]weir.Call, len(costs)), make([]weir.Result, len(costs))
	for i, q := range costs {
		calls[i] = weir.Call{Op: weir.OpRecord, Requests: []weir.Request{d.bounded(config, q)}, Identity: d.identity()}
	}
	err := d.Each(context.WithoutCancel(ctx), calls, results)
	made := make([]weir.Decision, len(costs))
	for i, r := range results {
		if r.Err == nil {
			r.Err = err
		}
		made[i] = d.toldOne(calls[i].Requests, r)
	}
	if len(beside) > 0 {
		for i, q := range beside {
			beside[i] = d.bounded(config, q)
		}
		d.beside.add(who, weir.OpRecord, beside, weir.Decision{Allowed: true})
	}
	return made
}

// toldOne notes the outcome of one cost, and returns the decision on it.
func (d *Desk) toldOne(cost []weir.Request, r weir.Result) weir.Decision {
	q, what := cost[0], ToldCounted
	if r.Err != nil || r.Decision.Unrecorded {
		what = ToldLost
	}
	if r.Err != nil {
		d.Failed(r.Err)
		r.Decision = weir.Decision{}
	}
	d.tellTold(q.Rule.Name(), q.Cost, what)
	d.Recorded(cost, true)
	r.Decision.Allowed, r.Decision.RetryAfter = true, 0
	return r.Decision
}

// bounded returns a cost within the bound of one cost.
func (d *Desk) bounded(config *rules.Config, q weir.Request) weir.Request {
	most := config.MostTold(q.Rule)
	if most == 0 {
		most = min(capacityOf(d.Overridden([]weir.Request{q})[0].Rule), weir.MaxCount/mostTold) * mostTold
	}
	if q.Cost > most {
		d.capped.Warn(d.options.Log, "a cost told after the work counts only up to its bound; the rule raises it with charge: {when: after, most: N}",
			"rule", q.Rule.Name(), "cost", q.Cost, "most", most)
		d.tellTold(q.Rule.Name(), q.Cost-most, ToldCapped)
		q.Cost = most
	}
	return q
}

func (d *Desk) tellTold(rule string, units int64, what Told) {
	if d.options.Told != nil && units > 0 {
		d.options.Told(rule, units, what)
	}
}

// capacityOf returns the least capacity of the limits of a rule.
func capacityOf(r *weir.Rule) int64 {
	most := int64(weir.MaxCount)
	for _, l := range r.Limits() {
		most = min(most, weir.Describe(l).Capacity)
	}
	return most
}

// identity returns a name for a record that an engine on a network recognises if it is made again. The memory engine loses no
// answer, and takes none.
func (d *Desk) identity() string {
	if d.local {
		return ""
	}
	return rand.Text()
}
