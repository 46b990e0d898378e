package pace

import (
	"context"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/fair"
)

// caller is a waiting caller. The lock of the queue guards it.
type caller struct {
	ctx      context.Context
	asked    []weir.Request // before QueueOptions.Resolve
	requests []weir.Request
	acquires bool
	flow     string
	weight   int64

	strategy strategy
	since    time.Time
	deadline time.Time     // zero means none
	turn     chan struct{} // receives once: when the caller goes or fails
	over     bool          // its wait has ended

	// What was taken for it, and the error of its wait, written before its turn.
	decision    weir.Decision
	reservation *weir.Reservation
	taken       []int64
	err         error

	fair.Node[*caller]      // its place among the callers that ask for the same
	entered            bool // it counts as waiting

	group   *group // for asking
	trip    *trip
	left    bool      // during a trip
	refused time.Time // when a key began to refuse it; zero if none does

	line   *exactLine // for exact
	served bool       // its flow is charged

	booked *bookedKey // for booking
}

// alike reports whether an answer to c is as good for another caller.
func (c *caller) alike(o *caller) bool {
	return c.acquires == o.acquires && !c.delays() && slices.Equal(c.requests, o.requests)
}

// delays reports whether its limit admits with a delay.
func (c *caller) delays() bool { return len(c.requests) == 1 && c.requests[0].Rule.Delays() }

// cost returns what its flow is charged: the largest cost of its requests.
func (c *caller) cost() (most int64) {
	for i := range c.requests {
		most = max(most, c.requests[i].Cost)
	}
	return most
}

// enter adds c to its flow of a queue.
func (c *caller) enter(q *fair.Queue[*caller]) {
	c.Cost = c.cost()
	q.Push(c, &c.Node, fair.Flow{Name: c.flow}, max(c.weight, 1))
}

// reservable refuses an Acquire of a limit whose delay a reservation cannot tell.
func (c *caller) reservable() error {
	for i := range c.requests {
		if r := c.requests[i].Rule; c.acquires && r.Delays() {
			return &weir.RequestError{Op: weir.OpReserve.String(), Rule: r.Name(), Field: "rule", Reason: "is a leaky bucket, whose delay a reservation cannot tell"}
		}
	}
	return nil
}

// takeNow takes the requests if they are admitted now.
func (c *caller) takeNow(ctx context.Context, engine weir.Engine) (err error) {
	call := weir.Call{Op: weir.OpTake, Requests: c.requests, Waits: true}
	if c.acquires {
		call.Op = weir.OpReserve
	}
	a, err := engine.Do(ctx, call)
	c.decision, c.reservation, c.taken = a.Decision, a.Reservation, a.Taken
	return err
}

// hopeless refuses a caller that can never go, or not before its deadline. Slots may come back at any time.
func (c *caller) hopeless(d weir.Decision, slots bool) error {
	cost := costOf(c.requests, d)
	if d.RetryAfter == weir.Never && (!slots || cost > d.Limit) { // slots without a lease come back all the same
		return &weir.CostError{Cost: cost, Capacity: d.Limit}
	}
	if !slots {
		return c.tooLate(d.RetryAfter)
	}
	return nil
}

// tooLate refuses a caller that has to wait beyond its deadline.
func (c *caller) tooLate(need time.Duration) error {
	if c.deadline.IsZero() {
		return nil
	}
	if left := time.Until(c.deadline); need > left {
		return &weir.WaitError{Need: need, Bound: left, Deadline: true}
	}
	return nil
}

// refusedBy refuses a caller that a decision gives no hope.
func (c *caller) refusedBy(d weir.Decision) error {
	if d.Allowed {
		return nil
	}
	return c.hopeless(d, waitsForSlots(c.requests, d))
}
