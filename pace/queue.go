package pace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/line"
)

// Queue lets callers of this process wait for an engine: for one limit or several, of one key or several, here or on
// other machines.
//
// Callers of the queue that ask for the same keys go in order of arrival. Callers that ask for different keys do not wait for
// each other. The limits hold in any case, and nothing is taken before all requests of a caller are admitted at one instant.
//
// On a [weir.Memory] the queue is exact. On an engine that processes share, the queue books one key whose rule is bookable
// ([weir.Rule.Bookable]) for its oldest callers, at most 250 ms ahead, and callers of all processes go in the order that
// the engine booked. For any other request the first caller asks as soon as the engine may admit it. Then the order of
// arrival between processes is not promised, because an engine keeps nothing for a waiting caller: so no caller that
// leaves, dies or is refused holds up another one. docs/howto/waiting.md has the rules.
//
// A request with another one in its place ([weir.Request.Otherwise]) is asked for on every engine, again as soon as one
// of them may be admitted. In a Memory, such callers have no order among those of other keys.
//
// A Queue is safe for concurrent use.
type Queue struct {
	engine   weir.Engine
	capacity int

	mu      sync.Mutex
	exact   *exact   // for the memory engine, perhaps below others; otherwise nil
	ask     *asking  // for all others, and for requests with others in their places
	book    *booking // nil if the queue books nothing
	arrived uint64   // callers so far
	waiting atomic.Int64

	resolver func(weir.Request) weir.Request // nil without one

	background background // gives back what callers left behind

	// For Stats.
	all     map[*caller]bool // the waiting callers
	counts  QueueCounts
	byRule  map[string]*QueueCounts
	observe func(Waited)
}

// strategy is one way to wait. The lock of the queue guards it.
type strategy interface {
	// join adds a caller, which receives its turn when it goes or fails, perhaps at once. After an error it was not added.
	join(c *caller) error
	// leave removes a caller that has received no turn.
	leave(c *caller)
}

// QueueOptions configure a Queue. A zero field has its default.
type QueueOptions struct {
	// Queue bounds the waiting callers. Default: 100,000.
	Queue int
	// Resolve returns a request by the rules that are in force, so that a changed limit holds for callers that wait, too. The
	// queue calls it when a caller comes, before each question, and for all waiting callers when the program calls
	// [Queue.Changed]. It must be quick, and must not call the queue. Default: the request as it is.
	Resolve func(weir.Request) weir.Request
	// NoBooking has all callers ask. Processes that book leave little of a key to those that ask for it, as for several keys.
	NoBooking bool
	// Observe is called with the outcome of each caller, on the goroutine of that caller. If it panics, what the caller
	// took is given back. Default: nothing.
	Observe func(Waited)
}

const defaultQueue = 100_000

// NewQueue returns a queue for the engine. A negative bound is a *weir.OptionError.
func NewQueue(engine weir.Engine, options QueueOptions) (*Queue, error) {
	if options.Queue < 0 {
		return nil, &weir.OptionError{Op: "new queue", Field: "queue", Reason: "is negative"}
	}
	q := &Queue{engine: engine, capacity: cmp.Or(options.Queue, defaultQueue), all: map[*caller]bool{}, byRule: map[string]*QueueCounts{}, observe: options.Observe, resolver: options.Resolve}
	q.ask = newAsking(q)
	if memory, ok := weir.Find[*weir.Memory](engine); ok {
		q.exact = newExact(q, memory)
		hears := weak.Make(q)
		memory.OnReturn(func(requests []weir.Request) bool { return hears.Value().cameBack(requests) })
		return q, nil
	}
	if !options.NoBooking {
		q.book = newBooking(q)
	}
	return q, nil
}

// cameBack has the waiting callers looked at when units of their keys came back. It reports whether the queue is in use.
// It takes no lock, because the queue itself may give units back.
func (q *Queue) cameBack(requests []weir.Request) bool {
	if q != nil && q.waiting.Load() > 0 {
		keys := namesIn(requests)
		go func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.exact.returned(keys)
			q.ask.returned(keys, 0)
		}()
	}
	return q != nil
}

// cameBackHere has callers ask for a key whose units this process has given back.
func (q *Queue) cameBackHere(name string) {
	if q.exact == nil { // which hears it from the engine
		q.mu.Lock()
		defer q.mu.Unlock()
		q.ask.returned([]string{name}, 0)
	}
}

