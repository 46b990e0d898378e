package pace

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// How far ahead instants are booked. A refusal of a booking that comes at the instant that the engine has named widens the
// horizon, so that the large and the far are not starved; a booking resets it. So a process that dies or whose callers leave
// wastes little.
const (
	firstHorizon = 250 * time.Millisecond
	mostHorizon  = time.Second // and the time of the own cost
	leastWider   = 50 * time.Millisecond
)

// Processes that were told the same instant book after a random time.
const (
	leastJitter = 20 * time.Millisecond
	mostJitter  = 200 * time.Millisecond // less than the horizon, so that it costs no units
)

// book books for the next callers without an instant, unless it has to wait for an answer, an instant, or room in the horizon.
func (k *bookedKey) book() {
	if k.asked != nil || k.look.planned() {
		return
	}
	if n := len(k.instants); n > 0 {
		if ahead := time.Until(k.instants[n-1].at) - k.full; ahead > 0 {
			k.booking.agenda.plan(&k.look, time.Now().Add(ahead))
			return
		}
	}
	most := min(2*k.last+1, k.tempo.most)
	largest := int64(0)
	for c := range k.open { // one that costs less than one before it could be booked while that one is refused
		cost := c.requests[0].Cost
		if len(k.asked) == most || cost < largest {
			break
		}
		k.asked, largest = append(k.asked, c), cost
	}
	if moved := k.moved(); len(moved) > 0 {
		k.asked = nil
		k.hand(moved)
		return
	}
	if len(k.asked) == 0 {
		return
	}
	calls := make([]weir.Call, len(k.asked))
	for i, c := range k.asked {
		longest := k.horizon
		if !c.deadline.IsZero() {
			longest = max(min(longest, time.Until(c.deadline)), 0)
		}
		calls[i] = weir.Call{Op: weir.OpReserveAhead, Longest: longest, Requests: slices.Clone(c.requests), Waits: true}
	}
	go k.fly(context.WithoutCancel(k.asked[0].ctx), calls)
}

// moved returns those of the next callers whose rules have changed, so that they wait elsewhere now.
func (k *bookedKey) moved() (moved []*caller) {
	for _, c := range k.asked {
		if k.booking.queue.changes(c) {
			moved = append(moved, c)
		}
	}
	return moved
}

// fly waits for the answer to a booking.
func (k *bookedKey) fly(ctx context.Context, calls []weir.Call) {
	began := time.Now()
	results := make([]weir.Result, len(calls))
	err := guarded(func() error { return k.booking.queue.engine.Each(ctx, calls, results) })
	k.booking.queue.mu.Lock()
	defer k.booking.queue.mu.Unlock()
	asked := k.asked
	k.asked, k.notBefore = nil, time.Time{}
	if k.unbooked(err, results) {
		return
	}
	k.last, k.full = 0, rand.N(firstHorizon) // a fixed one would lock the phases of processes
	a := bookedAnswer{now: time.Now(), trip: time.Since(began)}
	for i, c := range asked {
		k.answer(&a, c, &calls[i], &results[i], err)
	}
	k.plan(&a)
	k.serve()
	if k.left != nil {
		k.left()
		k.left = nil
	}
}

// bookedAnswer is what a booking has told.
type bookedAnswer struct {
	now    time.Time
	trip   time.Duration
	failed bool          // the engine could not be reached
	due    time.Duration // until a caller that was refused may be booked; 0 if none was
	cost   int64         // of that caller
	ended  bool          // an error has ended the wait of a caller
}

// answer takes in the answer to one call of a booking.
func (k *bookedKey) answer(a *bookedAnswer, c *caller, call *weir.Call, r *weir.Result, err error) {
	if r.Err == nil {
		r.Err = err
	}
	d := r.Decision
	switch {
	case r.Err != nil && weir.Unavailable(r.Err):
		a.failed = true
		return
	case r.Err != nil && err != nil && a.ended: // an error of all ends the wait of one caller; the others book again
		return
	case r.Err != nil:
		a.ended = c.booked == k
		k.end(c, r.Err)
	case d.Allowed && r.Reservation != nil:
		k.last++
		k.insert(instant{a.now.Add(d.Delay), call.Requests[0].Cost, r.Reservation})
	case d.Allowed || d.RetryAfter <= 0 && call.Requests[0].Cost <= d.Limit:
		k.end(c, errNonsense)
	case call.Requests[0].Cost > d.Limit:
		k.end(c, &weir.CostError{Cost: call.Requests[0].Cost, Capacity: d.Limit})
	default:
		k.refused(a, c, call, d.RetryAfter)
	}
}

// refused takes in a refusal: the caller's instant would be need after the horizon.
func (k *bookedKey) refused(a *bookedAnswer, c *caller, call *weir.Call, need time.Duration) {
	instant := min(need, 24*time.Hour) + call.Longest
	if err := c.tooLate(instant); err != nil {
		k.end(c, err)
		return
	}
	if at := a.now.Add(instant); k.notBefore.IsZero() || at.Before(k.notBefore) {
		k.notBefore = at
	}
	if due := max(instant-k.horizon, shortestPause); c.booked == k && (a.due == 0 || due < a.due) {
		a.due, a.cost = due, call.Requests[0].Cost
	}
}

func (k *bookedKey) insert(at instant) {
	i := len(k.instants)
	for i > 0 && k.instants[i-1].at.After(at.at) {
		i--
	}
	k.instants = slices.Insert(k.instants, i, at)
}

// end ends the wait of a caller that is still there.
func (k *bookedKey) end(c *caller, err error) {
	if c.booked == k {
		k.callers.Remove(&c.Node)
		c.booked = nil
		k.booking.queue.end(c, err)
	}
}

// plan plans the next booking.
func (k *bookedKey) plan(a *bookedAnswer) {
	if a.failed {
		k.failures++
		k.booking.agenda.plan(&k.look, a.now.Add(backOff(k.failures)))
		return
	}
	k.failures = 0
	wait := a.due
	switch own := k.tempo.unit * time.Duration(a.cost); {
	case k.last > 0:
		k.horizon, k.retryAt = firstHorizon, time.Time{}
	case a.due > 0:
		wider := max(leastWider, own/4)
		if !a.now.Add(shortestPause).Before(k.retryAt) {
			if !k.retryAt.IsZero() {
				k.horizon = min(mostHorizon+own, k.horizon+wider)
				wait = max(wait-wider, 0)
			}
			k.retryAt = a.now.Add(wait)
		}
		wait = max(k.retryAt.Sub(a.now), 0)
	}
	if a.due == 0 {
		return
	}
	wait = min(wait, longestPause) + rand.N(max(leastJitter, 2*a.trip, min(k.tempo.unit, mostJitter)))
	k.booking.agenda.plan(&k.look, a.now.Add(wait))
}

// unbooked has all callers ask if the engine books nothing.
func (k *bookedKey) unbooked(err error, results []weir.Result) bool {
	q := k.booking.queue
	if !errors.Is(err, errors.ErrUnsupported) && !slices.ContainsFunc(results, func(r weir.Result) bool { return errors.Is(r.Err, errors.ErrUnsupported) }) {
		return false
	}
	q.book = nil
	for _, k := range k.booking.keys {
		k.booking.agenda.Remove(&k.look)
		k.hand(slices.Collect(k.open))
	}
	if k.left != nil {
		k.left()
		k.left = nil
	}
	return true
}
