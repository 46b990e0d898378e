package decide

import (
	"context"
	"errors"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

// WaitOptions bound waiting callers. A zero field has its default.
type WaitOptions struct {
	Longest time.Duration // the longest patience of a caller. Default: DefaultWait
	Callers int           // waiting at a time. Default: DefaultWaiting
	// NoBooking has all callers ask: see pace.QueueOptions.
	NoBooking bool
}

// The defaults of WaitOptions.
const (
	DefaultWait    = time.Minute
	DefaultWaiting = 2048
)

// answerSlack is the time that a client has to read an answer after its wait.
const answerSlack = 30 * time.Second

// Errors of Wait and Reserve.
var (
	// ErrStopping ends the waits of a stopping daemon. The error of an engine may stand before it.
	ErrStopping error = stopping{}
	// ErrSlots is returned for a wait by a rule that holds slots.
	ErrSlots = errors.New("the rule holds slots, which a wait could not release; POST /v1/reserve waits for them")
)

type stopping struct{}

func (stopping) Error() string            { return "the daemon is stopping" }
func (stopping) WasCounted() weir.Counted { return weir.CountedNo }

// waits are what waiting callers share.
type waits struct {
	*pace.Queue
	large   *places // of waiting callers with more than waitingBytes of requests
	longest time.Duration
	stopped context.Context // ends when the daemon stops
	stop    context.CancelFunc
}

func newWaits(engine weir.Engine, o WaitOptions, resolve func(weir.Request) weir.Request) (w waits) {
	if o.Callers <= 0 {
		o.Callers = DefaultWaiting
	}
	if w.longest = o.Longest; w.longest <= 0 {
		w.longest = DefaultWait
	}
	w.Queue, _ = pace.NewQueue(engine, pace.QueueOptions{Queue: o.Callers, Resolve: resolve, NoBooking: o.NoBooking}) // fails only for a negative bound
	w.large = &places{most: o.Callers}
	w.stopped, w.stop = context.WithCancel(context.Background())
	return w
}

// Stop ends all waits, and refuses further ones.
func (d *Desk) Stop() { d.queue.stop() }

// Stopped waits until the engine has what clients that stopped waiting had taken, for a second at most.
func (d *Desk) Stopped() {
	ctx, cancel := context.WithTimeout(context.Background(), undoWithin)
	defer cancel()
	_ = d.queue.Flush(ctx)
}

// Waiting returns the waiting callers.
func (d *Desk) Waiting() WaitingStats { return d.waiting.stats(d.queue.Stats()) }

// WaitingCallers returns how many callers wait.
func (d *Desk) WaitingCallers() int { return d.queue.Queue.Waiting() }

// Longest returns the longest patience of a caller.
func (d *Desk) Longest() time.Duration { return d.queue.longest }

// Patient is a caller of Wait or Reserve.
type Patient struct {
	Client   context.Context // ends when the client leaves
	Patience time.Duration
	// Extend, if not nil, gives the connection of the client time beyond its usual timeouts.
	Extend func(until time.Time)
}

// Wait takes the requests as soon as the engine admits them. A refusal is no error. Other errors than those of the engine are
// ErrStopping, ErrSlots, weir.ErrQueueFull, and that of the client that has left.
func (d *Desk) Wait(p Patient, requests []weir.Request) (Made, error) {
	if d.queue.stopped.Err() != nil {
		return Made{}, ErrStopping
	}
	if holdsSlots(requests) {
		return Made{}, ErrSlots
	}
	got, err := d.get(p, requests, (*attempt).take)
	if err == nil {
		d.Took(nil, got.asks, nil, got.made)
	}
	return got.made, err
}

// holdsSlots reports whether some requests hold slots, or others that may be made in their place.
func holdsSlots(requests []weir.Request) bool {
	for _, q := range Links(requests) {
		if weir.Kit.Held(q.Rule) != nil {
			return true
		}
	}
	return false
}

// Reserve works like Wait for a reservation, which the token settles within its life. It has none after a refusal. No candidate
// is tried, because none could be settled.
func (d *Desk) Reserve(p Patient, requests []weir.Request) (made Made, token string, life time.Duration, err error) {
	if d.queue.stopped.Err() != nil {
		return made, "", 0, ErrStopping
	}
	secret, err := d.options.Secret(p.Client)
	if err != nil {
		return made, "", 0, err
	}
	got, err := d.get(p, requests, (*attempt).hold)
	if err != nil {
		return got.made, "", 0, err
	}
	d.Recorded(got.asks, got.made.Allowed)
	d.replaced(got.asks, got.made)
	if got.hold == nil || !got.made.Allowed {
		return got.made, "", Lease(got.made.On), nil
	}
	token, life = d.handOver(secret, got)
	return got.made, token, life, nil
}

// granted is the outcome of a call that took.
type granted struct {
	asks []weir.Request // by the rules that decided: those in force at the end of a wait
	made Made
	paid []weir.Request // of the answer
	undo func(ctx context.Context, took []weir.Request) error
	hold *weir.Reservation // nil unless it was reserved
}

// attempt is a try to take or to hold requests, which may wait for them.
type attempt struct {
	Patient
	desk *Desk
	asks []weir.Request
}

// get asks for the requests and returns what came of it. A refusal is no error.
func (d *Desk) get(p Patient, requests []weir.Request, ask func(*attempt, context.Context) (granted, error)) (granted, error) {
	p.Patience = min(p.Patience, d.queue.longest)
	c := &attempt{Patient: p, desk: d, asks: requests}
	ctx, end := c.begin()
	defer end()
	got, err := c.inMemory(ctx, ask)
	if c.Patience > 0 {
		c.asks = d.present(requests)
	}
	c.complete(&got)
	if err == nil && got.made.Allowed && c.Client.Err() != nil {
		c.undo(got)
		err = c.Client.Err()
	}
	why := c.why(ctx, got.made.Decision, err)
	if c.Patience > 0 {
		d.waiting.end(requests, why)
	}
	switch {
	case err == nil:
		return got, nil
	case why == reasonLeft:
		return got, c.Client.Err()
	case why == reasonStop:
		return got, errors.Join(ofEngine(err), ErrStopping)
	case why == reasonNever, why == reasonPatience:
		return c.describe(err)
	}
	return got, err
}

// complete adds the requests that a decision is on.
func (c *attempt) complete(got *granted) {
	if got.asks, got.made.On = c.asks, c.asks; Chained(c.asks) {
		got.made.find(c.asks, got.paid)
	}
}

// inMemory asks for the requests, unless they may wait and there is no memory for them.
func (c *attempt) inMemory(ctx context.Context, ask func(*attempt, context.Context) (granted, error)) (granted, error) {
	large := c.desk.queue.large
	n := sizeOf(c.asks) / waitingBytes
	if c.Patience == 0 || n == 0 {
		return ask(c, ctx)
	}
	if n = large.claim(n); n == 0 {
		return granted{}, weir.ErrQueueFull
	}
	defer large.leave(n)
	return ask(c, ctx)
}

// begin returns the context of the wait: it ends with the caller's patience, with its connection, and with the
// daemon. It gives the connection the time of the wait beyond its usual timeouts.
func (c *attempt) begin() (context.Context, context.CancelFunc) {
	if c.Patience == 0 {
		return c.Client, func() {}
	}
	until := time.Now().Add(c.Patience)
	if c.Extend != nil {
		c.Extend(until.Add(answerSlack))
	}
	ctx, cancel := context.WithDeadline(c.Client, until)
	ctx, stop := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(c.desk.queue.stopped, func() { stop(ErrStopping) })
	return ctx, func() {
		unhook()
		stop(nil)
		cancel()
	}
}

// take takes the requests without a reservation.
func (c *attempt) take(ctx context.Context) (granted, error) {
	if c.Patience > 0 && Chained(c.asks) {
		return c.hold(ctx) // which tells who paid
	}
	var a weir.Answer
	var err error
	if c.Patience == 0 {
		a, err = c.desk.engineOf(c.asks).Do(ctx, weir.Call{Op: weir.OpTake, Requests: c.asks})
	} else {
		a.Decision, err = c.desk.queue.Wait(ctx, c.asks...)
	}
	return granted{made: Made{Decision: a.Decision}, paid: a.Paid, undo: func(ctx context.Context, took []weir.Request) error {
		_, err := c.desk.engine.Return(ctx, took...)
		return err
	}}, err
}

// hold takes the requests with a reservation.
func (c *attempt) hold(ctx context.Context) (granted, error) {
	if c.Patience == 0 {
		r, err := c.desk.engineOf(c.asks).Reserve(ctx, c.asks...)
		if err != nil {
			_ = r.Cancel(ctx) // releases slots that may have been taken
			return granted{}, err
		}
		return grantedOf(r, r.Cancel), nil
	}
	r, err := c.desk.queue.Acquire(ctx, c.asks...)
	if err != nil {
		return granted{}, err
	}
	return grantedOf(r.Reservation, r.Cancel), nil
}

// grantedOf returns what a reservation took.
func grantedOf(r *weir.Reservation, cancel func(context.Context) error) granted {
	got := granted{made: Made{Decision: r.Decision}, hold: r, undo: func(ctx context.Context, _ []weir.Request) error { return cancel(ctx) }}
	if r.Decision.Allowed {
		got.paid = weir.Kit.TakeOf(r).Requests
	}
	return got
}

// undo gives back what was taken for a client that has gone.
func (c *attempt) undo(got granted) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Client), undoWithin)
	defer cancel()
	if err := got.undo(ctx, got.made.On); err != nil {
		c.desk.failures.Warn(c.desk.options.Log, "units of a client that went away stay spent", "error", err)
	}
}

