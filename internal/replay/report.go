package replay

import (
	"cmp"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/accesslog"
	"github.com/weirflow/weir/internal/tape"
)

// Report is the result of a replay. `weir replay --format json` prints it as JSON. It does not depend on the order of
// the lines.
type Report struct {
	Reading
	Keys int `json:"keys"` // distinct keys
	// Customers are those of the keys that are customers by an attribute of rules, CustomersBy. The others are addresses.
	Customers   int           `json:"customers,omitempty"`
	CustomersBy string        `json:"customers_by,omitempty"`
	First       time.Time     `json:"-"` // the earliest event; zero without events
	Last        time.Time     `json:"-"` // the latest event
	Limits      []LimitReport `json:"limits"`
	// Unshown are the limits whose windows are longer than the log.
	Unshown []Unshown    `json:"unshown,omitempty"`
	Holds   []HoldReport `json:"holds,omitempty"` // if they were tried: see Traffic.Holds
	// Difference compares the first two limits, if there are exactly two.
	Difference *Difference `json:"difference,omitempty"`
	Busiest    []Busiest   `json:"busiest,omitempty"` // in order of length
}

// Reading says how logs were read, and how many of their lines do not count.
type Reading struct {
	Logs     []accesslog.Found  `json:"logs,omitempty"`     // how each log was read
	Lines    int64              `json:"lines"`              // all lines read, including blank ones
	LeftOut  int64              `json:"left_out,omitempty"` // lines outside the time or the requests that were asked for
	Unparsed int64              `json:"unparsed"`           // lines that were rejected
	Reasons  []accesslog.Reason `json:"unparsed_reasons,omitempty"`
}

// LimitReport is the result of one candidate.
type LimitReport struct {
	Limit        string         `json:"limit"` // the text as given
	Admitted     int64          `json:"admitted"`
	Refused      int64          `json:"refused"`
	Delayed      int64          `json:"delayed,omitempty"` // admitted with a delay, by a leaky bucket
	KeysRefused  int            `json:"keys_refused"`      // keys that were refused at least once
	Unit         string         `json:"unit,omitempty"`    // what Admitted and Refused count, here and by key and minute; empty: requests
	WorstKeys    []KeyReport    `json:"worst_keys"`        // the most refused first; empty without refusals
	WorstMinutes []MinuteReport `json:"worst_minutes"`     // the most refused first; empty without refusals
	Series       tape.Series    `json:"-"`                 // requests over time, from the first event
	Timelines    []tape.Series  `json:"-"`                 // the same for each of the first WorstKeys: see Options.Timelines
	Bans         *BanReport     `json:"bans,omitempty"`    // set for a limit with a ban
	*RuleReport                 // set for a rules file, or nil
}

// RuleReport is what the report of a rules file has beside that of a limit. The first report of a file is that of all its rules
// together, whose keys are clients. The others are of one rule each, whose keys are those of the rule.
type RuleReport struct {
	File string `json:"file"`
	Rule string `json:"rule,omitempty"` // empty for all together; NAME~candidate for the candidate of a rule
	// ByName reports that the rule decided nothing because only callers that name it ask it.
	ByName bool `json:"by_name,omitempty"`
	// Beside is true of a shadow or a candidate: it refuses nobody.
	Beside bool `json:"beside,omitempty"`
	// Instead says how the rule was replayed otherwise than a daemon decides by it; empty if it was not.
	Instead string `json:"instead,omitempty"`
	// InAll counts the requests refused by this rule that the report of all rules together has as refused. A request that the rule
	// refuses and another rule leaves undecided is undecided there.
	InAll int64 `json:"refused_in_all,omitempty"`
	// Elsewhere counts requests that the rule decided and another rule refused.
	Elsewhere int64 `json:"refused_elsewhere,omitempty"`
	// Paid counts requests that the rule refused and that another one paid for in its place, by `otherwise`.
	Paid int64 `json:"paid_elsewhere,omitempty"`
	// Clients are those that were refused at least once.
	Clients int `json:"clients_refused"`
	// Customers are those of Clients that are customers, of all rules together.
	Customers int `json:"customers_refused,omitempty"`
	// Keys is the number of keys that the rule decided, and Subject what one is called, such as customer.
	Keys    int    `json:"keys,omitempty"`
	Subject string `json:"subject,omitempty"`
	// Spares is the smallest limit of the form of the rule's that would have refused nothing; empty if none is known.
	Spares string       `json:"spares,omitempty"`
	Plans  []PlanReport `json:"plans,omitempty"`
	// Unsure counts requests, among those decided, whose decision depends on when exactly within the bounds of their stamps they came.
	Unsure int64 `json:"unsure,omitempty"`
	// Otherwise counts requests of a recording, among those decided, that its daemon decided otherwise.
	Otherwise int64 `json:"not_as_recorded,omitempty"`
	// Undecided counts requests that are not among the others: the log lacks an attribute that a rule depends on.
	Undecided int64  `json:"undecided,omitempty"`
	Lacks     []Lack `json:"lacks,omitempty"`
}

