package api

import (
	"context"
	"errors"
	"time"

	"github.com/weirflow/weir"
)

// asker asks to take or to hold requests, and may wait for them.
type asker struct {
	api      *API
	asks     []weir.Request
	client   context.Context // ends when the client leaves
	patience time.Duration
	extend   func(until time.Time) // gives the client's connection time beyond its usual timeouts
	visit    *visit                // nil without patience
}

// overrider is an engine that gives keys other limits than those of their rules.
type overrider interface {
	Requests(requests []weir.Request) []weir.Request
}

// granted is what a call took.
type granted struct {
	decision weir.Decision
	undo     func(context.Context) error
	hold     *weir.Reservation // nil unless it was reserved
}

// get asks for the requests and returns what came of it. A refusal is no error.
func (c *asker) get(ask func(context.Context) (granted, error)) (granted, reason, error) {
	ctx, end := c.begin()
	defer end()
	got, err := c.inMemory(ctx, ask)
	if err == nil && got.decision.Allowed && c.client.Err() != nil {
		c.undo(got)
		err = c.client.Err()
	}
	if err == nil {
		c.finish(endOf(got.decision))
		return got, ended, nil
	}
	why := c.why(ctx, err)
	c.finish(why)
	if why == reasonNever || why == reasonPatience {
		if got, err = c.describe(err); err != nil {
			why = reasonEngine
		}
	}
	return got, why, err
}

// inMemory asks for the requests, unless they may wait and there is no memory for them.
func (c *asker) inMemory(ctx context.Context, ask func(context.Context) (granted, error)) (granted, error) {
	large := c.api.waits.large
	n := sizeOf(c.asks) / waitingBytes
	if c.patience == 0 || n == 0 {
		return ask(ctx)
	}
	if n = large.claim(n); n == 0 {
		return granted{}, weir.ErrQueueFull
	}
	defer large.leave(n)
	return ask(ctx)
}

// endOf returns the end of a wait with this decision.
func endOf(d weir.Decision) reason {
	switch {
	case d.Allowed:
		return ended
	case d.RetryAfter == weir.Never:
		return reasonNever
	}
	return reasonPatience
}

// begin returns the context of the wait: it ends with the caller's patience, with its connection, and with the
// daemon. It gives the connection the time of the wait beyond its usual timeouts.
func (c *asker) begin() (context.Context, context.CancelFunc) {
	if c.patience == 0 {
		return c.api.withPatience(c.client)
	}
	c.visit = c.api.waits.waiting.begin(c.asks)
	until := time.Now().Add(c.patience)
	c.extend(until.Add(answerSlack))
	ctx, cancel := context.WithDeadline(c.client, until)
	ctx, stop := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(c.api.waits.stopped, func() { stop(ErrStopping) })
	return ctx, func() {
		unhook()
		stop(nil)
		cancel()
	}
}

// take takes the requests without a reservation.
func (c *asker) take(ctx context.Context) (granted, error) {
	engine := c.api.engine
	take := c.api.waits.queue.Wait
	if c.patience == 0 {
		take = engine.Take
	}
	d, err := take(ctx, c.asks...)
	return granted{decision: d, undo: func(ctx context.Context) error {
		_, err := engine.Return(ctx, c.asks...)
		return err
	}}, err
}

// hold takes the requests with a reservation.
func (c *asker) hold(ctx context.Context) (granted, error) {
	if c.patience == 0 {
		r, err := c.api.engine.Reserve(ctx, c.asks...)
		if err != nil {
			_ = r.Cancel(ctx) // releases slots that may have been taken
			return granted{}, err
		}
		return granted{r.Decision, r.Cancel, r}, nil
	}
	r, err := c.api.waits.queue.Acquire(ctx, c.asks...)
	if err != nil {
		return granted{}, err
	}
	return granted{r.Decision, r.Cancel, r.Reservation}, nil
}

// undo gives back what was taken for a client that has gone.
func (c *asker) undo(got granted) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.client), undoWithin)
	defer cancel()
	if err := got.undo(ctx); err != nil {
		c.api.failures.warn(c.api.log, "units of a client that went away stay spent", "error", err)
	}
}

// finish counts the end of the wait.
func (c *asker) finish(why reason) {
	if c.visit != nil {
		c.visit.end(why)
	}
}

// why returns the reason for an error of the queue or of the engine.
func (c *asker) why(ctx context.Context, err error) reason {
	var tooLong *weir.WaitError
	switch {
	case c.client.Err() != nil:
		return reasonLeft
	case context.Cause(ctx) == ErrStopping && errors.Is(err, context.Canceled):
		return reasonStop
	case errors.Is(err, weir.ErrNever):
		return reasonNever
	case errors.Is(err, weir.ErrQueueFull):
		return reasonFull
	case errors.As(err, &tooLong):
		return reasonPatience
	case c.patience > 0 && errors.Is(err, context.DeadlineExceeded) && weir.WasCounted(ofEngine(err)) == weir.CountedNo:
		return reasonPatience
	}
	return reasonEngine
}

// ofEngine returns an error that an engine has returned, and nil for one of the queue, which has taken nothing.
func ofEngine(err error) error {
	var said interface{ WasCounted() weir.Counted }
	if errors.As(err, &said) {
		return err
	}
	return nil
}

// describe returns the present decision, for a wait that was refused or that has ended. The retry after is at least the
// wait that the queue has named.
func (c *asker) describe(err error) (granted, error) {
	ctx, cancel := context.WithTimeout(c.client, undoWithin)
	defer cancel()
	d, failed := c.api.engine.Peek(ctx, c.asks...)
	d.Allowed = false // also if only earlier callers are in the way, and no limit refuses
	if tooLong, ok := errors.AsType[*weir.WaitError](err); ok {
		d.RetryAfter = max(d.RetryAfter, tooLong.Need)
	}
	return granted{decision: d}, failed
}
