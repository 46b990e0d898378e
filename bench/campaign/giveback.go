package main

import (
	"context"
	"time"

	"github.com/weirflow/weir"
)

// returned notes units that came back, or may have come back.
func (c *caller) returned(verb string, i int, units, sent, answered int64, err error) {
	if err == nil {
		c.note(recordReturned, i, units, sent, answered, verb)
	} else if weir.WasCounted(err) != weir.CountedNo {
		c.note(recordReturned, i, units, sent, never, verb)
	}
}

// giveBack gives back units by the caller's word.
func (c *caller) giveBack(i int, cost int64) {
	s := &c.process.subjects[i]
	sent, answered, err := c.timed("Record of a negative cost", i, func(ctx context.Context) error {
		_, err := c.engine(s).Return(ctx, s.request(cost))
		return err
	})
	c.returned("Record of a negative cost", i, cost, sent, answered, err)
}

// reserve reserves units and settles them.
func (c *caller) reserve(i int, cost int64) {
	s := &c.process.subjects[i]
	var r *weir.Reservation
	sent, answered, err := c.timed("Reserve", i, func(ctx context.Context) (err error) {
		r, err = c.engine(s).Reserve(ctx, s.request(cost))
		return err
	})
	if err != nil || !r.Decision.Allowed {
		c.took("Reserve", i, false, cost, sent, answered, err)
		return
	}
	c.took("Reserve", i, true, cost, sent, answered, nil)
	switch used := c.random.Int64N(cost + 2); {
	case used == cost+1:
		_, _, _ = c.timed("Done", i, r.Done)
	default:
		sent, answered, err := c.timed("Settle", i, func(ctx context.Context) error { return r.Settle(ctx, used) })
		if used < cost {
			c.returned("Settle", i, cost-used, sent, answered, err)
		}
	}
}

// longestBooking bounds how far ahead callers book.
const longestBooking = time.Second

// book books units. They are used at the booked instant, unless the caller cancels at once.
func (c *caller) book(i int, cost int64) {
	s := &c.process.subjects[i]
	longest := time.Duration(c.random.Int64N(int64(longestBooking)))
	var r *weir.Reservation
	sent, answered, err := c.timed("Book", i, func(ctx context.Context) (err error) {
		r, err = weir.ReserveAhead(ctx, c.engine(s), longest, s.request(cost))
		return err
	})
	switch {
	case err != nil || !r.Decision.Allowed:
		c.took("Book", i, false, cost, sent, answered, err)
	case c.random.IntN(4) == 0:
		// Another booking may have come in between. Then units come back that were outstanding while others refilled, at
		// the latest at the newest booked instant.
		sent, answered, err := c.timed("Cancel of a booking", i, r.Cancel)
		c.returned("Cancel of a booking", i, cost, sent, answered+longestBooking.Microseconds(), err)
	default:
		delay := r.Decision.Delay.Microseconds()
		c.took("Book", i, true, cost, sent+delay, answered+delay, nil)
	}
}
