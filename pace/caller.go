package pace

import (
	"container/list"
	"context"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/fair"
)

// caller is a waiting caller. The lock of the queue guards it.
type caller struct {
	ctx      context.Context
	requests []weir.Request
	lease    uint64 // in line: holds its slots
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
	err         error

	fair.Node[*caller]               // its place among the callers that ask for the same
	element            *list.Element // or among those for which the queue books

	group  *group // for the strategies that ask
	flight *flight
	left   bool // during a flight
	// again counts answers in which the slots for which it stood admitted it and another limit refused it.
	again int

	line   *exactLine // for exact
	served bool       // its flow is charged

	costLine *costLine // for booking
}

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

// call is what the lines decided for it.
func (c *caller) call() weir.Call { return weir.Call{Requests: c.requests, Lease: c.lease} }

// takeNow takes the requests if they are admitted now.
func (c *caller) takeNow(ctx context.Context, engine weir.Engine) (err error) {
	call := weir.Call{Op: weir.OpTake, Requests: c.requests, Waits: true}
	if c.acquires {
		call.Op = weir.OpReserve
	}
	a, err := engine.Do(ctx, call)
	c.decision, c.reservation = a.Decision, a.Reservation
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
