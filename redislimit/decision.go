package redislimit

import (
	"math"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// decision is one decision of the script and its answer.
type decision struct {
	op    op
	parts []part

	times    int64 // for an opUpTo, the most times to take the costs; once answered, the times taken
	now      int64 // us; for an undo, the time of the undone take
	admitted bool
	err      error // of this decision only
}

// part is one limit of one key.
type part struct {
	limit   *limit
	key     string // in Redis
	lane    int
	request int // index of its request
	cost    int64
	lease   uint64
	measure enginekit.Measure
	numbers [6]int64 // of a state that was read
}

// measureState computes what the script did not return, from the state before the decision. The answer then has one
// source, and the script only has to decide correctly whether to admit.
func (p *part) measureState(s enginekit.State, now int64, wrote bool) {
	f, m := p.limit.functions, &p.measure
	before := f.Wait(s, now, p.cost)
	m.Before = duration(before)
	taken := s
	if p.cost > 0 && (wrote || before == 0 && f.Delays()) {
		taken = f.Take(s, now, p.cost, 0)
		m.Delay = duration(f.Delay(taken, now))
	}
	if wrote {
		s = taken
		if p.cost < 0 {
			s = f.Give(s, now, magnitude(p.cost), 0)
		}
	}
	m.After = duration(f.Wait(s, now, p.cost))
	m.Remaining = f.Room(s, now)
	m.ResetAfter = duration(f.ResetAfter(s, now))
}

// answer combines the measurements of a decision's parts with those of limits without a state.
func answer(o op, parts []part, requests []weir.Request) weir.Decision {
	var space [4]*enginekit.Measure
	measures := space[:0]
	parts = allParts(parts, requests)
	for i := range parts {
		measures = append(measures, &parts[i].measure)
	}
	d, binding := enginekit.Compose(enginekit.Op(o.String()), measures)
	q := &requests[parts[binding].request]
	d.Rule, d.Key = q.Rule.Name(), q.Key
	return d
}

// agrees reports whether the script admitted exactly when no part has to wait.
func (d *decision) agrees() bool {
	fits := true
	for i := range d.parts {
		fits = fits && d.parts[i].measure.Before == 0
	}
	return fits == d.admitted
}

// held reports whether a server first seen at since denies the decision: the decision takes something, and one of its
// states may have been lost earlier.
func (d *decision) held(since float64, now int64) (held bool) {
	takes := false
	for i := range d.parts {
		takes = takes || d.parts[i].cost > 0
		held = held || d.parts[i].until(since) > now
	}
	return held && takes && d.op != opRecord
}

// hold makes the parts whose states may have been lost wait until at most the capacity of their limits can have been
// spent.
func (d *decision) hold(since float64, now int64) {
	for i := range d.parts {
		if wait := d.parts[i].until(since) - now; wait > 0 {
			m, wait := &d.parts[i].measure, duration(wait)
			m.Before, m.After, m.ResetAfter = max(m.Before, wait), max(m.After, wait), max(m.ResetAfter, wait)
			m.Remaining, m.Delay = 0, 0
		}
	}
}

// until returns when the part is no longer held.
func (p *part) until(since float64) int64 {
	if math.IsInf(since, -1) {
		return math.MinInt64
	}
	return int64(since + p.limit.spent())
}

// duration converts us to a duration, which saturates.
func duration(micros int64) time.Duration {
	if micros > math.MaxInt64/int64(time.Microsecond) {
		return weir.Never
	}
	return time.Duration(micros) * time.Microsecond
}
