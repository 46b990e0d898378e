package main

import (
	"context"
	"errors"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
	"github.com/weirflow/weir/redislimit"
)

// wait waits in the queue again and again, until ctx ends. It finishes the last call.
func (c *caller) wait(ctx context.Context) {
	for ctx.Err() == nil {
		switch pick := c.random.IntN(20); {
		case pick == 0:
			c.overtake(ctx, c.draw(func(s *subject) bool { return s.use == useLine }))
		case pick < 15:
			c.acquire(ctx, c.draw(func(s *subject) bool { return s.use == useLine }))
		case pick < 18:
			c.waitFor("Wait for a booking", c.draw(func(s *subject) bool { return s.use == useBook }))
		default:
			c.waitFor("Wait", c.draw(func(s *subject) bool { return s.use == useReturn && !s.rule.Bookable() }))
		}
		pause(ctx, time.Duration(c.random.Int64N(int64(25*time.Millisecond))))
	}
}

const (
	longestInLine = 3 * time.Second
	leftLine      = "left"
)

// waiting makes a call that waits, for up to longest. The context of one in three has a later deadline, or none, and is
// cancelled: the call cannot know how long it may wait.
func (c *caller) waiting(verb string, i int, longest time.Duration, later time.Duration, call func(context.Context) error) (sent, answered int64, err error) {
	timeout := time.Duration(c.random.Int64N(int64(longest)))
	if c.random.IntN(5) == 0 {
		timeout = time.Duration(1+c.random.IntN(50)) * time.Millisecond
	}
	unknown := c.random.IntN(3) == 0
	sent, answered, err = c.timedFor(verb, i, timeout, func(ctx context.Context) error {
		if unknown {
			abandoned, cancel := context.WithTimeout(context.WithoutCancel(ctx), later)
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			ctx = abandoned
		}
		return call(ctx)
	})
	c.count(verb + ": " + waitOutcome(err))
	return sent, answered, err
}

// waitOutcome names the outcome of a wait: besides those of other calls, a refusal is an error, and so is a context that
// ended in line.
func waitOutcome(err error) string {
	_, failed := errors.AsType[*redislimit.Error](err)
	_, late := errors.AsType[*weir.WaitError](err)
	switch {
	case failed:
		return outcome(err)
	case late, errors.Is(err, weir.ErrQueueFull):
		return "refused"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return leftLine
	}
	return outcome(err)
}

// waitFor waits for a rate. The engine of the queue notes what is taken.
func (c *caller) waitFor(verb string, i int) {
	cost := 1 + c.random.Int64N(2)
	s, longest := &c.process.subjects[i], longestBooking-100*time.Millisecond
	_, _, err := c.waiting(verb, i, longest, longestBooking, func(ctx context.Context) error {
		_, err := c.world.queue.Wait(ctx, s.request(cost))
		return err
	})
	if err == nil {
		c.world.noting.goes(verb, i, cost)
	}
}

// acquire waits in line for slots, or for slots and a rate, keeps them for a while and releases them.
func (c *caller) acquire(ctx context.Context, i int) {
	s, verb := &c.process.subjects[i], "Acquire"
	units := int64(1)
	if s.bounds[0].Units > 1 && c.random.IntN(6) == 0 {
		units = 2
	}
	requests := []weir.Request{s.request(units)}
	rate := 0
	if s.beside > 0 && c.random.IntN(3) == 0 {
		rate, verb = s.beside, "Acquire with a rate"
		requests = append(requests, c.process.subjects[rate].request(1))
	}
	var got *pace.Acquired
	sent, answered, err := c.waiting(verb, i, longestInLine, time.Hour, func(ctx context.Context) (err error) {
		got, err = c.world.queue.Acquire(ctx, requests...)
		return err
	})
	if rate > 0 {
		c.note(recordWaitedRate, i, units, sent, answered, verb)
	} else {
		c.note(recordWaited, i, units, sent, answered, verb)
	}
	if err != nil {
		if _, failed := errors.AsType[*redislimit.Error](err); failed && weir.WasCounted(err) != weir.CountedNo {
			c.note(recordPerhapsTaken, i, units, sent, answered, verb)
		}
		return
	}
	if rate > 0 {
		c.world.noting.goes(verb, rate, 1)
	}
	kept, end := got.Reservation, got.Done
	if rate == 0 && c.random.IntN(2) == 0 {
		end = got.Cancel
	}
	c.work(ctx, i, units, sent, answered, kept, end)
}

// overtake reserves slots past the line.
func (c *caller) overtake(ctx context.Context, i int) {
	s := &c.process.subjects[i]
	var r *weir.Reservation
	sent, answered, err := c.timed("Reserve past the line", i, func(ctx context.Context) (err error) {
		r, err = c.world.engine.Reserve(ctx, s.request(1))
		return err
	})
	switch {
	case err != nil && weir.WasCounted(err) != weir.CountedNo:
		c.note(recordPerhapsTaken, i, 1, sent, answered, "")
	case err == nil && r.Decision.Allowed:
		c.work(ctx, i, 1, sent, answered, r, r.Done)
	}
}

// work keeps slots for a while and ends them.
func (c *caller) work(ctx context.Context, i int, units, sent, answered int64, r *weir.Reservation, end func(context.Context) error) {
	h := &held{caller: c, subject: i, id: newID()}
	c.process.journal.write(record{Kind: recordHeld, World: c.world.number, Subject: i, Process: c.process.number, Units: units, Sent: sent, Answered: answered, ID: h.id})
	long := time.Duration(c.random.Int64N(int64(150 * time.Millisecond)))
	if c.random.IntN(50) == 0 { // for longer than a lease
		long = 4 * time.Second
	}
	c.keep(ctx, r, h, long)
	h.freed(now())
	_, until, err := c.timed("Done of slots", i, end)
	if err != nil {
		c.note(recordPerhapsTaken, i, units, answered, until, "")
	} else {
		c.note(recordTaken, i, units, answered, until, "")
	}
}
