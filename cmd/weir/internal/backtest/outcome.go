package backtest

import (
	"encoding/binary"
	"slices"

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

	outcome   rules.Outcome // of the request that is read
	limits    map[*weir.Rule]limit
	known     map[string]uint32 // the numbers of outcomes by their form
	outcomes  []*outcome
	signature []byte
}

// row is a rule or a candidate, or one of the three that decide without a rule.
type row struct {
	rule   *rules.Rule // nil of the last three
	text   string      // of the limit
	name   string
	beside bool   // a shadow or a candidate
	unit   string // of its costs, or "" for requests
	plans  []plan // of a rule that has any
	keys   *names // that the rule decides by; shared with the rule whose budget it counts in
}

// outcome is the outcome of a request under a file.
type outcome struct {
	fate     fate
	by       int            // the row that refuses or admits without an engine, or -1
	open     bool           // an undecided rule may change the answer
	requests []weir.Request // of one call
	asks     []ask          // the same, by their rows
	links    [][]ask        // of each request what is asked in its place, in order; nil if there is nothing
	beside   []weir.Request
	besides  []ask
	lacks    []lack
}

// limit is the limit of a request, as far as it is known.
type limit struct {
	number int
	after  int64 // refusals that begin its ban; 0 without one
}

type fate uint8

const (
	asked fate = iota // an engine decides
	admitted
	refused
)

// ask is a key of a row.
type ask struct {
	row   int
	key   uint32
	plan  int   // of the row
	after int64 // refusals that begin the ban of the rule; 0 without one
}

// lack is an attribute that a log lacks, and the row of the rule that depends on it.
type lack struct {
	row       int
	attribute string
}

func newTry(f File) *try {
	t := &try{name: f.Name, config: f.Config, rowOf: map[*rules.Rule]int{}, candidates: map[*rules.Rule]int{},
		named: map[*rules.Rule]bool{}, limits: map[*weir.Rule]limit{}, known: map[string]uint32{}}
	add := func(r *rules.Rule, name, text string, beside bool) int {
		at := &row{rule: r, name: name, text: text, beside: beside, keys: newNames()}
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

// number returns the number of the outcome of the request that is read.
func (t *try) number() (uint32, error) {
	var space [32]ask
	asks, err := t.sign(space[:0])
	if err != nil {
		return 0, err
	}
	if number, ok := t.known[string(t.signature)]; ok {
		return number, nil
	}
	number := uint32(len(t.outcomes))
	t.known[string(t.signature)] = number
	t.outcomes = append(t.outcomes, t.kept(asks))
	return number, nil
}

// sign writes the form of the outcome, which differs from that of each other one, and returns its keys.
func (t *try) sign(asks []ask) ([]ask, error) {
	o := &t.outcome
	s := append(t.signature[:0], byte(o.Verdict), byte(len(o.Reason)))
	if o.Rule != nil {
		s = binary.AppendUvarint(s, uint64(t.rowOf[o.Rule])+1)
	}
	s = append(s, byte(len(o.Requests)), byte(len(o.Beside)))
	for i := range len(o.Requests) + len(o.Beside) {
		q, row := t.request(i)
		a, err := t.form(&s, q, row)
		if err != nil {
			return nil, err
		}
		asks = append(asks, a)
		for q = q.Otherwise; q != nil; q = q.Otherwise {
			s = append(s, 1)
			if _, err = t.form(&s, q, t.poolRow(q)); err != nil {
				return nil, err
			}
		}
		s = append(s, 0)
	}
	for _, u := range o.Undecided {
		s = append(binary.AppendUvarint(s, uint64(t.rowOf[u.Rule])), u.Attribute...)
		s = append(s, 0)
	}
	t.signature = s
	return asks, nil
}

// form writes the form of a request that belongs to a row, and returns its key.
func (t *try) form(s *[]byte, q *weir.Request, row int) (ask, error) {
	key, err := t.rows[row].keys.ofText(q.Key)
	if err != nil {
		return ask{}, err
	}
	known := t.limitOf(q.Rule)
	for _, n := range [...]uint64{uint64(row), uint64(key), uint64(known.number), uint64(q.Cost)} {
		*s = binary.AppendUvarint(*s, n)
	}
	return ask{row: row, key: key, after: known.after}, nil
}

func (t *try) limitOf(rule *weir.Rule) limit {
	known, ok := t.limits[rule]
	if !ok {
		known = limit{len(t.limits), replay.StrikesOf(rule.Limits())}
		t.limits[rule] = known
	}
	return known
}

// poolRow returns the row of the request asked in place of a request.
func (t *try) poolRow(q *weir.Request) int { return t.rowOf[t.config.Rule(q.Rule.Name())] }

// linksOf returns what is asked in place of each request of the call, or nil. Their keys are known.
func (t *try) linksOf(requests []weir.Request) (links [][]ask) {
	for i := range requests {
		for q := requests[i].Otherwise; q != nil; q = q.Otherwise {
			if links == nil {
				links = make([][]ask, len(requests))
			}
			row := t.rows[t.poolRow(q)]
			links[i] = append(links[i], ask{t.poolRow(q), row.keys.ids[q.Key], row.planOf(q.Rule), t.limitOf(q.Rule).after})
		}
	}
	return links
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

// kept returns the outcome to keep.
func (t *try) kept(asks []ask) *outcome {
	o := &t.outcome
	k := &outcome{by: -1, requests: slices.Clone(o.Requests), beside: slices.Clone(o.Beside), open: o.Open()}
	for i := range asks {
		q, row := t.request(i)
		asks[i].plan = t.rows[row].planOf(q.Rule)
	}
	k.asks, k.besides = slices.Clone(asks[:len(o.Requests)]), slices.Clone(asks[len(o.Requests):])
	switch {
	case o.Rule != nil:
		k.by = t.rowOf[o.Rule]
	case o.Verdict == rules.Allow && o.Reason == rules.ByDefault:
		k.by = len(t.rows) - 3
	case o.Verdict == rules.Refuse && o.Reason == rules.ByDefault:
		k.by = len(t.rows) - 2
	case o.Verdict == rules.Refuse:
		k.by = len(t.rows) - 1
	}
	k.fate = [...]fate{rules.Ask: asked, rules.Allow: admitted, rules.Refuse: refused}[o.Verdict]
	if k.fate != asked { // other rules were read before the one that refuses; they count nothing
		k.requests, k.asks = nil, nil
	}
	k.links = t.linksOf(k.requests)
	for _, u := range o.Undecided {
		k.lacks = append(k.lacks, lack{t.rowOf[u.Rule], u.Attribute})
	}
	return k
}
