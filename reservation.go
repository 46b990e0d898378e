package weir

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
)

// Reservation is a cost that was taken before it was known: see
// [Engine.Reserve]. It is settled once, by whichever of Settle and Cancel comes
// first; later calls do nothing. If it is forgotten, the units stay spent.
type Reservation struct {
	// Decision is the answer to the reservation itself.
	Decision Decision

	engine   Engine
	requests []Request
	settled  atomic.Bool
}

// Reserve takes requests on e and makes the handle of them: what an Engine's
// Reserve does. A LeakyBucket cannot be reserved. What a Concurrency is to hold
// gets an identity, so that the handle releases this and nothing else.
func Reserve(ctx context.Context, e Engine, requests ...Request) (*Reservation, error) {
	for _, q := range requests {
		if q.Rule != nil && q.Rule.delays() {
			return nil, &RequestError{Op: opReserve, Rule: q.Rule.name, Field: "rule", Reason: "is a leaky bucket, whose delay a reservation cannot tell"}
		}
	}
	requests = identified(requests)
	d, err := e.Take(ctx, requests...)
	if err != nil {
		return nil, err
	}
	r := &Reservation{Decision: d, engine: e, requests: requests}
	r.settled.Store(!d.Allowed)
	return r, nil
}

// identified is a copy of the requests in which those that need an identity
// have one.
func identified(requests []Request) []Request {
	requests = slices.Clone(requests)
	lease := rand.Uint64() | 1 // never 0
	for i := range requests {
		if q := &requests[i]; q.Rule != nil && q.Lease == 0 && q.Rule.leases() {
			q.Lease = lease
		}
	}
	return requests
}

// Settle says what the reserved work really cost: the difference is given back
// or recorded on top. One number holds for every request of the reservation;
// else there is one for each, in their order.
func (r *Reservation) Settle(ctx context.Context, actual ...int64) error {
	if r == nil {
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
	if r.settled.Swap(true) {
		return nil
	}
	changes := slices.Clone(r.requests)
	for i := range changes {
		changes[i].Cost = actual[min(i, len(actual)-1)] - changes[i].Cost
	}
	_, err := r.engine.Record(ctx, changes...)
	return err
}

// Cancel gives everything back: Settle(ctx, 0). It may be deferred right after
// Reserve, also where that failed.
func (r *Reservation) Cancel(ctx context.Context) error { return r.Settle(ctx, 0) }
