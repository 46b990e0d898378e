package enginekit_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/limittest"
)

// measuring decides like a script of a database: it stores numbers, decides by the functions of each part, and
// composes the answer from the measurements.
type measuring struct {
	clock func() int64
	mu    sync.Mutex
	rows  map[string][]int64
}

func (e *measuring) load(p *enginekit.Part) enginekit.State {
	row, ok := e.rows[p.StateKey()]
	if !ok {
		return p.Fresh()
	}
	state, ok := p.FromNumbers(row)
	if !ok {
		panic("numbers that the kit wrote are none")
	}
	return state
}

func (e *measuring) decide(_ context.Context, call *enginekit.Merged) (weir.Decision, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now, fits, fit, counts := e.clock(), true, true, false
	e.repeat(call, now)
	for i := range call.Parts {
		p := &call.Parts[i]
		if call.Op == weir.OpReset {
			delete(e.rows, p.StateKey())
		}
		fits = fits && p.Wait(e.load(p), now, p.Request.Cost) == 0
		fit = fit && p.Request.Cost <= p.Capacity()
		counts = counts || described(p).CountsDenied && p.Request.Cost <= p.Capacity()
	}
	if call.Op == weir.OpReset {
		return weir.Decision{}, nil
	}
	wrote := call.Op == weir.OpRecord || call.Op == weir.OpReturn || call.Op == weir.OpTake && (fits || counts)
	if call.Op == weir.OpTake && !fits && fit {
		e.refuse(call, now)
	}
	var measures []*enginekit.Measure
	for i := range call.Parts {
		struck := call.Op == weir.OpTake && !fits && fit && !call.Waits && e.strikes(call.Parts, i, now)
		if p := &call.Parts[i]; described(p).Bans {
			measures = append(measures, e.measureBan(p, now, struck))
		} else {
			measures = append(measures, e.measure(p, call, now, wrote))
		}
		measures[i].Request = slices.IndexFunc(call.Parts, func(q enginekit.Part) bool { return q.Request == call.Parts[i].Request })
	}
	d, binding := enginekit.Compose(call.Op, measures)
	q := &call.Parts[binding].Request
	d.Rule, d.Key = q.Rule.Name(), q.Key
	ordinal := uint8(call.Parts[binding].Limit)
	if d.LimitIndex += ordinal; !d.Allowed {
		d.RefusedBy = ordinal
	}
	return d, nil
}

// strikes reports whether a refused take is a strike to the ban that is the i-th part: it is not banned, and another limit of its
// rule refuses, for a time that is known.
func (e *measuring) strikes(parts []enginekit.Part, i int, now int64) bool {
	ban := &parts[i]
	return ban.Request.Cost > 0 && ban.Wait(e.load(ban), now, 1) == 0 && slices.ContainsFunc(parts, func(p enginekit.Part) bool {
		wait := p.Wait(e.load(&p), now, p.Request.Cost)
		return p.Request == ban.Request && wait > 0 && wait < int64(weir.Never)
	})
}

func (e *measuring) measureBan(p *enginekit.Part, now int64, struck bool) *enginekit.Measure {
	state := e.load(p)
	m := &enginekit.Measure{Cost: p.Request.Cost}
	p.Measure(m, weir.OpRecord, &state, now, time.Nanosecond, struck)
	if struck {
		state, _ = p.Strike(e.load(p), now)
		e.rows[p.StateKey()] = p.AppendNumbers(nil, state)
	}
	return m
}

// refuse stores the states that a refusal changes.
func (e *measuring) refuse(call *enginekit.Merged, now int64) {
	for i := range call.Parts {
		p := &call.Parts[i]
		state := e.load(p)
		if p.Wait(state, now, p.Request.Cost) == 0 {
			continue
		}
		if state, changed := p.Refused(state, now, p.Request.Cost); changed {
			e.rows[p.StateKey()] = p.AppendNumbers(nil, state)
		}
	}
}

// repeat multiplies the costs by the number of times that they fit, up to call.Most.
func (e *measuring) repeat(call *enginekit.Merged, now int64) {
	call.Times = call.Most
	for i := range call.Parts {
		if p := &call.Parts[i]; call.Most > 1 && p.Request.Cost > 0 {
			call.Times = min(call.Times, p.Room(e.load(p), now)/p.Request.Cost)
		}
	}
	for i := range call.Parts {
		call.Parts[i].Request.Cost *= max(call.Times, 1)
	}
}

// described returns the description of the limit of a part.
func described(p *enginekit.Part) weir.Description {
	return weir.Describe(p.Request.Rule.Limits()[p.Limit])
}

func (e *measuring) measure(p *enginekit.Part, call *enginekit.Merged, now int64, wrote bool) *enginekit.Measure {
	state, q, lease := e.load(p), &p.Request, call.Lease
	m := &enginekit.Measure{Cost: q.Cost, Capacity: p.Capacity(), CountsDenied: described(p).CountsDenied}
	before := p.Wait(state, now, q.Cost)
	m.Before = time.Duration(before)
	switch {
	case q.Cost > 0 && wrote:
		state = p.Take(state, now, q.Cost, lease)
		m.Delay, p.Taken = time.Duration(p.Delay(state, now)), p.TakenAt(state, now)
	case q.Cost > 0 && before == 0 && described(p).Delays:
		m.Delay = time.Duration(p.Delay(p.Take(state, now, q.Cost, lease), now))
	case q.Cost < 0 && call.Op == weir.OpReturn:
		state = p.Undo(state, p.Taken, now, -max(q.Cost, -int64(weir.Never)), lease)
	case q.Cost < 0 && wrote:
		state = p.Give(state, now, -max(q.Cost, -int64(weir.Never)), lease)
	}
	if wrote && q.Cost != 0 && !described(p).Stateless {
		e.rows[p.StateKey()] = p.AppendNumbers(nil, state)
	}
	m.After = time.Duration(p.Wait(state, now, q.Cost))
	m.GapLeft = time.Duration(p.GapLeft(state, now))
	m.Remaining = p.Room(state, now)
	m.ResetAfter = time.Duration(p.ResetAfter(state, now))
	return m
}

func TestAnEngineThatMeasuresAndStoresNumbersPassesTheSuite(t *testing.T) {
	limittest.Run(t, func(clock func() int64) weir.Engine {
		e := &measuring{clock: clock, rows: map[string][]int64{}}
		return enginekit.New(e.decide, nil)
	})
}
