package main

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
)

// noting is the engine of a queue. It notes what the queue takes of rates and gives back, because one call asks for many
// callers, and what was booked for one caller passes to the next. Slots are noted by those who hold them.
type noting struct {
	weir.Engine
	caller   *caller        // who notes
	subjects map[string]int // by key
	unused   []atomic.Int64 // by subject: what the queue has taken and no caller has
}

func newNoting(p *process, w *connection) *noting {
	e := &noting{caller: &caller{process: p, world: w}, subjects: map[string]int{}, unused: make([]atomic.Int64, len(p.subjects))}
	for i := range p.subjects {
		e.subjects[p.subjects[i].key] = i
	}
	e.Engine = weir.Wrap(w.engine, e.note)
	return e
}

// Unwrap returns the engine below, which renews leases.
func (e *noting) Unwrap() weir.Engine { return e.Engine }

// withoutUnits is the outcome of a caller that a queue let go without units. checkOutcomes finds it.
const withoutUnits = "went without units"

// goes notes that a caller of the queue goes.
func (e *noting) goes(verb string, i int, units int64) {
	if e.unused[i].Add(-units) < 0 {
		e.caller.count(verb + ": " + withoutUnits)
	}
}

func (e *noting) took(i int, allowed bool, units, sent, answered int64, err error) {
	if err == nil && allowed {
		e.unused[i].Add(units)
	}
	e.caller.took("Wait", i, allowed, units, sent, answered, err)
}

// note makes a call of the queue, and notes what it takes and gives back.
func (e *noting) note(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
	sent := now()
	a, err := next(ctx, call)
	switch call.Op {
	case weir.OpEach:
		for i := range call.Each.Calls {
			e.noteEach(&call.Each.Calls[i], &call.Each.Results[i], sent, err)
		}
	case weir.OpReturn: // or releases slots
		for _, r := range call.Requests {
			if i := e.subjects[r.Key]; e.caller.process.subjects[i].use != useLine {
				e.unused[i].Add(-r.Cost)
				e.caller.returned("Wait", i, r.Cost, sent, now(), err)
			}
		}
	}
	return a, err
}

// noteEach notes what one call of a trip takes or books.
func (e *noting) noteEach(call *weir.Call, r *weir.Result, sent int64, err error) {
	err = cmp.Or(err, r.Err)
	for _, q := range call.Requests {
		i := e.subjects[q.Key]
		switch {
		case call.Op == weir.OpReserveAhead && err == nil && r.Decision.Allowed:
			r.Reservation = e.booked(call, r.Reservation, i, sent)
		case call.Op == weir.OpTake && e.caller.process.subjects[i].use == useLine: // slots
		case call.Op == weir.OpTake || call.Op == weir.OpReserveAhead:
			e.took(i, r.Decision.Allowed, q.Cost, sent, now(), err)
		}
	}
}

// booked notes a booked instant. A booking that is withdrawn is not used: see (*caller).book.
func (e *noting) booked(call *weir.Call, r *weir.Reservation, i int, sent int64) *weir.Reservation {
	delay, id, units := r.Decision.Delay.Microseconds(), newID(), call.Requests[0].Cost
	e.unused[i].Add(units)
	e.booking(recordUsed, i, id, units, sent+delay, now()+delay)
	return weir.Kit.Granted(e, time.Time{}, r.Decision, func(ctx context.Context, units int64) error {
		sent := now()
		e.unused[i].Add(-units)
		err := r.Cancel(ctx)
		if err == nil || weir.WasCounted(err) != weir.CountedNo {
			e.booking(recordCancelled, i, id, units, sent, now()+longestBooking.Microseconds())
		}
		return err
	}, *call)
}

func (e *noting) booking(kind recordKind, i int, id uint64, units, from, to int64) {
	c := e.caller
	c.process.journal.write(record{Kind: kind, World: c.world.number, Subject: i, Process: c.process.number, Units: units, Sent: from, Answered: to, ID: id, What: "Wait for a booking"})
}
