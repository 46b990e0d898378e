package pace

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// How far ahead instants are booked. If a booking at the instant that the engine named is refused, the horizon widens,
// so that large costs and distant processes are not starved; a booking resets it. So a process that dies wastes little.
const (
	firstHorizon = 250 * time.Millisecond // some round trips of a slow network, and a part of a second that a dead process wastes
	mostHorizon  = time.Second            // and the time of the own cost, which an empty bucket needs to have it
	leastWider   = 50 * time.Millisecond  // 15 refusals at most for a cost of 1
)

// Processes with the same instant from the engine book after a random time.
const (
	leastJitter = 20 * time.Millisecond  // the difference of two round trips
	mostJitter  = 200 * time.Millisecond // less than the horizon, so that it costs no units
)

// bookTrip is one call of the engine, which books for all keys that are due at the same time.
type bookTrip struct {
	booking *booking
	keys    []*bookedKey
	calls   []weir.Call
	results []weir.Result

	now   time.Time // when the answer came
	took  time.Duration
	err   error
	ended bool // the error has ended the wait of a caller
}

// book books for the next callers without an instant, unless it has to wait for an answer, an instant, or room in the horizon.
func (k *bookedKey) book() {
	for c := range k.open {
		if k.look.planned() && c.requests[0].Cost < k.cost { // the refusal does not concern it
			k.forgetRefusal()
		}
		break
	}
	if k.asked != nil || k.look.planned() {
		return
	}
	if n := len(k.instants); n > 0 {
		if ahead := time.Until(k.instants[n-1].at) - k.full; ahead > 0 {
			k.booking.agenda.plan(&k.look, time.Now().Add(ahead))
			return
		}
	}
	most := min(2*k.last+1, traitsOf(k.request.Rule).most)
	largest := int64(0)
	for c, late := range k.open { // one that costs less than one before it could be booked while that one is refused
		cost := c.requests[0].Cost
		if late || len(k.asked) == most || cost < largest {
			break
		}
		k.asked, largest = append(k.asked, c), cost
	}
	moved := slices.DeleteFunc(slices.Clone(k.asked), func(c *caller) bool { return !k.booking.queue.changes(c) })
	if len(moved) > 0 { // their rules have changed, so they wait elsewhere
		k.asked = nil
		k.hand(moved)
		return
	}
	if len(k.asked) > 0 {
		k.booking.take(k)
	}
}

// take takes the callers that a key books for along on the next trip.
func (b *booking) take(k *bookedKey) {
	if b.trip == nil || len(b.trip.calls)+len(k.asked) > mostTogether {
		b.trip = &bookTrip{booking: b}
		go b.trip.fly(context.WithoutCancel(k.asked[0].ctx))
	}
	b.trip.keys = append(b.trip.keys, k)
	for _, c := range k.asked {
		longest := k.horizon
		if !c.deadline.IsZero() {
			longest = max(min(longest, time.Until(c.deadline)), 0)
		}
		b.trip.calls = append(b.trip.calls, weir.Call{Op: weir.OpReserveAhead, Longest: longest, Requests: slices.Clone(c.requests), Waits: true})
	}
}

// fly sets out when the lock is free, so with all keys that are due, and takes in the answers.
func (t *bookTrip) fly(ctx context.Context) {
	b, q := t.booking, t.booking.queue
	q.mu.Lock()
	if b.trip == t {
		b.trip = nil
	}
	q.mu.Unlock()
	began := time.Now()
	t.results = make([]weir.Result, len(t.calls))
	t.err = guarded(func() error { return q.engine.Each(ctx, t.calls, t.results) })
	q.mu.Lock()
	defer q.mu.Unlock()
	t.now, t.took = time.Now(), time.Since(began)
	if errors.Is(t.err, errors.ErrUnsupported) || slices.ContainsFunc(t.results, func(r weir.Result) bool { return errors.Is(r.Err, errors.ErrUnsupported) }) {
		t.unbooked()
	}
	for _, k := range t.keys {
		k.landed(t)
		if k.left != nil {
			k.left()
			k.left = nil
		}
	}
}

