package redislimit

import (
	"math"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/algorithm"
)

const algorithmNever = algorithm.Never

// decision is one question to the script, and its answer.
type decision struct {
	op    op
	parts []part

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
	measure measure
}

// measure is what a decision found of a part, in us.
type measure struct {
	before int64 // the wait of the cost before anything was written
	after  int64 // and after
	room   int64
	reset  int64 // the wait of the capacity
	delay  int64
}

// measureState asks the algorithm what the script did not tell: the state is
// that before the decision. So there is one source of what an answer says, and
// the script only has to be right about who is admitted.
func (p *part) measureState(s algorithm.State, now int64, wrote bool) {
	a := p.limit.algorithm
	p.measure = measure{before: p.wait(s, now)}
	taken := s
	if p.cost > 0 && (wrote || p.limit.delay != nil && p.measure.before == 0) {
		taken = a.Take(s, now, p.cost)
	}
	if p.limit.delay != nil && p.cost > 0 && (wrote || p.measure.before == 0) {
		p.measure.delay = p.limit.delay(taken, now)
	}
	if wrote {
		s = taken
		if p.cost < 0 {
			s = a.Give(s, now, magnitude(p.cost))
		}
	}
	p.measure.after = p.wait(s, now)
	p.measure.room = a.Room(s, now)
	p.measure.reset = a.Wait(s, now, a.Capacity())
}

func (p *part) wait(s algorithm.State, now int64) int64 {
	switch {
	case p.cost <= 0:
		return 0
	case p.cost > p.limit.capacity:
		return algorithm.Never
	}
	return p.limit.algorithm.Wait(s, now, p.cost)
}

// answer puts the parts of a decision together: the wait of all is the largest,
// the room of all the smallest.
func answer(o op, parts []part, requests []weir.Request) weir.Decision {
	wait, binding, tightest := int64(0), -1, 0
	var after, reset int64
	for i := range parts {
		m := &parts[i].measure
		if m.before > wait {
			wait, binding = m.before, i
		}
		if m.room < parts[tightest].measure.room {
			tightest = i
		}
		after, reset = max(after, m.after), max(reset, m.reset)
	}
	d := weir.Decision{
		Allowed:    wait == 0,
		Limit:      parts[tightest].limit.capacity,
		Remaining:  parts[tightest].measure.room,
		ResetAfter: duration(reset),
	}
	if wait != 0 && (o == opRecord || o == opTake && parts[0].limit.denied) {
		wait = after
	}
	d.RetryAfter = duration(wait)
	if binding < 0 {
		binding = tightest
	}
	if o != opRecord && d.Allowed {
		d.Delay = duration(parts[0].measure.delay)
	}
	q := &requests[parts[binding].request]
	d.Rule, d.Key = q.Rule.Name(), q.Key
	return d
}

// agrees says that the script admitted exactly if no part has to wait.
func (d *decision) agrees() bool {
	fits := true
	for i := range d.parts {
		fits = fits && d.parts[i].measure.before == 0
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
			m := &d.parts[i].measure
			m.before, m.after, m.reset = max(m.before, wait), max(m.after, wait), max(m.reset, wait)
			m.room, m.delay = 0, 0
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
