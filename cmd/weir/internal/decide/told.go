package decide

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/enginekit"
)

// A cost reported after the work is counted even if too little is left. Every such cost comes through this file: records
// under rules that charge after the work, by [Desk.Do] and [Desk.Each]; Told; what Settle counts beyond a reservation; and Report
// and Commit under every rule. So all keep the same promises: a bound on one cost, no loss in an outage, and a metric of the rest.

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

// record is a call that records told costs.
type record struct {
	weir.Call        // as the engine gets it
	told      []bool // which of its requests have reported costs
}

// recordOf returns a record within the bounds of its told costs: those of rules that charge after the work, or all of them. A
// Guard keeps it whole, so every other cost in it is one of work that was done, too.
func (d *Desk) recordOf(call weir.Call, all bool) record {
	r := record{call, make([]bool, len(call.Requests))}
	r.Requests, r.Identity = slices.Clone(call.Requests), cmp.Or(call.Identity, d.identity())
	for i := range r.Requests {
		q := &r.Requests[i]
		if r.told[i] = all || q.Rule.ChargesAfter(); r.told[i] {
			*q = d.bounded(*q)
		}
		if !q.Rule.ChargesAfter() {
			q.Rule = cmp.Or(enginekit.Keep(q.Rule, newAfterwards).rule, q.Rule)
		}
	}
	return r
}

// afterwards is a rule for costs of work that was done: a Guard keeps their records while the engine is away.
type afterwards struct{ rule *weir.Rule }

func newAfterwards(r *weir.Rule) *afterwards {
	after, _ := r.ChargeAfter() // fails only for slots
	return &afterwards{after}
}

// Record counts the costs of rules that match attributes, even if too little is left. Their shadows and candidates
// count them beside.
func (d *Desk) Record(ctx context.Context, who *auth.Identity, requests, beside []weir.Request) (weir.Decision, error) {
	call := weir.Call{Op: weir.OpRecord, Requests: requests}
	if tells(&call) {
		made, err := d.tell(ctx, d.recordOf(call, false))
		d.tellBeside(who, beside)
		return made, err
	}
	a, err := d.engineOf(requests).Do(ctx, call)
	if err == nil {
		d.tellBeside(who, beside)
	}
	return a.Decision, err
}

// tell makes a record. The work was done, so a caller that leaves does not end it.
func (d *Desk) tell(ctx context.Context, r record) (weir.Decision, error) {
	a, err := d.engineOf(r.Requests).Do(context.WithoutCancel(ctx), r.Call)
	d.noteTold(r, weir.Result{Decision: a.Decision, Err: err})
	return a.Decision, err
}

// tellEach makes calls, some of them records of told costs.
func (d *Desk) tellEach(ctx context.Context, engine weir.Engine, calls []weir.Call, results []weir.Result) error {
	calls = slices.Clone(calls)
	records := make([]record, len(calls))
	for i := range calls {
		if tells(&calls[i]) {
			records[i] = d.recordOf(calls[i], false)
			calls[i] = records[i].Call
		}
	}
	err := engine.Each(context.WithoutCancel(ctx), calls, results)
	for i, r := range results {
		if r.Err == nil {
			r.Err = err
		}
		d.noteTold(records[i], r)
	}
	return err
}

// noteTold notes the outcome of told costs.
func (d *Desk) noteTold(r record, made weir.Result) {
	what := ToldCounted
	if made.Err != nil || made.Decision.Unrecorded {
		what = ToldLost
	}
	for i, told := range r.told {
		if told {
			d.tellTold(r.Requests[i].Rule.Name(), r.Requests[i].Cost, what)
		}
	}
}

// Told counts told costs that nobody asks again for: each by itself. Shadows and candidates count them beside. It
// returns the decision on each: admitted, with the units left.
func (d *Desk) Told(ctx context.Context, who *auth.Identity, costs, beside []weir.Request) []weir.Decision {
	calls, results := make([]weir.Call, len(costs)), make([]weir.Result, len(costs))
	for i := range costs {
		calls[i] = weir.Call{Op: weir.OpRecord, Requests: []weir.Request{d.bounded(costs[i])}}
	}
	err := d.tellEach(ctx, d.engine, calls, results)
	made := make([]weir.Decision, len(costs))
	for i, r := range results {
		if r.Err = cmp.Or(r.Err, err); r.Err != nil {
			d.Failed(context.WithoutCancel(ctx), r.Err)
		} else {
			made[i] = r.Decision
		}
		made[i].Allowed, made[i].RetryAfter = true, 0
		d.Recorded(calls[i].Requests, true)
	}
	d.tellBeside(who, beside)
	return made
}

// tellBeside has shadows and candidates count told costs.
func (d *Desk) tellBeside(who *auth.Identity, beside []weir.Request) {
	for i, q := range beside {
		beside[i] = d.bounded(q)
	}
	if len(beside) > 0 {
		d.tryBeside(who, weir.OpRecord, beside, weir.Decision{Allowed: true})
	}
}

// bounded returns a cost within the bound of one cost.
func (d *Desk) bounded(q weir.Request) weir.Request { return d.atMost(q, d.mostOf(q)) }

// atMost returns a cost of at most some units, and says so if it was above them.
func (d *Desk) atMost(q weir.Request, most int64) weir.Request {
	if q.Cost > most {
		d.capped.Warn(d.options.Log, "a cost told after the work counts only up to its bound; the rule raises it with charge: {when: after, most: N}",
			"rule", q.Rule.Name(), "cost", q.Cost, "most", most)
		d.tellTold(q.Rule.Name(), q.Cost-most, ToldCapped)
		q.Cost = most
	}
	return q
}

// mostOf returns the most units that one told cost counts.
func (d *Desk) mostOf(q weir.Request) (most int64) {
	if config := d.force.Load().Config; config != nil {
		most = config.MostTold(q.Rule)
	}
	if most == 0 {
		most = min(capacityOf(d.Overridden([]weir.Request{q})[0].Rule), weir.MaxCount/mostTold) * mostTold
	}
	return most
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
	if d.memory != nil {
		return ""
	}
	return rand.Text()
}
