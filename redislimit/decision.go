package redislimit

import (
	"math"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// decision is one question to the script, and its answer.
type decision struct {
	op    op
	parts []part

	times    int64 // of an opUpTo: the most times to take the costs; after the answer: the times taken
	now      int64 // us; of an undo, when what it undoes was taken
	admitted bool
	err      error // of this decision alone
}

// part is one limit of one key.
type part struct {
	limit   *limit
	key     string // in Redis
	lane    int
	request int // which request asks
	cost    int64
	lease   uint64
	measure enginekit.Measure
	numbers [3]int64 // of a state that is read
}

// measureState asks the functions what the script did not tell: the state is
// that before the decision. So there is one source of what an answer says, and
// the script only has to be right about who is admitted.
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

// answer puts together what was measured of the parts of a decision, and what the
// limits without a state say.
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

// agrees says that the script admitted exactly if no part has to wait.
func (d *decision) agrees() bool {
	fits := true
	for i := range d.parts {
		fits = fits && d.parts[i].measure.Before == 0
	}
	return fits == d.admitted
}

// held says that a server seen first at since denies the decision: it takes
// something, and a state of it may have been lost before.
func (d *decision) held(since float64, now int64) (held bool) {
	takes := false
	for i := range d.parts {
		takes = takes || d.parts[i].cost > 0
		held = held || d.parts[i].until(since) > now
	}
	return held && takes && d.op != opRecord
}

// hold makes the parts whose states may have been lost wait until no more than
// their limits can have been spent.
func (d *decision) hold(since float64, now int64) {
	for i := range d.parts {
		if wait := d.parts[i].until(since) - now; wait > 0 {
			m, wait := &d.parts[i].measure, duration(wait)
			m.Before, m.After, m.ResetAfter = max(m.Before, wait), max(m.After, wait), max(m.ResetAfter, wait)
			m.Remaining, m.Delay = 0, 0
		}
	}
}

// until is when the part is not held any more.
func (p *part) until(since float64) int64 {
	if math.IsInf(since, -1) {
		return math.MinInt64
	}
	return int64(since + p.limit.spent())
}

// duration is us as a duration, which saturates.
func duration(micros int64) time.Duration {
	if micros > math.MaxInt64/int64(time.Microsecond) {
		return weir.Never
	}
	return time.Duration(micros) * time.Microsecond
}
