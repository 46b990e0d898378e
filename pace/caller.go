package pace

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/fair"
)

// caller is a waiting caller. The lock of the queue guards it.
type caller struct {
	ctx      context.Context
	asked    []weir.Request // before QueueOptions.Resolve
	requests []weir.Request
	chained  bool // a request has another in its place
	acquires bool
	flow     string
	weight   int64

	strategy strategy
	since    time.Time
	deadline time.Time     // zero means none
	turn     chan struct{} // receives once: when the caller goes or fails
	over     bool          // its wait has ended

	// The outcome of its wait, written before its turn.
	decision    weir.Decision
	reservation *weir.Reservation
	taken       []int64
	paid        []weir.Request // if they are not its requests: see took
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

// alike reports whether an answer to c also holds for another caller.
func (c *caller) alike(o *caller) bool {
	return c.acquires == o.acquires && !c.delays() && (slices.Equal(c.requests, o.requests) || c.chained && equal(c.requests, o.requests))
}

// delays reports whether its limit admits with a delay.
func (c *caller) delays() bool {
	return len(c.requests) == 1 && (c.requests[0].Rule.Delays() || c.chained && chainDelays(c.requests))
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

// reservable refuses an Acquire of a limit whose delay a reservation cannot carry.
func (c *caller) reservable() error {
	requests := c.requests
	if c.chained {
		requests = weir.Kit.Links(requests)
	}
	for i := range requests {
		if r := requests[i].Rule; c.acquires && r.Delays() {
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
	c.decision, c.reservation, c.taken, c.paid = a.Decision, a.Reservation, a.Taken, a.Paid
	return err
}

// fits refuses requests that no engine can decide, and a cost above the capacity of a limit, before they are in any line: no
// caller waits behind them. A key that is blocked has a capacity of 0.
func (c *caller) fits() error {
	if c.chained {
		return c.chainsFit()
	}
	merged, err := enginekit.Merge(weir.OpTake, c.requests)
	for _, r := range merged {
		if most := traitsOf(r.Rule).capacity; r.Cost > most {
			return &weir.CostError{Cost: r.Cost, Capacity: most}
		}
	}
	return err
}

// never reports whether a decision says that c can never go. Slots without a lease come back all the same.
func (c *caller) never(d weir.Decision) bool {
	return !d.Allowed && d.RetryAfter == weir.Never && (!waitsForSlots(c.requests, d) || costOf(c.requests, d) > d.Limit)
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

// refusedBy refuses a caller that can never go, or not before its deadline. Slots may come back at any time.
func (c *caller) refusedBy(d weir.Decision) error {
	switch {
	case c.never(d):
		return &weir.CostError{Cost: costOf(c.requests, d), Capacity: d.Limit}
	case d.Allowed || waitsForSlots(c.requests, d):
		return nil
	}
	return c.tooLate(d.RetryAfter)
}

// lapsed reports whether a lease that was granted after an instant may have ended by now.
func (c *caller) lapsed(since time.Time) bool {
	for _, q := range c.took() {
		if lease := traitsOf(q.Rule).lease; lease > 0 && time.Since(since) >= lease {
			return true
		}
	}
	return false
}

// resolve sets the requests of a caller by the rules that are in force: see QueueOptions.Resolve.
func (q *Queue) resolve(c *caller) {
	c.requests, c.chained = c.asked, false
	if q.resolver != nil {
		c.requests = make([]weir.Request, len(c.asked))
	}
	for i, r := range c.asked {
		if q.resolver != nil {
			c.requests[i] = q.resolver(r)
		}
		c.chained = c.chained || c.requests[i].Otherwise != nil
	}
}

// changes resolves the requests of a caller again. It reports whether they differ from before.
func (q *Queue) changes(c *caller) bool {
	if q.resolver == nil {
		return false
	}
	before := c.requests
	q.resolve(c)
	if slices.Equal(before, c.requests) || c.chained && equal(before, c.requests) {
		c.requests = before // a call may read them
		return false
	}
	return true
}

// keysOf returns a text that is equal for requests of the same keys under the same limits.
func keysOf(requests []weir.Request) string { return strings.Join(keysIn(requests), "\x00\x00") }

// keyOf returns a text that is equal for requests of one key under the same limits, with the same keys in their places. So a caller
// under new limits does not wait behind one under earlier limits.
func keyOf(r *weir.Request) string {
	if r.Rule == nil {
		return r.Key // the engine refuses it
	}
	text := r.Rule.String() + "\x00" + r.Key
	if r.Otherwise != nil {
		for _, q := range weir.Kit.Links([]weir.Request{*r})[1:] {
			text += "\x00otherwise\x00" + keyOf(&q)
		}
	}
	return text
}

// nameOf returns a text that is equal for requests of one key, even under different limits.
func nameOf(r *weir.Request) string {
	if r.Rule == nil {
		return r.Key
	}
	return r.Rule.Name() + "\x00" + r.Key
}

// namesIn returns the distinct names of requests.
func namesIn(requests []weir.Request) []string { return distinct(requests, nameOf) }

// keysIn returns the distinct keys of requests.
func keysIn(requests []weir.Request) []string { return distinct(requests, keyOf) }

func distinct(requests []weir.Request, of func(*weir.Request) string) (all []string) {
	for i := range requests {
		all = append(all, of(&requests[i]))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func asksForSlots(r weir.Request) bool { return weir.Kit.Held(r.Rule) != nil }

// onKey returns the requests of a key as one.
func onKey(requests []weir.Request, key string) (q weir.Request) {
	for i := range requests {
		if keyOf(&requests[i]) == key {
			cost := q.Cost
			q = requests[i]
			q.Cost += cost
		}
	}
	return q
}

// waitsForSlots reports whether slots refuse, which may come back before the engine's RetryAfter.
func waitsForSlots(requests []weir.Request, d weir.Decision) bool {
	return slices.ContainsFunc(requests, func(r weir.Request) bool { return r.Rule.Name() == d.Rule && bySlotsOf(r.Rule, d) })
}

// bySlotsOf reports whether it is slots of a rule that refuse.
func bySlotsOf(r *weir.Rule, d weir.Decision) bool {
	if d.Cause == weir.ByBan { // also beside slots alone, because the ban is held with them
		return false
	}
	if weir.Kit.Held(r) == nil || weir.Kit.Spent(r) == nil {
		return weir.Kit.Held(r) != nil
	}
	limits := r.Limits()
	return weir.Describe(limits[min(int(d.RefusedBy), len(limits)-1)]).Held
}

// costOf returns the cost of the key that a decision names.
func costOf(requests []weir.Request, d weir.Decision) (cost int64) {
	for _, r := range requests {
		if r.Rule.Name() == d.Rule && r.Key == d.Key {
			cost += r.Cost
		}
	}
	return cost
}