// landed takes in the answers to the first calls of a trip that are not taken in.
func (k *bookedKey) landed(t *bookTrip) {
	asked := k.asked
	k.asked, k.cost, k.notBefore = nil, 0, time.Time{}
	k.full = rand.N(firstHorizon) // a fixed one would lock the phases of processes
	a := bookedAnswer{bookTrip: t}
	for i, c := range asked {
		k.answer(&a, c, &t.calls[i], &t.results[i])
	}
	slices.SortStableFunc(k.instants, func(a, b instant) int { return a.at.Compare(b.at) })
	t.calls, t.results = t.calls[len(asked):], t.results[len(asked):]
	if a.booked > 0 || a.due > 0 { // an answer that ends a wait concerns its caller alone
		k.last = a.booked
	}
	k.plan(&a)
	k.serve()
}

// bookedAnswer is the result of a booking for a key.
type bookedAnswer struct {
	*bookTrip
	booked int
	failed bool          // the engine could not be reached
	due    time.Duration // until a caller that was refused may be booked; 0 if none was
	cost   int64         // of that caller
}

// answer takes in the answer to one call of a booking.
func (k *bookedKey) answer(a *bookedAnswer, c *caller, call *weir.Call, r *weir.Result) {
	if r.Err == nil {
		r.Err = a.err
	}
	d, cost := r.Decision, call.Requests[0].Cost
	switch {
	case r.Err != nil && weir.Unavailable(r.Err):
		a.failed = true
	case r.Err != nil && a.err != nil && a.ended: // an error of all ends the wait of one caller; the others book again
	case r.Err != nil:
		a.ended = c.booked == k
		k.end(c, r.Err)
	case d.Allowed && r.Reservation != nil:
		a.booked++
		k.instants = append(k.instants, instant{a.now.Add(d.Delay), cost, r.Reservation})
	case d.Allowed || d.RetryAfter <= 0 && cost <= d.Limit:
		k.end(c, errNonsense)
	case cost > d.Limit:
		k.end(c, &weir.CostError{Cost: cost, Capacity: d.Limit})
	default:
		k.refused(a, c, call, d.RetryAfter)
	}
}

// refused takes in a refusal: the caller's instant would be need after the horizon.
func (k *bookedKey) refused(a *bookedAnswer, c *caller, call *weir.Call, need time.Duration) {
	instant, cost := min(need, 24*time.Hour)+call.Longest, call.Requests[0].Cost
	if at := a.now.Add(instant); k.notBefore.IsZero() || at.Before(k.notBefore) {
		k.notBefore, k.cost = at, cost
	}
	if err := c.tooLate(instant); err != nil {
		k.end(c, err)
		return
	}
	if due := max(instant-k.horizon, shortestPause); c.booked == k && (a.due == 0 || due < a.due) {
		a.due, a.cost = due, cost
	}
}

// end ends the wait of a caller that is still there.
func (k *bookedKey) end(c *caller, err error) {
	if c.booked == k {
		k.remove(c, k.callers.Remove)
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
	if a.booked > 0 {
		k.horizon, k.retryAt = firstHorizon, time.Time{}
	}
	if a.due == 0 {
		return
	}
	unit, wait := traitsOf(k.request.Rule).unit, a.due
	if a.booked == 0 {
		own := unit * time.Duration(a.cost)
		if !a.now.Add(shortestPause).Before(k.retryAt) {
			if !k.retryAt.IsZero() {
				wider := max(leastWider, own/4)
				k.horizon = min(mostHorizon+own, k.horizon+wider)
				wait = max(wait-wider, 0)
			}
			k.retryAt = a.now.Add(wait)
		}
		wait = max(k.retryAt.Sub(a.now), 0)
	}
	at := a.now.Add(wait + rand.N(max(leastJitter, 2*a.took, min(unit, mostJitter))))
	if wait > longestPause {
		at = k.booking.queue.ask.poll(a.now.Add(longestPause))
	}
	k.booking.agenda.plan(&k.look, at)
}

// unbooked has all callers ask, because the engine books nothing.
func (t *bookTrip) unbooked() {
	t.booking.queue.book = nil
	for _, k := range t.keys {
		k.asked = nil
	}
	for _, k := range t.booking.keys {
		t.booking.agenda.Remove(&k.look)
		k.handOpen()
	}
}