// Wait waits until the engine admits all requests, and takes them. The units of a rate stay spent; a Concurrency
// needs Acquire.
//
// If ctx ends before the caller's turn, nothing is taken and the error wraps the context's error. If the context's
// deadline is before the instant that the engine names, Wait returns a *weir.WaitError at once. A cost above the
// capacity is a *weir.CostError, and a full queue is weir.ErrQueueFull. Other errors come from the engine, or say that
// it panicked or gave an impossible answer. While the engine cannot be reached ([weir.Unavailable]), the caller keeps
// its place until its context ends. Units of a rate that were perhaps taken (see [weir.WasCounted]) stay spent then, unless a
// layer.Guard gives them back.
func (q *Queue) Wait(ctx context.Context, requests ...weir.Request) (weir.Decision, error) {
	return q.take(ctx, &caller{asked: requests})
}

func (q *Queue) take(ctx context.Context, c *caller) (weir.Decision, error) {
	err := q.wait(ctx, c)
	if err == nil && c.decision.Delay > 0 {
		if err = line.Sleep(ctx, c.decision.Delay); err != nil {
			q.abandon(c)
		}
	}
	q.ends(c, err)
	if err != nil {
		return weir.Decision{}, err
	}
	return c.decision, nil
}

// Acquire works like Wait and returns a reservation of the taken units. Its Done releases the slots of a Concurrency
// and leaves the other units spent; Cancel gives everything back. A caller that waits for slots is not refused because of
// a lease, which may end early.
func (q *Queue) Acquire(ctx context.Context, requests ...weir.Request) (*Acquired, error) {
	return q.acquire(ctx, &caller{asked: requests, acquires: true})
}

func (q *Queue) acquire(ctx context.Context, c *caller) (*Acquired, error) {
	err := q.wait(ctx, c)
	q.ends(c, err)
	if err != nil {
		return nil, err
	}
	return &Acquired{c.reservation, q, namesIn(c.took()), time.Now()}, nil
}

// Waiting returns the number of waiting callers.
func (q *Queue) Waiting() int { return int(q.waiting.Load()) }

// wait waits for c's turn.
func (q *Queue) wait(ctx context.Context, c *caller) error {
	c.ctx, c.turn = ctx, make(chan struct{}, 1)
	c.deadline, _ = ctx.Deadline()
	q.begins(c)
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.cost() <= 0 { // admitted, or wrong
		return guarded(func() error { return c.takeNow(ctx, q.engine) })
	}
	if err := q.join(c); err != nil {
		return err
	}
	select {
	case <-c.turn:
		return c.err
	case <-ctx.Done():
		return q.leave(c)
	}
}

// join adds c to the line of a strategy.
func (q *Queue) join(c *caller) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.arrived++
	c.Arrival = q.arrived
	if q.exact == nil || c.chained { // a call reads the requests even after its caller has left and reuses them
		c.requests = slices.Clone(c.requests)
	}
	err := q.place(c)
	c.over = c.over || err != nil
	return err
}

// place adds c to the strategy of its present requests. After an error it was not added.
func (q *Queue) place(c *caller) error {
	if err := c.fits(); err != nil {
		return err
	}
	c.strategy = q.strategyOf(c)
	return c.strategy.join(c)
}

// strategyOf returns how a caller waits.
func (q *Queue) strategyOf(c *caller) strategy {
	switch {
	case c.chained: // requests that may replace each other are not booked
		return q.ask
	case q.exact != nil:
		return q.exact
	case q.book != nil && q.book.can(c):
		return q.book
	}
	return q.ask
}

// enter counts a caller that a strategy adds, unless the queue is full.
func (q *Queue) enter(c *caller) error {
	switch {
	case c.entered:
		return nil
	case int(q.waiting.Load()) >= q.capacity:
		return weir.ErrQueueFull
	}
	c.entered = true
	q.waiting.Add(1)
	return nil
}

// end ends the wait of c: it goes, or fails with an error.
func (q *Queue) end(c *caller, err error) {
	if c.entered {
		q.waiting.Add(-1)
	}
	c.err, c.over = err, true
	c.turn <- struct{}{}
}

// leave removes c, whose context has ended, unless its turn has come meanwhile.
func (q *Queue) leave(c *caller) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-c.turn:
		return c.err
	default:
	}
	q.waiting.Add(-1)
	c.over = true
	c.strategy.leave(c)
	return leftError{c.ctx.Err()}
}

// leftError is the error of a caller that left: the queue gives back what the engine takes for it afterwards.
type leftError struct{ err error }

func (e leftError) Error() string          { return "pace: wait: " + e.err.Error() }
func (e leftError) Unwrap() error          { return e.err }
func (leftError) WasCounted() weir.Counted { return weir.CountedNo }

// errNonsense is returned to a caller if the engine gave an impossible answer.
var errNonsense = errors.New("pace: wait: the engine gave an impossible answer, such as a refusal without a RetryAfter above 0")

// guarded returns the error of a call of the engine, or an error if it panics: one caller's panic must not end the wait of
// the others.
func guarded(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("pace: wait: the engine panicked: %v", p)
		}
	}()
	return call()
}
