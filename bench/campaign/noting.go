package main

import (
	"cmp"
	"context"
	"sync/atomic"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// noting is the engine of a queue. It notes what the queue takes of rates and gives back, because one call asks for many
// callers, and what was booked for one caller passes to the next. Slots are noted by those who hold them.
type noting struct {
	weir.Engine
	lines    enginekit.LineKeeper
	caller   *caller        // who notes
	subjects map[string]int // by key
	unused   []atomic.Int64 // by subject: what the queue has taken and no caller has
}

func newNoting(p *process, w *connection) *noting {
	e := &noting{lines: w.engine, caller: &caller{process: p, world: w}, subjects: map[string]int{}, unused: make([]atomic.Int64, len(p.subjects))}
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
	for _, r := range call.Requests {
		i := e.subjects[r.Key]
		switch call.Op {
		case weir.OpTake:
			e.took(i, a.Decision.Allowed, r.Cost, sent, now(), err)
		case weir.OpTakeUpTo:
			times := a.Times
			if err != nil {
				times = call.Most
			}
			e.took(i, a.Times > 0, times*r.Cost, sent, now(), err)
		case weir.OpReturn: // or releases slots
			if e.caller.process.subjects[i].use != useLine {
				e.unused[i].Add(-r.Cost)
				e.caller.returned("Wait", i, r.Cost, sent, now(), err)
			}
		}
	}
	return a, err
}

func (e *noting) EnterLines(hear func(enginekit.LineSignal)) enginekit.Lines {
	return notedLines{e.lines.EnterLines(hear), e}
}

type notedLines struct {
	enginekit.Lines
	engine *noting
}

// Ask notes the rates that callers take beside slots. A repeated question may be answered as the first was decided.
func (l notedLines) Ask(ctx context.Context, ask *enginekit.LineAsk) error {
	sent := now()
	err := l.Lines.Ask(ctx, ask)
	for i := range ask.Callers {
		c, from := &ask.Callers[i], sent
		if ask.Repeats {
			from = c.Since.UnixMicro()
		}
		for _, r := range c.Requests {
			if i := l.engine.subjects[r.Key]; l.engine.caller.process.subjects[i].use == useRate {
				l.engine.took(i, c.Decision.Allowed, r.Cost, from, now(), cmp.Or(err, c.Err))
			}
		}
	}
	return err
}

// Book notes the booked instants. A booking that is withdrawn is not used: see (*caller).book.
func (l notedLines) Book(ctx context.Context, book *enginekit.LineBook) error {
	sent := now()
	err := l.Lines.Book(ctx, book)
	answered := now()
	for i := range book.Callers {
		c := &book.Callers[i]
		r := &c.Requests[0]
		subject := l.engine.subjects[r.Key]
		if failed := cmp.Or(err, c.Err); failed != nil || !c.Decision.Allowed {
			l.engine.took(subject, false, r.Cost, sent, answered, failed)
			continue
		}
		delay, withdraw, id := c.Decision.Delay.Microseconds(), c.Withdraw, newID()
		l.engine.unused[subject].Add(r.Cost)
		l.booking(recordUsed, subject, id, r.Cost, sent+delay, answered+delay)
		c.Withdraw = func(ctx context.Context, units int64) error {
			sent := now()
			l.engine.unused[subject].Add(-units)
			err := withdraw(ctx, units)
			if err == nil || weir.MayHaveCounted(err) {
				l.booking(recordCancelled, subject, id, units, sent, now()+longestBooking.Microseconds())
			}
			return err
		}
	}
	return err
}

func (l notedLines) booking(kind recordKind, i int, id uint64, units, from, to int64) {
	c := l.engine.caller
	c.process.journal.write(record{Kind: kind, World: c.world.number, Subject: i, Process: c.process.number, Units: units, Sent: from, Answered: to, ID: id, What: "Wait for a booking"})
}
