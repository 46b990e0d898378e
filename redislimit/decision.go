package redislimit

import (
	"math"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// decision is one decision of the script and its answer.
type decision struct {
	err      error // of this decision only
	op       op
	admitted bool
	again    bool // the answer is the first one to its identity, not the first time
	late     bool // a withdrawal of the engine: the caller of the booking has gone

	unsignalled bool // the call names no lines of the slots that it frees
	parts       []part
	now         int64        // us; for an undo, when the undone take was written
	sent        time.Time    // when the call left; for an undo, that of the undone take
	identity    string       // the key of its identity; empty without one
	line        *lineCaller  // of a caller that waits for slots; otherwise nil
	booking     *lineBooking // of a caller that books in line; otherwise nil

	first op    // for the identity of a take that only peeks, because its limit has become too small: opTake or opUpTo
	most  int64 // for the identity of an opUpTo, the most times that its caller asked for; 0 if times says it
	times int64 // for an opUpTo, the most times to take the costs; once answered, the times taken

	longest int64   // us; of an opBook
	due     int64   // us; the instant of a booking
	space   float64 // us; when all limits have space for the booking
}

// part is one limit of one key.
type part struct {
	limit   *limit
	key     string // in Redis
	cost    int64
	lane    int
	request int  // index of its request
	joins   bool // an earlier part of the decision has the same value in Redis
	lease   uint64
	wrote   int64 // us; when an admitted take was written
	measure enginekit.Measure
	stored  [6]float64 // the numbers of the state before the decision
	past    *past      // of what an undo or a withdrawal gives back; nil without an answer
}

// past is what a decision that gives units back says about the one that took them.
type past struct {
	left span    // for the undo of a leaky bucket: TAT after the take
	told float64 // and the newest release before it

	// for opWithdraw: numbers of the state after the booking, and of the one to restore
	bookedTo [3]float64
	restored [5]float64
}

// unknownPast is that of a take without an answer.
var unknownPast past

// groups returns the number of values that the decision reads.
func (d *decision) groups() (n int) {
	for i := range d.parts {
		if !d.parts[i].joins {
			n++
		}
	}
	return n
}

// shared returns the number of parts that have the value of part i, which is the first of them.
func (d *decision) shared(i int) int {
	n := 1
	if p := &d.parts[i]; p.limit.kind.fixed() {
		for i++; i < len(d.parts) && d.parts[i].request == p.request; i++ {
			if d.parts[i].joins {
				n++
			}
		}
	}
	return n
}

// repeats reports whether the decision differs from an earlier one of the same operation only in its key. Both have
// one value.
func (d *decision) repeats(before *decision) bool {
	if len(d.parts) != len(before.parts) {
		return false
	}
	for i := range d.parts {
		if p, q := &d.parts[i], &before.parts[i]; p.limit != q.limit || p.cost != q.cost {
			return false
		}
	}
	return true
}

// spent returns the time until all states are fresh again if they are empty now.
func (d *decision) spent() (most float64) {
	for i := range d.parts {
		most = max(most, d.parts[i].limit.spent())
	}
	return most
}

// age returns the time in us since the undone take left, by the clock of this process. An engine with a clock of its own
// has no use for it.
func (d *decision) age() float64 {
	if d.sent.IsZero() {
		return 0
	}
	return math.Ceil(float64(time.Since(d.sent)) / float64(time.Microsecond))
}

// beyond returns for how long the booked instant of a withdrawal has passed, at least, or -1 if its caller cancels it.
func (d *decision) beyond() float64 {
	if !d.late {
		return -1
	}
	return max(d.age()-float64(d.due-d.now), 0)
}

// measured computes what the script did not return, from the state before the decision. The answer then has one source,
// and the script only has to decide correctly whether to admit.
func (p *part) measured(d *decision, now int64, wrote bool, space *[6]int64) {
	m, l := &p.measure, p.limit
	m.Cost, m.Capacity, m.CountsDenied = p.cost, l.capacity, l.denied
	p.wrote = now
	switch {
	case l.kind.measured():
		if l.kind == kindLog && wrote {
			p.wrote = now + int64(m.ResetAfter/time.Microsecond) - l.period // the newest entry
		}
		return
	case l.kind > kindLeaky && p.stored[0] > float64(now):
		p.wrote = int64(p.stored[0])
	}
	s, ok := p.stateIn(space)
	if !ok {
		d.err = d.misread(false)
		return
	}
	l.functions.Measure(m, &s, now, Tick, wrote)
}

// refusedToRecord reports whether a log or gate has no space for what a record would add.
func (d *decision) refusedToRecord() bool {
	return d.err == nil && slices.ContainsFunc(d.parts, func(p part) bool { return p.measure.Full })
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
