package backtest

import (
	"context"
	"fmt"
	"slices"

	"github.com/weirflow/weir"

	"github.com/weirflow/weir/internal/replay"
	"github.com/weirflow/weir/internal/tape"
	"github.com/weirflow/weir/layer"
)

// result holds the decisions of a file.
type result struct {
	*keyring
	all       *replay.Tally // by client
	rows      []rowResult   // by row
	undecided int64
	otherwise int64            // than a recording says
	lacks     map[string]int64 // requests by attribute
	clients   map[uint32]bool  // that were refused
	unsure    int64
}

// rowResult holds the decisions of a row.
type rowResult struct {
	tally     *replay.Tally // nil if it decided nothing
	inAll     int64
	elsewhere int64
	paid      int64 // by another rule
	unsure    int64
	otherwise int64
	lacks     map[string]int64
	clients   map[uint32]bool
	plans     []*replay.Tally // of the row's plans; nil of one that decided nothing
}

// decision is the decision of a file on one event.
type decision struct {
	weir.Decision
	by   int            // the row that refuses, or -1
	call []weir.Request // that an engine decided
	paid []weir.Request // what was taken, if some of it in place of others
}

// decide decides the events in order. It calls each, if it is not nil, with the decision on each of them.
func (t *Traffic) decide(at int, progress func(), each func(event int, o outcome, d decision)) (*result, error) {
	try := t.tries[at]
	r := &result{keyring: t.newKeyring(at), rows: make([]rowResult, len(try.rows)), lacks: map[string]int64{}, clients: map[uint32]bool{}}
	if len(t.events) > 0 {
		r.all = t.newTally()
	}
	engine := tape.New()
	chains, err := layer.Otherwise(engine)
	if err != nil {
		return nil, fmt.Errorf("backtest: %w", err)
	}
	for i := range t.events {
		engine.At(t.events[i].at)
		number := t.numbers[at][i]
		o := try.outcomes.of(number)
		d, err := try.decide(&o, engine, chains, r.quiet[number])
		if err != nil {
			return nil, fmt.Errorf("backtest: %s: %w", try.name, err)
		}
		if err := t.count(r, &t.events[i], &o, d); err != nil {
			return nil, err
		}
		if err := t.tryBeside(r, &t.events[i], &o, engine); err != nil {
			return nil, err
		}
		if each != nil {
			each(i, o, d)
		}
		progress()
	}
	return r, nil
}

// decide makes the call of the engine, or of that for requests in place of others, unless the rules decide without it, or the keys
// admit everything.
func (t *try) decide(o *outcome, engine, chains weir.Engine, quiet bool) (d decision, err error) {
	d.by = -1
	switch {
	case o.fate == admitted || quiet:
		d.Allowed = true
	case o.fate == refused:
		d.by = o.by
	case o.links != nil:
		var a weir.Answer
		d.call = t.call(o)
		a, err = chains.Do(context.Background(), weir.Call{Op: weir.OpTake, Requests: d.call})
		d.Decision, d.paid = a.Decision, a.Paid
	default:
		d.call = t.call(o)
		d.Decision, err = engine.Take(context.Background(), d.call...)
	}
	if err == nil && !d.Allowed && d.by < 0 {
		d.by = o.refusedBy(&d)
	}
	return d, err
}

// payer returns the key that paid for a request, and its cost. other reports that it is not the one that was asked.
func (o *outcome) payer(i int, d *decision) (by ask, cost int64, other bool) {
	if d.paid == nil {
		return o.ask(o.asks[i]), o.requests[i].Cost, false
	}
	n := 0
	for q := d.call[i].Otherwise; q != nil; q = q.Otherwise {
		if q.Key == d.paid[i].Key && q.Rule.Name() == d.paid[i].Rule.Name() {
			return o.ask(o.links[i][n]), q.Cost, true
		}
		n++
	}
	return o.ask(o.asks[i]), o.requests[i].Cost, false
}

