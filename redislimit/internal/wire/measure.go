package wire

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/redislimit/internal/fault"
	"github.com/weirflow/weir/redislimit/internal/stored"
)

// measured computes the values that the script did not return, from the state before the decision. The answer then has
// one source, and the script only has to decide correctly whether to admit.
func (p *Part) measured(d *Decision, now int64, wrote bool, space *[6]int64) {
	m, l := &p.Measure, p.Limit
	m.Cost, m.Capacity, m.CountsDenied = p.Cost, l.Capacity, l.Denied
	p.wrote = now
	switch {
	case !l.Fixed:
		m.GapLeft = l.GapLeft(m.ResetAfter)
		if l.Kind == stored.KindLog && wrote {
			p.wrote = now + int64(m.ResetAfter/time.Microsecond) - l.Period // the newest entry
		}
		return
	case l.Kind == stored.KindQuota:
	case l.Kind > stored.KindLeaky && p.Stored[0] > float64(now):
		p.wrote = int64(p.Stored[0])
	}
	s, ok := p.stateIn(space)
	if !ok {
		d.Err = d.misread(false)
		return
	}
	if l.Kind == stored.KindQuota {
		p.wrote = l.Functions.TakenAt(s, now)
	}
	op := weir.OpRecord
	if d.Op == OpTake {
		op = weir.OpTake
	}
	l.Functions.Measure(m, op, &s, now, stored.Tick, wrote)
}

// RefusedToRecord reports whether a log or gate has no space for the entries of a record.
func (d *Decision) RefusedToRecord() bool {
	return d.Err == nil && slices.ContainsFunc(d.Parts, func(p Part) bool { return p.Measure.Full })
}

// agrees reports whether the script admitted exactly when no part has to wait.
func (d *Decision) agrees() bool {
	fits := true
	for i := range d.Parts {
		fits = fits && d.Parts[i].Measure.Before == 0
	}
	return fits == d.Admitted
}

// held reports whether a server first seen at since, if that matters, denies the decision: the decision takes something, and
// one of its states may have been lost earlier.
func (d *Decision) held(since float64, now int64) (held bool) {
	if math.IsInf(since, -1) {
		return false
	}
	takes := false
	for i := range d.Parts {
		takes = takes || d.Parts[i].Cost > 0
		held = held || d.Parts[i].until(since) > now
	}
	return held && takes && d.Op != OpRecord
}

// delay makes the parts whose states may have been lost wait until at most the capacity of their limits can have been
// spent.
func (d *Decision) delay(since float64, now int64) {
	for i := range d.Parts {
		if wait := d.Parts[i].until(since) - now; wait > 0 {
			m, wait := &d.Parts[i].Measure, stored.Duration(wait)
			m.Before, m.After, m.ResetAfter = max(m.Before, wait), max(m.After, wait), max(m.ResetAfter, wait)
			m.Remaining, m.Delay = 0, 0
		}
	}
}

// until returns when the part is no longer held.
func (p *Part) until(since float64) int64 { return int64(since + p.Limit.Spent()) }

// tookTimes turns an answered opUpTo into a take of the number of times that the
// script chose. It is false if the script cannot have chosen that.
func (d *Decision) tookTimes(times int64) bool {
	if times < 1 || times > max(d.Times, d.Most) { // the first answer may be that of a larger limit
		return false
	}
	d.Op, d.Times = OpTake, times
	for i := range d.Parts {
		d.Parts[i].Cost *= times
	}
	return true
}

// keepAnswer makes the answer to a repeated take an admission, though the limit may have become smaller since the first.
func (d *Decision) keepAnswer() {
	for i := range d.Parts {
		if m := &d.Parts[i].Measure; d.Admitted {
			m.Before, m.Cost = 0, min(m.Cost, m.Capacity)
		}
	}
}

// undone ends the reading of a decision that an undo has reached before: a take is refused, and an undo has nothing to
// do.
func (d *Decision) undone() {
	d.Admitted = false
	if d.Op != OpUndo {
		d.Err = fault.ErrUndone
	}
}

// measureBooking computes the values that the script did not return: the state after a booking, or the wait until a
// refused one is admitted.
func (d *Decision) measureBooking(now int64, withheld bool) {
	latest := int64(0)
	for i := range d.Parts {
		p := &d.Parts[i]
		own, ok := p.own(now)
		if !ok {
			d.Err = d.misread(false)
			return
		}
		latest = max(latest, own)
		p.Measure.Cost, p.Measure.Capacity = p.Cost, p.Limit.Capacity
		p.measureBooked(d, now, own)
	}
	fits := latest <= d.Longest && d.Space <= float64(now)
	exact := latest <= stored.MostAhead // the script's numbers are not exact further ahead
	if !withheld && (fits != d.Admitted || exact && now+latest != d.Due) {
		d.Err = d.misread(false)
	}
}

// own returns the time until the part's own instant.
func (p *Part) own(now int64) (until int64, ok bool) {
	if !p.Limit.Fixed {
		return int64(p.Measure.Before / time.Microsecond), true
	}
	s, ok := p.state()
	if !ok {
		return 0, false
	}
	return p.Limit.Functions.UntilDue(s, now, p.Cost), true
}

// space returns how long a refused booking waits for space in this limit. Only gates and leaky buckets lack it.
func (p *Part) space(d *Decision, now int64) time.Duration {
	switch {
	case p.Limit.Gate:
		return p.Measure.After
	case p.Limit.Kind == stored.KindLeaky:
		return stored.Duration(int64(d.Space) - now)
	}
	return 0
}

func (p *Part) measureBooked(d *Decision, now, own int64) {
	m := &p.Measure
	space := p.space(d, now)
	m.Before, m.After = 0, 0
	if !d.Admitted {
		m.Before = max(stored.Duration(own-d.Longest), space, 0)
		m.After = m.Before
	}
	if !p.Limit.Fixed {
		return
	}
	f := p.Limit.Functions
	s, _ := p.state()
	if d.Admitted {
		s = f.Book(s, now, p.Cost, d.Due-now)
	}
	m.Remaining, m.ResetAfter = f.Room(s, now), stored.Duration(f.ResetAfter(s, now))
}

// misread returns the error of an answer whose flag alone could be read. The script writes an admitted take, every
// record, and an attempt that a log counts though it refuses it.
func (d *Decision) misread(short bool) error {
	counted := weir.CountedNo
	switch {
	case short:
		counted = weir.CountedUnknown
	case d.Op == OpRecord, d.Op == OpTake && d.Admitted, d.Op == OpTake && d.Parts[0].Limit.Denied:
		counted = weir.CountedYes
	}
	return &fault.Error{Reason: fault.Damaged, Counted: counted, Err: fmt.Errorf("%w: is the value of %s damaged?", errReply, d.keys())}
}

// keys returns the keys of the decision, as an error names them.
func (d *Decision) keys() string {
	var keys []string
	for i := range d.Parts {
		if p := &d.Parts[i]; !p.Joins {
			keys = append(keys, p.Key)
		}
	}
	return strings.Join(keys, " or of ")
}

// Next returns the time until the rates of an admitted decision admit the same again, by the states in the answer.
func (d *Decision) Next() (wait time.Duration) {
	for i := range d.Parts {
		p := &d.Parts[i]
		if s, ok := p.state(); ok && d.Admitted && p.Limit.Fixed {
			f := p.Limit.Functions
			wait = max(wait, stored.Duration(f.Wait(f.Take(s, d.Now, p.Cost, 0), d.Now, p.Cost)))
		}
	}
	return wait
}
