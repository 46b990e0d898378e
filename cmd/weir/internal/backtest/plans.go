package backtest

import (
	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/internal/replay"
)

// plan is a limit of a rule that has several, and the requests that are decided by it.
type plan struct {
	name  string
	own   bool       // the limits of single keys, together
	limit *weir.Rule // nil of those
}

// plansOf returns the plans of a rule: those that it names, the keys that have limits of their own, and last the requests of neither.
// It returns none for a rule with one limit, and for its candidate, which stands in for that limit alone.
func plansOf(r *rules.Rule, text string) (plans []plan) {
	if text != r.Text() {
		return nil
	}
	for _, p := range r.Plans() {
		plans = append(plans, plan{name: p.Name, limit: p.Limit})
	}
	if len(r.OwnLimits()) > 0 {
		plans = append(plans, plan{own: true})
	}
	if len(plans) > 0 {
		plans = append(plans, plan{limit: r.Limit})
	}
	return plans
}

// planOf returns the place of the plan that decides by a limit, or -1 without plans.
func (r *row) planOf(limit *weir.Rule) int {
	own := len(r.plans) - 1
	for i, p := range r.plans {
		if p.limit == limit {
			return i
		}
		if p.own {
			own = i
		}
	}
	return own
}

// called returns what a plan is called in tables.
func (p *plan) called() string {
	switch {
	case p.own:
		return "limits of their own"
	case p.name == "":
		return "no plan"
	}
	return p.name
}

// planReports returns what was decided of each plan that was asked.
func (r *row) planReports(tallies []*replay.Tally, keys []string) (all []replay.PlanReport) {
	for i, p := range r.plans {
		if i >= len(tallies) || tallies[i] == nil {
			continue
		}
		l := tallies[i].Report("", keys, 1)
		report := replay.PlanReport{Plan: p.name, Own: p.own, Limit: rules.LimitText(p.limit), Keys: tallies[i].Keys(), KeysRefused: l.KeysRefused,
			Admitted: l.Admitted, Refused: l.Refused}
		if len(l.WorstMinutes) > 0 {
			report.Worst = &l.WorstMinutes[0]
		}
		all = append(all, report)
	}
	return all
}
