package backtest

import (
	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/rules"
	"github.com/weirflow/weir/internal/replay"
)

// try is a file on trial, with the outcomes of requests.
type try struct {
	name       string
	config     *rules.Config
	rows       []*row
	rowOf      map[*rules.Rule]int // of the rule itself
	candidates map[*rules.Rule]int
	named      map[*rules.Rule]bool // by a recording

	limits   map[*weir.Rule]limit
	names    *names
	outcomes outcomes

	outcome rules.Outcome  // of the request that is read
	texts   []uint32       // the names of its keys, each once, behind the empty one
	places  []keyPlace     // of its keys, in the order of its requests
	form    []byte         // of its shape
	asked   []weir.Request // of the outcome that is decided
}

// row is a rule or a candidate, or one of the three that decide without a rule.
type row struct {
	rule   *rules.Rule // nil of the last three
	text   string      // of the limit
	name   string
	beside bool     // a shadow or a candidate
	unit   string   // of its costs, or "" for requests
	plans  []plan   // of a rule that has any
	keys   *numbers // that the rule decides by; shared with the rule whose budget it counts in
}

// limit is the limit of a request, as far as it is known.
type limit struct {
	number int
	after  int64 // refusals that begin its ban; 0 without one
}

func newTry(f File, all *names) *try {
	t := &try{name: f.Name, config: f.Config, rowOf: map[*rules.Rule]int{}, candidates: map[*rules.Rule]int{},
		named: map[*rules.Rule]bool{}, limits: map[*weir.Rule]limit{}, names: all, outcomes: newOutcomes()}
	add := func(r *rules.Rule, name, text string, beside bool) int {
		at := &row{rule: r, name: name, text: text, beside: beside, keys: newNumbers(all)}
		if r != nil {
			at.unit, at.plans = unitOf(f.Config, r), plansOf(r, text)
		}
		t.rows = append(t.rows, at)
		return len(t.rows) - 1
	}
	for _, r := range f.Config.Rules {
		t.rowOf[r] = add(r, r.Name, r.Text(), r.Shadow)
		if r.Candidate != nil {
			t.candidates[r] = add(r, r.Name+"~candidate", rules.LimitText(r.Candidate), true)
		}
	}
	for r, at := range t.rowOf {
		if r.Budget != "" {
			t.rows[at].keys = t.rows[t.rowOf[f.Config.Rule(r.Budget)]].keys
		}
	}
	add(nil, "", "default: allow", false)
	add(nil, "", "default: deny", false)
	add(nil, "", "paths that servers may read differently", false)
	return t
}

// recorded adds a request of a recording to the outcome of its call.
func (t *try) recorded(l *Recorded) {
	if t.config.Recorded(l.Rule, l.Key, l.Hashed, l.Cost, &t.outcome) {
		t.named[t.config.Rule(l.Rule)] = true
	}
	if len(t.outcome.Requests) == 0 {
		t.outcome.Verdict, t.outcome.Reason = rules.Allow, rules.ByDefault
	} else {
		t.outcome.Verdict, t.outcome.Reason = rules.Ask, ""
	}
}

func (t *try) limitOf(rule *weir.Rule) limit {
	known, ok := t.limits[rule]
	if !ok {
		known = limit{len(t.limits), replay.StrikesOf(rule.Limits())}
		t.limits[rule] = known
	}
	return known
}

// request returns one of the requests of the outcome, first those of the call, and the row that it belongs to.
func (t *try) request(i int) (q *weir.Request, row int) {
	o := &t.outcome
	if i < len(o.Requests) {
		return &o.Requests[i], t.rowOf[o.Rules[i]]
	}
	i -= len(o.Requests)
	rule := o.BesideRules[i]
	if rule.Shadow {
		return &o.Beside[i], t.rowOf[rule]
	}
	return &o.Beside[i], t.candidates[rule]
}

// poolRow returns the row of the request asked in place of a request.
func (t *try) poolRow(q *weir.Request) int { return t.rowOf[t.config.Rule(q.Rule.Name())] }
