package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
)

// holdSlots reserves slots, keeps them for a while and releases them.
func (c *caller) holdSlots(ctx context.Context, i int) {
	s := &c.process.subjects[i]
	units := int64(1)
	if c.random.IntN(5) == 0 {
		units = 2
	}
	var r *weir.Reservation
	sent, answered, err := c.timed("Reserve of slots", i, func(ctx context.Context) (err error) {
		r, err = c.world.engine.Reserve(ctx, s.request(units))
		return err
	})
	if err != nil || !r.Decision.Allowed {
		if err == nil {
			c.count("Reserve of slots: refused")
		}
		return
	}
	h := &held{caller: c, subject: i, id: newID()}
	c.process.journal.write(record{Kind: recordHeld, World: c.world.number, Subject: i, Process: c.process.number, Units: units, Sent: sent, Answered: answered, ID: h.id})
	if c.random.IntN(20) == 0 { // for longer than a lease
		c.keep(ctx, r, h, 4*time.Second)
	} else {
		c.keep(ctx, r, h, time.Duration(c.random.Int64N(int64(200*time.Millisecond))))
	}
	h.freed(now())
	verb, end := "Done of slots", r.Done
	if c.random.IntN(2) == 0 {
		verb, end = "Cancel of slots", r.Cancel
	}
	_, _, _ = c.timed(verb, i, end)
}

// held is slots that a caller holds.
type held struct {
	caller  *caller
	subject int
	id      uint64
	over    bool
}

var ids atomic.Uint64

func newID() uint64 { return ids.Add(1) }

// keep holds the slots for a while, or until they are lost.
func (c *caller) keep(ctx context.Context, r *weir.Reservation, h *held, long time.Duration) {
	select {
	case <-r.Lost():
		c.count("slots: lost while held")
		h.ended(now(), lost)
	case <-ctx.Done():
	case <-time.After(long):
	}
}

// How slots end.
const (
	released = "released"
	lost     = "lost"
)

// freed notes that the slots are not held from an instant on.
func (h *held) freed(at int64) { h.ended(at, released) }

// ended notes how slots ended. The first time counts.
func (h *held) ended(at int64, how string) {
	if h.over {
		return
	}
	h.over = true
	c := h.caller
	c.process.journal.write(record{Kind: recordFreed, World: c.world.number, Subject: h.subject, Process: c.process.number, Sent: at, ID: h.id, What: how})
}