// PlanReport is what a rule did to the requests of one of its plans.
type PlanReport struct {
	Plan        string        `json:"plan,omitempty"` // empty: of none that the rule names
	Own         bool          `json:"own,omitempty"`  // the keys that have limits of their own, together
	Limit       string        `json:"limit,omitempty"`
	Keys        int           `json:"keys"`
	KeysRefused int           `json:"keys_refused"`
	Admitted    int64         `json:"admitted"`
	Refused     int64         `json:"refused"`
	Worst       *MinuteReport `json:"worst_minute,omitempty"`
	Spares      string        `json:"spares,omitempty"` // as in RuleReport
}

// Lack is an attribute that a log lacks, and the number of requests that a rule could not decide without it.
type Lack struct {
	Attribute string `json:"attribute"`
	Requests  int64  `json:"requests"`
}

// KeyReport is the result for one key under one candidate. A key that is not UTF-8 is quoted.
type KeyReport struct {
	Key  string `json:"key"`
	Name string `json:"name,omitempty"` // name of the customer whose key it is, if the program knows it
	Plan string `json:"plan,omitempty"` // plan of a rule that has plans
	// Address is true of an address among customers.
	Address  bool  `json:"address,omitempty"`
	Admitted int64 `json:"admitted"`
	Refused  int64 `json:"refused"`
	// Needs is the burst or count that would have refused nothing of the key, or 0 if that is not known.
	Needs int64     `json:"needs,omitempty"`
	From  time.Time `json:"-"` // its first refusal
	To    time.Time `json:"-"` // its last one
}

// Name names the keys of the report that name knows.
func (r *Report) Name(name func(key string) string) {
	for i := range r.Limits {
		for j := range r.Limits[i].WorstKeys {
			k := &r.Limits[i].WorstKeys[j]
			k.Name = name(k.Key)
		}
		r.Limits[i].Bans.name(name)
	}
	if r.Difference != nil {
		for i := range r.Difference.Keys {
			k := &r.Difference.Keys[i]
			k.Name = name(k.Key)
		}
	}
}

// Called returns the name of the customer, or the key of one without a name.
func (k KeyReport) Called() string { return cmp.Or(k.Name, k.Key) }

// MinuteReport is the result for one minute under one candidate, over all keys.
type MinuteReport struct {
	Minute   time.Time `json:"minute"` // its start, in UTC
	Admitted int64     `json:"admitted"`
	Refused  int64     `json:"refused"`
}

// reading says how the logs were read. The caller has called group, which leaves out lines.
func (t *Traffic) reading() Reading {
	return Reading{Logs: t.Logs(), Lines: t.reader().Lines(), LeftOut: t.reader().LeftOut(), Unparsed: t.reader().Rejected(), Reasons: t.Reasons()}
}

// report returns the figures that do not depend on a candidate.
func (t *Traffic) report() Report {
	r := Report{Reading: t.reading(), Keys: len(t.keys), Limits: []LimitReport{}}
	if t.events.n > 0 {
		r.First, r.Last = time.Unix(0, t.first).UTC(), time.Unix(0, t.last).UTC()
	}
	return r
}

