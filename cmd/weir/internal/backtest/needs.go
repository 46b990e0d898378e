package backtest

import (
	"math"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/replay"
)

// wanting is a row whose refused keys are asked what they would have needed.
type wanting struct {
	row    *row
	result *rowResult
	keys   []*wantingKey // by key; nil of one that was refused nothing
	plans  []most        // of the row's plans, or one of the row itself
}

// wantingKey is a refused key with the units that it asked for, and the limit that decided it.
type wantingKey struct {
	plan   int
	limit  *weir.Rule
	events []replay.Event
	odd    bool // its limit changed, or a cost is too large
	needs  int64
}

// most is the largest number that a key of a plan needs.
type most struct {
	limit   weir.Limit
	number  int64
	unknown bool
}

// addNeeds adds to the reports what the keys that were refused would have needed: the number of their limit that
// refuses none of their requests. rows are the places of the rows of the reports.
func (t *Traffic) addNeeds(at int, r *result, reports []replay.LimitReport, rows []int) {
	all := make([]*wanting, len(r.try.rows))
	found := false
	for _, i := range rows {
		if w := r.wanting(i); w != nil {
			all[i], found = w, true
		}
	}
	if !found {
		return
	}
	t.collect(at, r.try, all)
	for i, report := range reports {
		if w := all[rows[i]]; w != nil {
			w.settle()
			w.tell(&report)
			reports[i] = report
		}
	}
}

// wanting returns a row with its refused keys, or nil if it has none, or shares their states with another row.
func (r *result) wanting(at int) *wanting {
	row, got := r.try.rows[at], &r.rows[at]
	if row.rule == nil || got.tally == nil || row.rule.Otherwise != "" { // what a pool pays, the rule does not need
		return nil
	}
	for i, other := range r.try.rows {
		if i != at && other.keys == row.keys {
			return nil
		}
	}
	w := &wanting{row: row, result: got, keys: make([]*wantingKey, len(row.keys.names)), plans: make([]most, max(1, len(row.plans)))}
	found := false
	for id := range w.keys {
		if got.tally.Refuses(uint32(id)) {
			w.keys[id], found = &wantingKey{}, true
		}
	}
	if !found {
		return nil
	}
	return w
}

// collect gives the keys their requests, in order of time.
func (t *Traffic) collect(at int, try *try, all []*wanting) {
	of := make([]bool, len(try.outcomes.kept)) // whether an outcome has such a key
	has := func(a ask) bool { w := all[a.row]; return w != nil && w.keys[a.key] != nil }
	for i := range try.outcomes.kept {
		o := try.outcomes.of(uint32(i))
		for _, asks := range [...][]ask{o.asks, o.besides} {
			for _, a := range asks {
				of[i] = of[i] || has(o.ask(a))
			}
		}
	}
	for i, number := range t.numbers[at] {
		if !of[number] {
			continue
		}
		o := try.outcomes.of(number)
		for j, a := range o.asks {
			if a = o.ask(a); has(a) {
				all[a.row].keys[a.key].add(t.events[i].at, a, &o.requests[j])
			}
		}
		for j, a := range o.besides {
			if a = o.ask(a); has(a) {
				all[a.row].keys[a.key].add(t.events[i].at, a, &o.beside[j])
			}
		}
	}
}

func (k *wantingKey) add(at int64, a ask, q *weir.Request) {
	k.odd = k.odd || k.limit != nil && k.limit != q.Rule || q.Cost > math.MaxUint32 || q.Cost < 0
	k.limit, k.plan = q.Rule, a.plan
	if !k.odd {
		k.events = append(k.events, replay.Event{At: at, Key: a.key, Cost: uint32(q.Cost)})
	}
}

// settle finds what each key needs, and the most of each plan.
func (w *wanting) settle() {
	for _, k := range w.keys {
		if k == nil {
			continue
		}
		plan := &w.plans[max(k.plan, 0)]
		ok := !k.odd && k.limit != nil && len(k.limit.Limits()) == 1
		if ok {
			k.needs, ok = replay.Need(k.limit.Limits()[0], k.events)
		}
		if !ok || len(w.row.plans) > 0 && w.row.plans[k.plan].own {
			plan.unknown = true
			continue
		}
		plan.limit, plan.number = k.limit.Limits()[0], max(plan.number, k.needs)
	}
}

// tell adds what was found to the report of the row.
func (w *wanting) tell(l *replay.LimitReport) {
	for i := range l.WorstKeys {
		id, known := w.row.keys.find(l.WorstKeys[i].Key)
		if !known || w.keys[id] == nil {
			continue
		}
		k := w.keys[id]
		l.WorstKeys[i].Needs = k.needs
		if len(w.row.plans) > 0 {
			l.WorstKeys[i].Plan = w.row.plans[k.plan].called()
		}
	}
	if len(w.row.plans) == 0 {
		l.Spares = w.plans[0].text()
		return
	}
	next := 0
	for i, tally := range w.result.plans {
		if tally == nil {
			continue
		}
		l.Plans[next].Spares = w.plans[i].text()
		next++
	}
}

func (m *most) text() string {
	if m.unknown || m.number == 0 {
		return ""
	}
	text, _ := replay.WithNumber(m.limit, m.number)
	return text
}
