package decide

import (
	"github.com/weirflow/weir"
	"github.com/weirflow/weir/front"
)

// estimate prepares the estimates of the rules. One that is as before keeps what it has learnt.
func (f *InForce) estimate(before *InForce) {
	f.estimates = map[string]*front.Estimate{}
	if f.Config == nil {
		return
	}
	for rule, options := range f.Config.Estimates() {
		made, err := front.NewEstimate(options)
		if err != nil { // the file was checked
			continue
		}
		if before != nil && before.estimates[rule] != nil && before.estimates[rule].EstimateOptions == made.EstimateOptions {
			made = before.estimates[rule]
		}
		f.estimates[rule] = made
	}
}

// Estimates reports whether the rule says how many units a reservation holds.
func (f *InForce) Estimates(rule *weir.Rule) bool {
	return rule != nil && f.estimates[rule.Name()] != nil
}

// Estimated returns requests for a reservation with the costs to hold. Those of rules that learn them are estimates of callers, and
// 0 where a caller has none. held reports whether there are such rules.
func (f *InForce) Estimated(requests []weir.Request) (estimated []weir.Request, held bool) {
	if len(f.estimates) == 0 {
		return requests, false
	}
	estimated = append(estimated, requests...)
	for i := range estimated {
		held = f.estimated(&estimated[i]) || held
	}
	return estimated, held
}

// estimated sets the cost of a request, and of those in its place: a pool without an estimate holds what the rule before it does, if it
// asks for as much.
func (f *InForce) estimated(q *weir.Request) (held bool) {
	asked := q.Cost
	if e := f.estimates[q.Rule.Name()]; e != nil {
		q.Cost, held = e.Of(q.Key, q.Cost), true
	}
	if q.Otherwise == nil {
		return held
	}
	pool := *q.Otherwise
	if pool.Cost == asked {
		pool.Cost = q.Cost
	}
	held = f.estimated(&pool) || held
	q.Otherwise = &pool
	return held
}

// learn takes in the true costs of a reservation that is settled: one for each request, one for all, or none if nobody said.
func (f *InForce) learn(requests []weir.Request, costs []int64) {
	for i, q := range requests {
		if e := f.estimates[q.Rule.Name()]; e != nil && len(costs) > 0 {
			e.Learn(q.Key, costs[min(i, len(costs)-1)])
		}
	}
}