// valid returns the key as text that JSON can hold. Different keys stay different.
func valid(key string) string {
	if utf8.ValidString(key) {
		return key
	}
	return strconv.Quote(key)
}

// outcome counts the decisions of one candidate by key and by minute. The caller adds them key by key.
type outcome struct {
	total   tally
	delayed int64

	key     keyTally // the current one
	refused []keyTally

	after  int64           // refusals that begin the ban of the limit; 0 without one
	banned map[int]*banned // of keys that were refused, with a ban

	first  int64 // the time of the earliest event
	series tape.Series

	minutes map[int64]*tally
	minute  *tally // the last minute used, which begins at start
	start   int64
}

// tally counts admitted and refused events.
type tally struct{ admitted, refused int64 }

type keyTally struct {
	id int
	tally
	from, to int64 // the first refusal and the last
}

type minuteTally struct {
	start int64
	tally
}

// newOutcome begins steps of the series at the first event. They are of a second at least, because most logs have whole
// seconds, unless that shows nothing.
func newOutcome(first, last int64) *outcome {
	length := tape.Since(first, last) + 1
	series := tape.NewSeries(length)
	if length > uint64(10*time.Second) && series.Every < time.Second {
		series = tape.SeriesOf(length, time.Second)
	}
	return &outcome{first: first, series: series, minutes: map[int64]*tally{}, banned: map[int]*banned{}}
}

func (t *tally) count(allowed bool, n int64) {
	if allowed {
		t.admitted += n
	} else {
		t.refused += n
	}
}

func (k *keyTally) count(now int64, allowed bool, n int64) {
	if k.tally.count(allowed, n); !allowed {
		if k.from == 0 {
			k.from = now
		}
		k.to = now
	}
}

// count counts a decision on a key.
func (o *outcome) count(now int64, id int, d weir.Decision) {
	o.key.count(now, d.Allowed, 1)
	o.note(now, d, 1)
	if o.after > 0 {
		o.noteBan(now, id, d)
	}
}

// note counts a decision by time.
func (o *outcome) note(now int64, d weir.Decision, n int64) {
	o.minuteOf(now).count(d.Allowed, n)
	at := tape.Since(o.first, now)
	o.series.Offer(at, n)
	if d.Allowed {
		o.series.Admit(at, n)
	} else {
		o.series.Refuse(at, n)
	}
	if d.Delay > 0 {
		o.delayed++
	}
}

// noteBan counts what a ban makes of a decision.
func (o *outcome) noteBan(now int64, id int, d weir.Decision) {
	b := o.banned[id]
	if b == nil && !d.Allowed {
		b = &banned{}
		o.banned[id] = b
	}
	if b != nil {
		b.count(now, d, o.after)
	}
}

// minuteOf returns the tally of the minute of an instant.
func (o *outcome) minuteOf(now int64) *tally {
	if o.minute != nil && tape.Since(o.start, now) < uint64(time.Minute) {
		return o.minute
	}
	o.start = now - ((now%int64(time.Minute))+int64(time.Minute))%int64(time.Minute)
	minute, ok := o.minutes[o.start]
	if !ok {
		minute = new(tally)
		o.minutes[o.start] = minute
	}
	o.minute = minute
	return minute
}

// endKey closes the tally of a key.
func (o *outcome) endKey(id int) {
	o.total.admitted += o.key.admitted
	o.total.refused += o.key.refused
	if o.key.refused > 0 {
		o.key.id = id
		o.refused = append(o.refused, o.key)
	}
	o.key = keyTally{}
}

func (o *outcome) report(limit string, keys []string, top int) LimitReport {
	return LimitReport{
		Limit:        limit,
		Admitted:     o.total.admitted,
		Refused:      o.total.refused,
		Delayed:      o.delayed,
		KeysRefused:  len(o.refused),
		WorstKeys:    o.worstKeys(keys, top),
		WorstMinutes: o.worstMinutes(top),
		Series:       o.series,
		Bans:         o.banReport(keys, top),
	}
}

