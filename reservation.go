package weir

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Reservation is a cost that was taken before it was known: see
// [Engine.Reserve]. The first Settle or Cancel that succeeds settles it, and
// later ones do nothing. If it is forgotten, the units stay spent.
//
// A settlement that failed can be tried again if it was certainly not counted
// ([MayHaveCounted]). If nobody knows, only the slots of a [Concurrency] are
// still open, since their identity makes it safe to release them again; other
// units stay as they are.
type Reservation struct {
	// Decision is the answer to the reservation itself.
	Decision Decision

	engine   Engine
	requests []Request
	turn     chan struct{} // full while a settlement is under way
	settled  bool
	unknown  bool // whether a settlement was counted: the requests are those of slots alone
}

// settleWithin bounds a settlement whose context has ended.
const settleWithin = time.Second

// Reserve takes requests on e and makes the handle of them: what an Engine's
// Reserve does. A LeakyBucket cannot be reserved. What a Concurrency is to hold
// gets an identity, so that the handle releases this and nothing else.
//
// If Reserve fails and nobody knows whether slots were taken, the handle is not
// nil beside the error, and its Cancel releases them.
func Reserve(ctx context.Context, e Engine, requests ...Request) (*Reservation, error) {
	for _, q := range requests {
		if q.Rule != nil && q.Rule.compiled.Delays() {
			return nil, &RequestError{Op: opReserve, Rule: q.Rule.Name(), Field: "rule", Reason: "is a leaky bucket, whose delay a reservation cannot tell"}
		}
	}
	r := &Reservation{engine: e, requests: identified(requests), turn: make(chan struct{}, 1)}
	d, err := e.Take(ctx, r.requests...)
	if err != nil {
		if !MayHaveCounted(err) || !r.keepSlots([]int64{0}) {
			return nil, err
		}
		return r, err
	}
	r.Decision, r.settled = d, !d.Allowed
	return r, nil
}

// identified is a copy of the requests in which those that need an identity
// have one.
func identified(requests []Request) []Request {
	requests = slices.Clone(requests)
	lease := newIdentity()
	for i := range requests {
		if q := &requests[i]; q.Rule != nil && q.Lease == 0 && q.Rule.compiled.Leases() {
			q.Lease = lease
		}
	}
	return requests
}

// newIdentity is an identity that slots are held by. It is never 0.
func newIdentity() uint64 { return rand.Uint64() | 1 }

// Settle says what the reserved work really cost: the difference is given back
// or recorded on top. One number holds for every request of the reservation;
// else there is one for each, in their order.
//
// The work may have outlived its context: if ctx has ended, or ends meanwhile,
// Settle goes on for at most a second.
func (r *Reservation) Settle(ctx context.Context, actual ...int64) error {
	if r == nil || r.engine == nil {
		return nil
	}
	if len(actual) != 1 && len(actual) != len(r.requests) {
		return &RequestError{Op: opSettle, Field: "cost", Reason: fmt.Sprintf("has %d values for %d requests", len(actual), len(r.requests))}
	}
	for _, a := range actual {
		if a < 0 {
			return &RequestError{Op: opSettle, Field: "cost", Reason: fmt.Sprintf("%d is negative", a)}
		}
	}
	lost, err := r.try(ctx, actual)
	if err == nil || ctx.Err() == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWithin)
	defer cancel()
	if _, again := r.try(ctx, actual); again != nil || !lost {
		return again
	}
	return err
}

// Cancel gives everything back: Settle(ctx, 0). It may be deferred right after
// Reserve, also where that failed, and with a context that has ended by then.
func (r *Reservation) Cancel(ctx context.Context) error { return r.Settle(ctx, 0) }

// try settles once, alone. After an error lost says that units which nobody can
// try again for may not have been settled.
func (r *Reservation) try(ctx context.Context, actual []int64) (lost bool, _ error) {
	if err := ctx.Err(); err != nil {
		return false, cannotDecide(opSettle, err)
	}
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return false, cannotDecide(opSettle, ctx.Err())
	}
	changes := r.changes(actual)
	if len(changes) == 0 {
		r.settled = r.settled || !r.unknown
		return false, nil
	}
	_, err := r.engine.Record(ctx, changes...)
	if err == nil {
		r.settled = true
		return false, nil
	}
	if MayHaveCounted(err) && !r.unknown {
		lost = slices.ContainsFunc(changes, func(q Request) bool { return q.Rule.slots() != q.Rule })
		r.settled = !r.keepSlots(actual)
	}
	return lost, err
}

// changes are what is left to be recorded.
func (r *Reservation) changes(actual []int64) []Request {
	if r.settled {
		return nil
	}
	changes := make([]Request, 0, len(r.requests))
	for i, q := range r.requests {
		used := ofRequest(actual, i)
		if q.Cost == used || r.unknown && (q.Rule == nil || used != 0) {
			continue
		}
		q.Cost = used - q.Cost
		changes = append(changes, q)
	}
	return changes
}

// keepSlots leaves only what can be released again by its identity, now that
// nobody knows whether it was: all of the slots. It says whether there are any.
func (r *Reservation) keepSlots(actual []int64) (some bool) {
	r.unknown = true
	for i := range r.requests {
		q := &r.requests[i]
		q.Cost = max(q.Cost, ofRequest(actual, i))
		q.Rule = q.Rule.slots()
		some = some || q.Rule != nil
	}
	return some
}

// ofRequest is the number for the i-th request.
func ofRequest(actual []int64, i int) int64 { return actual[min(i, len(actual)-1)] }