// refusedBy returns the row of the rule that a refusal names.
func (o *outcome) refusedBy(d *decision) int {
	at := slices.IndexFunc(d.call, func(q weir.Request) bool { return q.Key == d.Key && q.Rule.Name() == d.Decision.Rule })
	return o.asks[max(at, 0)].row
}

// count counts a decision for all rules together and for each that took part.
func (t *Traffic) count(r *result, e *event, o *outcome, d decision) error {
	if o.open {
		r.undecided++
	} else {
		r.all.Count(e.at, e.client, d.Decision, 1)
		if e.recorded && e.admitted != d.Allowed {
			r.otherwise++
		}
		if !d.Allowed {
			r.clients[e.client] = true
			r.rows[d.by].inAll++
		}
	}
	for i, a := range o.asks {
		if !d.Allowed && d.by != a.row {
			r.rows[a.row].elsewhere++
		} else {
			by, cost, other := o.payer(i, &d)
			if other {
				r.rows[a.row].paid++
			}
			a = by
			t.countRow(r, a, e, d.Decision, cost)
			if !o.open && e.recorded && e.admitted != d.Allowed {
				r.rows[a.row].otherwise++
			}
		}
	}
	if o.fate != asked && o.by >= 0 && !(o.open && r.try.rows[o.by].rule == nil) { // an undecided rule may match
		key := r.try.rows[o.by].keys.of(t.clients.names[e.client])
		t.countRow(r, ask{row: o.by, key: key, plan: -1}, e, d.Decision, 1)
	}
	for i, l := range o.lacks {
		row := &r.rows[l.row]
		if row.lacks == nil {
			row.lacks = map[string]int64{}
		}
		row.lacks[l.attribute]++
		if o.open && !slices.ContainsFunc(o.lacks[:i], func(other lack) bool { return other.attribute == l.attribute }) {
			r.lacks[l.attribute]++
		}
	}
	return nil
}

func (t *Traffic) countRow(r *result, a ask, e *event, d weir.Decision, units int64) {
	row, of := &r.rows[a.row], r.try.rows[a.row]
	if row.tally == nil {
		row.tally, row.plans = t.newTally(), make([]*replay.Tally, len(of.plans))
	}
	if of.unit == "" {
		units = 1
	}
	row.tally.Count(e.at, a.key, d, units)
	if a.after > 0 {
		row.tally.CountBan(e.at, a.key, d, a.after)
	}
	if len(of.plans) > 0 && a.plan >= 0 {
		if row.plans[a.plan] == nil {
			row.plans[a.plan] = t.newTally()
		}
		row.plans[a.plan].Count(e.at, a.key, d, units)
	}
	if !d.Allowed {
		if row.clients == nil {
			row.clients = map[uint32]bool{}
		}
		row.clients[e.client] = true
	}
}

// tryBeside has shadows and candidates decide, each in a call of its own.
func (t *Traffic) tryBeside(r *result, e *event, o *outcome, engine weir.Engine) error {
	for i, a := range o.besides {
		d, err := engine.Take(context.Background(), r.keyed(o, o.beside[i], a, nil))
		if err != nil {
			return err
		}
		t.countRow(r, o.ask(a), e, d, o.beside[i].Cost)
	}
	return nil
}

func (t *Traffic) newTally() *replay.Tally {
	return replay.NewTally(t.events[0].at, t.events[len(t.events)-1].at)
}

// unnamed counts the events of recordings for the rules that no recording names: it does not tell whether they match.
func (t *Traffic) unnamed(r *result) {
	if t.recorded == 0 {
		return
	}
	for _, rule := range r.config.Rules {
		if !r.named[rule] && !rule.Pool && !slices.Contains(r.config.ByName(), rule.Name) {
			r.rows[r.rowOf[rule]].lacks = map[string]int64{recordingLacks: t.recorded}
		}
	}
}

const recordingLacks = "attributes: a recording has only the rules that decided, and their keys"
