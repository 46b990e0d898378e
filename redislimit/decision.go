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
	op       op
	parts    []part
	identity string  // the key of its identity; empty without one
	line     *inLine // of a caller that waits for slots; otherwise nil

	times    int64     // for an opUpTo, the most times to take the costs; once answered, the times taken
	now      int64     // us; for an undo, when the undone take was written
	sent     time.Time // when the call left; for an undo, that of the undone take
	admitted bool
	err      error // of this decision only

	longest int64   // us; of an opBook
	due     int64   // us; the instant of a booking
	late    bool    // a withdrawal of the engine: the caller of the booking has gone
	space   float64 // us; when all limits have space for the booking
}

// part is one limit of one key.
type part struct {
	limit   *limit
	key     string // in Redis
	lane    int
	request int    // index of its request
	line    string // the key of the line of its slots
	joins   bool   // an earlier part of the decision has the same value in Redis
	cost    int64
	lease   uint64
	measure enginekit.Measure

	stored  [6]float64 // the numbers of the state before the decision
	numbers [6]int64   // space for them
	wrote   int64      // us; when an admitted take was written
	left    span       // for the undo of a leaky bucket: TAT after the take
	told    float64    // and the newest release before it

	bookedTo, restored [3]float64 // for opWithdraw: numbers of the state after the booking, and of the one to restore
}

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

// measured computes what the script did not return.
func (p *part) measured(d *decision, now int64, wrote bool) {
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
	s, ok := p.state()
	if !ok {
		d.err = d.misread(false)
		return
	}
	p.measureState(s, now, wrote)
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