// why returns the end of a wait: by a decision, or by an error of the queue or of the engine.
func (c *attempt) why(ctx context.Context, d weir.Decision, err error) reason {
	var tooLong *weir.WaitError
	switch {
	case err == nil && d.Allowed:
		return ended
	case err == nil && d.RetryAfter == weir.Never:
		return reasonNever
	case err == nil:
		return reasonPatience
	case c.Client.Err() != nil:
		return reasonLeft
	case context.Cause(ctx) == ErrStopping && errors.Is(err, context.Canceled):
		return reasonStop
	case errors.Is(err, weir.ErrNever):
		return reasonNever
	case errors.Is(err, weir.ErrQueueFull):
		return reasonFull
	case errors.As(err, &tooLong):
		return reasonPatience
	case c.Patience > 0 && errors.Is(err, context.DeadlineExceeded) && weir.WasCounted(ofEngine(err)) == weir.CountedNo:
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
func (c *attempt) describe(err error) (granted, error) {
	ctx, cancel := context.WithTimeout(c.Client, undoWithin)
	defer cancel()
	a, failed := c.desk.engineOf(c.asks).Do(ctx, weir.Call{Op: weir.OpPeek, Requests: c.asks})
	got := granted{made: Made{Decision: a.Decision}, paid: a.Paid}
	if failed == nil {
		c.complete(&got)
	}
	d := &got.made.Decision
	d.Allowed, got.made.PaidBy = false, "" // even if only earlier callers are in the way, and no limit refuses
	if tooLong, ok := errors.AsType[*weir.WaitError](err); ok {
		d.RetryAfter = max(d.RetryAfter, tooLong.Need)
	}
	return got, failed
}
