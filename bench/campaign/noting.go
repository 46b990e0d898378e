package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/redislimit"
)

// noting is the engine of a queue. It notes what the queue takes and gives back, because one caller of a queue asks for
// others, and its bookings pass from one to the next.
type noting struct{ *redislimit.Engine }

// notes says for whom a call of the engine is made. It travels in the context.
type notes struct {
	caller  *caller
	subject int
	cost    int64
	asked   atomic.Int64 // when the last question in line was sent
}

type notesKey struct{}

func noted(ctx context.Context, n *notes) context.Context {
	return context.WithValue(ctx, notesKey{}, n)
}

func notesOf(ctx context.Context) *notes { return ctx.Value(notesKey{}).(*notes) }

func (n *notes) took(allowed bool, times, sent, answered int64, err error) {
	n.caller.took("Wait", n.subject, allowed, times*n.cost, sent, answered, err)
}

func (e *noting) Take(ctx context.Context, requests ...weir.Request) (weir.Decision, error) {
	sent := now()
	d, err := e.Engine.Take(ctx, requests...)
	notesOf(ctx).took(d.Allowed, 1, sent, now(), err)
	return d, err
}

func (e *noting) TakeUpTo(ctx context.Context, most int64, requests ...weir.Request) (times int64, d weir.Decision, err error) {
	sent := now()
	times, d, err = e.Engine.TakeUpTo(ctx, most, requests...)
	if n := notesOf(ctx); err != nil {
		n.took(false, most, sent, now(), err)
	} else {
		n.took(times > 0, times, sent, now(), nil)
	}
	return times, d, err
}

// Record gives units back.
func (e *noting) Record(ctx context.Context, requests ...weir.Request) (weir.Decision, error) {
	sent := now()
	d, err := e.Engine.Record(ctx, requests...)
	n := notesOf(ctx)
	n.caller.returned("Wait", n.subject, -requests[0].Cost, sent, now(), err)
	return d, err
}

// TakeAhead notes the booked instant. A booking that is cancelled is not used: see (*caller).book.
func (e *noting) TakeAhead(ctx context.Context, longest time.Duration, request weir.Request) (weir.Decision, func(context.Context, int64) error, error) {
	sent := now()
	d, withdraw, err := e.Engine.TakeAhead(ctx, longest, request)
	n := notesOf(ctx)
	if err != nil || !d.Allowed {
		n.took(false, 1, sent, now(), err)
		return d, withdraw, err
	}
	delay, id := d.Delay.Microseconds(), newID()
	n.booking(recordUsed, id, sent+delay, now()+delay)
	return d, func(ctx context.Context, units int64) error {
		sent := now()
		err := withdraw(ctx, units)
		if err == nil || weir.MayHaveCounted(err) {
			n.booking(recordCancelled, id, sent, now()+longestBooking.Microseconds())
		}
		return err
	}, nil
}

func (n *notes) booking(kind recordKind, id uint64, from, to int64) {
	c := n.caller
	c.process.journal.write(record{Kind: kind, World: c.world.number, Subject: n.subject, Process: c.process.number, Units: n.cost, Sent: from, Answered: to, ID: id, What: "Wait for a booking"})
}

func (e *noting) StandInLine(requests ...weir.Request) weir.LinePlace {
	if place := e.Engine.StandInLine(requests...); place != nil {
		return notedPlace{place}
	}
	return nil
}

// notedPlace notes when its caller asks.
type notedPlace struct{ weir.LinePlace }

func (p notedPlace) Reserve(ctx context.Context, requests ...weir.Request) (*weir.Reservation, error) {
	notesOf(ctx).asked.Store(now())
	return p.LinePlace.Reserve(ctx, requests...)
}
