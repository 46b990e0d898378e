package simulate

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// outcome counts the decisions of one candidate by key and by minute. The caller adds them key by key.
type outcome struct {
	total   tally
	delayed int64

	key    tally // of the current key
	denied []keyTally

	first  int64 // the time of the earliest event
	series Series

	minutes map[int64]*tally
	minute  *tally // the last minute used, which begins at start
	start   int64
}

// tally counts admitted and denied events.
type tally struct{ admitted, denied int64 }

type keyTally struct {
	id int
	tally
}

type minuteTally struct {
	start int64
	tally
}

// newOutcome begins steps of the series at the first event. They are of a second at least, because most logs have whole
// seconds, unless that shows nothing.
func newOutcome(first, last int64) *outcome {
	length := since(first, last) + 1
	series := newSeries(length)
	if length > uint64(10*time.Second) && series.Every < time.Second {
		series = seriesOf(length, time.Second)
	}
	return &outcome{first: first, series: series, minutes: map[int64]*tally{}}
}

func (t *tally) count(allowed bool) {
	if allowed {
		t.admitted++
	} else {
		t.denied++
	}
}

func (o *outcome) count(now int64, d weir.Decision) {
	o.key.count(d.Allowed)
	o.minuteOf(now).count(d.Allowed)
	at := since(o.first, now)
	o.series.offer(at, 1)
	if d.Allowed {
		o.series.admit(at, 1)
	} else {
		o.series.refuse(at, 1)
	}
	if d.Delay > 0 {
		o.delayed++
	}
}

// minuteOf returns the tally of the minute of an instant.
func (o *outcome) minuteOf(now int64) *tally {
	if o.minute != nil && since(o.start, now) < uint64(time.Minute) {
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
	o.total.denied += o.key.denied
	if o.key.denied > 0 {
		o.denied = append(o.denied, keyTally{id, o.key})
	}
	o.key = tally{}
}

func (o *outcome) report(limit string, keys []string, top int) LimitReport {
	return LimitReport{
		Limit:        limit,
		Admitted:     o.total.admitted,
		Denied:       o.total.denied,
		Delayed:      o.delayed,
		KeysDenied:   len(o.denied),
		WorstKeys:    o.worstKeys(keys, top),
		WorstMinutes: o.worstMinutes(top),
		Series:       o.series,
	}
}

// worstKeys returns the keys with the most denials. Keys with equal counts are in order of name.
func (o *outcome) worstKeys(keys []string, top int) []KeyReport {
	slices.SortFunc(o.denied, func(a, b keyTally) int {
		return cmp.Or(cmp.Compare(b.denied, a.denied), cmp.Compare(keys[a.id], keys[b.id]))
	})
	worst := make([]KeyReport, 0, min(len(o.denied), max(top, 0)))
	for _, k := range o.denied[:cap(worst)] {
		worst = append(worst, KeyReport{Key: valid(keys[k.id]), Admitted: k.admitted, Denied: k.denied})
	}
	return worst
}

// worstMinutes returns the minutes with the most denials. Minutes with equal counts are in order of time.
func (o *outcome) worstMinutes(top int) []MinuteReport {
	var denied []minuteTally
	for start, t := range o.minutes {
		if t.denied > 0 {
			denied = append(denied, minuteTally{start, *t})
		}
	}
	slices.SortFunc(denied, func(a, b minuteTally) int {
		return cmp.Or(cmp.Compare(b.denied, a.denied), cmp.Compare(a.start, b.start))
	})
	worst := make([]MinuteReport, 0, min(len(denied), max(top, 0)))
	for _, m := range denied[:cap(worst)] {
		worst = append(worst, MinuteReport{Minute: time.Unix(0, m.start).UTC(), Admitted: m.admitted, Denied: m.denied})
	}
	return worst
}
