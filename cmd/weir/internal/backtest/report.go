package backtest

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/weirflow/weir/internal/replay"
	"github.com/weirflow/weir/internal/tape"
)

// Options configure a Report.
type Options struct {
	Top       int // worst keys and minutes of each rule, and clients that notice a difference
	Timelines int // worst clients of each file, of those reported, to show over time
	// Progress, if not nil, receives the number of decisions made so far and the total, from time to time.
	Progress func(done, of int64)
}

// Report decides all requests by each file. Lines and reasons are those of the reader, which the caller adds.
func (t *Traffic) Report(o Options) (replay.Report, error) {
	t.sort()
	report := replay.Report{Limits: []replay.LimitReport{}}
	if report.Keys, report.Customers = t.clientsSeen(); report.Customers > 0 {
		report.CustomersBy = t.subject.attribute
	}
	if len(t.events) == 0 {
		return report, nil
	}
	report.First, report.Last = time.Unix(0, t.events[0].at).UTC(), time.Unix(0, t.events[len(t.events)-1].at).UTC()
	report.Busiest = replay.BusiestOf(t.instants(), report.First, report.Last)
	results, err := t.decideAll(o)
	if err != nil {
		return report, err
	}
	for at, r := range results {
		reports, rows := r.report(t, o.Top)
		t.addNeeds(at, r, reports[1:], rows)
		if err := t.addTimelines(at, &reports[0], o.Timelines); err != nil {
			return report, err
		}
		report.Limits = append(report.Limits, reports...)
		report.Unshown = append(report.Unshown, t.unshown(at, report.First, report.Last)...)
	}
	if len(results) == 2 {
		report.Difference = replay.Differ(results[0].all, results[1].all, t.clients.texts(), o.Top)
	}
	return report, nil
}

// instants returns those of the requests of each client, in order of time. The events must be in this order.
func (t *Traffic) instants() iter.Seq[[]int64] {
	ends := make([]int, len(t.clients.names)) // of the part of each client
	for i := range t.events {
		ends[t.events[i].client]++
	}
	end := 0
	for client, n := range ends {
		ends[client], end = end, end+n
	}
	all := make([]int64, len(t.events))
	for i := range t.events {
		at := &ends[t.events[i].client]
		all[*at] = t.events[i].at
		*at++
	}
	return func(yield func([]int64) bool) {
		begin := 0
		for _, end := range ends {
			if end > begin && !yield(all[begin:end]) {
				return
			}
			begin = end
		}
	}
}

// decideAll decides by each file, and finds the decisions that are not sure.
func (t *Traffic) decideAll(o Options) (results []*result, err error) {
	progress := tape.Progress{Tell: o.Progress, Of: int64(len(t.events) * len(t.tries))}
	for at := range t.tries {
		r, err := t.decide(at, progress.Step, nil)
		if err != nil {
			return nil, err
		}
		t.unnamed(r)
		if !t.exact {
			if err := t.findUnsure(r); err != nil {
				return nil, err
			}
		}
		results = append(results, r)
	}
	return results, nil
}

// findUnsure counts the decisions that the bounds of stamps leave open.
func (t *Traffic) findUnsure(r *result) error {
	return t.unsure(r, func(_ int, o outcome) {
		if !o.open {
			r.unsure++
		}
		for _, a := range o.asks {
			r.rows[a.row].unsure++
		}
		for _, a := range slices.Concat(o.links...) { // which may have paid
			r.rows[a.row].unsure++
		}
	})
}

// report returns the report of all rules together, and those of the rules that had something to decide or could not.
func (r *result) report(t *Traffic, top int) (reports []replay.LimitReport, rows []int) {
	all := r.all.Report(allTogether, t.clients.texts(), top)
	all.RuleReport = &replay.RuleReport{File: r.name, Keys: r.all.Keys(), Clients: len(r.clients), Unsure: r.unsure, Otherwise: r.otherwise, Undecided: r.undecided, Lacks: listed(r.lacks)}
	for c := range r.clients {
		if t.keyed[c] {
			all.Customers++
		}
	}
	for i := range all.WorstKeys {
		k := &all.WorstKeys[i]
		id, known := t.clients.find(k.Key)
		k.Address = known && t.subject.attribute != "" && !t.keyed[id]
	}
	reports = []replay.LimitReport{all}
	for i, row := range r.try.rows {
		got := &r.rows[i]
		if row.rule == nil && got.tally == nil {
			continue
		}
		l := replay.LimitReport{Limit: row.text, WorstKeys: []replay.KeyReport{}, WorstMinutes: []replay.MinuteReport{}}
		if got.tally != nil {
			l = got.tally.Report(row.text, row.keys.texts(), top)
		}
		byName := got.tally == nil && slices.Contains(r.try.config.ByName(), row.name)
		l.RuleReport = &replay.RuleReport{File: r.name, Rule: row.name, ByName: byName, Beside: row.beside, Instead: row.instead(), InAll: got.inAll, Elsewhere: got.elsewhere, Paid: got.paid, Clients: len(got.clients), Unsure: got.unsure, Otherwise: got.otherwise, Lacks: listed(got.lacks)}
		for _, lack := range l.Lacks {
			l.Undecided += lack.Requests
		}
		l.Unit = row.unit
		if got.tally != nil {
			l.Keys, l.Plans = got.tally.Keys(), row.planReports(got.plans, row.keys.texts())
		}
		l.Subject = r.subjectOf(row)
		reports, rows = append(reports, l), append(rows, i)
	}
	return reports, rows
}

// instead says how the replay of a rule differs from a daemon's decisions.
func (r *row) instead() string {
	switch {
	case r.rule == nil:
		return ""
	case r.rule.After:
		return "is charged after the work: a daemon counts a cost even if too little is left, up to a bound, and refuses the next request. Here each request asks for its cost, and is refused if that does not fit"
	case r.rule.Estimate != nil:
		return "estimates what a reservation holds. Here each request asks for its cost, and reserves nothing; --estimate replays reservations"
	}
	return ""
}

// listed lists attributes, that of the most requests first.
func listed(lacks map[string]int64) (all []replay.Lack) {
	for _, attribute := range slices.Sorted(maps.Keys(lacks)) {
		all = append(all, replay.Lack{Attribute: attribute, Requests: lacks[attribute]})
	}
	slices.SortStableFunc(all, func(a, b replay.Lack) int { return cmp.Compare(b.Requests, a.Requests) })
	return all
}