// worstKeys returns the keys with the most refusals. Keys with equal counts are in order of name.
func (o *outcome) worstKeys(keys []string, top int) []KeyReport {
	slices.SortFunc(o.refused, func(a, b keyTally) int {
		return cmp.Or(cmp.Compare(b.refused, a.refused), cmp.Compare(keys[a.id], keys[b.id]))
	})
	worst := make([]KeyReport, 0, min(len(o.refused), max(top, 0)))
	for _, k := range o.refused[:cap(worst)] {
		worst = append(worst, k.report(keys))
	}
	return worst
}

func (k *keyTally) report(keys []string) KeyReport {
	return KeyReport{Key: valid(keys[k.id]), Admitted: k.admitted, Refused: k.refused, From: time.Unix(0, k.from).UTC(), To: time.Unix(0, k.to).UTC()}
}

// worstMinutes returns the minutes with the most refusals. Minutes with equal counts are in order of time.
func (o *outcome) worstMinutes(top int) []MinuteReport {
	var refused []minuteTally
	for start, t := range o.minutes {
		if t.refused > 0 {
			refused = append(refused, minuteTally{start, *t})
		}
	}
	slices.SortFunc(refused, func(a, b minuteTally) int {
		return cmp.Or(cmp.Compare(b.refused, a.refused), cmp.Compare(a.start, b.start))
	})
	worst := make([]MinuteReport, 0, min(len(refused), max(top, 0)))
	for _, m := range refused[:cap(worst)] {
		worst = append(worst, MinuteReport{Minute: time.Unix(0, m.start).UTC(), Admitted: m.admitted, Refused: m.refused})
	}
	return worst
}

// Difference tells which keys would notice a change from the first of two limits to the second.
type Difference struct {
	OnlyFirst  int             `json:"only_first"`  // keys that only the first refuses anything
	OnlySecond int             `json:"only_second"` // keys that only the second refuses anything
	Both       int             `json:"both"`
	Keys       []KeyDifference `json:"keys"` // with unequal counts, the largest difference first
}

// KeyDifference is what two limits refuse one key.
type KeyDifference struct {
	Key      string `json:"key"`
	Name     string `json:"name,omitempty"` // as in KeyReport
	Requests int64  `json:"requests"`
	First    int64  `json:"first"`  // refused by the first limit
	Second   int64  `json:"second"` // refused by the second limit
}

// Called returns the name of the customer, or the key of one without a name.
func (d KeyDifference) Called() string { return cmp.Or(d.Name, d.Key) }

// difference compares two outcomes of the same traffic. Keys with equal differences are in order of name.
func difference(first, second *outcome, keys []string, top int) *Difference {
	byKey := map[int]*KeyDifference{}
	for i, o := range []*outcome{first, second} {
		for _, k := range o.refused {
			d, ok := byKey[k.id]
			if !ok {
				d = &KeyDifference{Key: valid(keys[k.id]), Requests: k.admitted + k.refused}
				byKey[k.id] = d
			}
			if i == 0 {
				d.First = k.refused
			} else {
				d.Second = k.refused
			}
		}
	}
	result := &Difference{Keys: []KeyDifference{}}
	for _, d := range byKey {
		switch {
		case d.Second == 0:
			result.OnlyFirst++
		case d.First == 0:
			result.OnlySecond++
		default:
			result.Both++
		}
		if d.First != d.Second {
			result.Keys = append(result.Keys, *d)
		}
	}
	change := func(d KeyDifference) int64 { return max(d.First-d.Second, d.Second-d.First) }
	slices.SortFunc(result.Keys, func(a, b KeyDifference) int {
		return cmp.Or(cmp.Compare(change(b), change(a)), cmp.Compare(a.Key, b.Key))
	})
	result.Keys = result.Keys[:min(len(result.Keys), max(top, 0))]
	return result
}
