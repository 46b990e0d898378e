package weir

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"
)

// holding is a reservation on an engine.
type holding struct {
	Reservation
	engine  Engine
	asked   int           // the number of requests
	taken   []Request     // what is unsettled of each request, without a rule if that is nothing
	turn    chan struct{} // full during a settlement
	left    outcome
	release func() // ends the renewal of the slots
	// withdraw gives units of a booking back exactly, which a Record would not; nil if nothing is booked.
	withdraw func(ctx context.Context, n int64) error
}

func newHolding(e Engine, taken []Request) *holding {
	h := &holding{engine: e, asked: len(taken), taken: taken, turn: make(chan struct{}, 1), release: func() {}}
	h.handle = h
	return h
}

// Reserve takes requests on e and returns their reservation. An Engine implements its Reserve with it. A LeakyBucket
// cannot be reserved. The units of a Concurrency get an identity, so that the reservation releases exactly these.
//
// If Reserve fails and slots may have been taken, it returns a reservation beside the error, and Cancel releases the
// slots.
func Reserve(ctx context.Context, e Engine, requests ...Request) (*Reservation, error) {
	for _, q := range requests {
		if q.Rule != nil && q.Rule.compiled.Delays() {
			return nil, &RequestError{Op: opReserve, Rule: q.Rule.Name(), Field: "rule", Reason: "is a leaky bucket, whose delay a reservation cannot tell"}
		}
	}
	h := newHolding(e, identified(requests))
	began := time.Now()
	d, err := e.Take(ctx, h.taken...)
	if err != nil {
		if h.taken = slotsOf(h.taken); !MayHaveCounted(err) || len(h.slots()) == 0 {
			return nil, err
		}
		if engine, ok := e.(Holder); ok {
			engine.Drop(h.slots()...)
		}
		return &h.Reservation, err
	}
	h.Decision = d
	if !d.Allowed {
		h.left = settled
		return &h.Reservation, nil
	}
	h.hold(began)
	return &h.Reservation, nil
}

// hold has the engine renew the slots, if slots expire there. It stops when the reservation is settled, or dropped
// and collected: a forgotten slot then expires.
func (h *holding) hold(since time.Time) {
	engine, ok := h.engine.(Holder)
	if !ok {
		return
	}
	slots := h.slots()
	if len(slots) == 0 {
		return
	}
	h.lost, h.release = engine.Hold(since, slots...)
	runtime.AddCleanup(h, func(release func()) { release() }, h.release)
}

// slots returns the requests for the slots alone.
func (h *holding) slots() []Request {
	return slices.DeleteFunc(slotsOf(h.taken), func(q Request) bool { return q.Rule == nil || q.Cost == 0 })
}

// slotsOf returns a copy of the requests in which only the slots of each rule are left.
func slotsOf(requests []Request) []Request {
	requests = slices.Clone(requests)
	for i := range requests {
		requests[i].Rule = requests[i].Rule.slots()
	}
	return requests
}

// identified returns a copy of the requests in which units of a Concurrency have an identity.
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

// newIdentity returns a random identity, which is never 0.
func newIdentity() uint64 { return rand.Uint64() | 1 }

func (h *holding) requests() int { return h.asked }

// settle settles the rest. Only one call settles at a time.
func (h *holding) settle(ctx context.Context, s settlement) (outcome, error) {
	if err := ctx.Err(); err != nil {
		return open, cannotDecide(opSettle, err)
	}
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return open, cannotDecide(opSettle, ctx.Err())
	}
	for h.left != settled {
		changes, rest := h.changes(s)
		if len(changes) == 0 {
			h.left = settled
			break
		}
		if err := h.record(ctx, changes); err != nil {
			return h.failed(append(changes, rest...), err)
		}
		h.taken = rest
		h.release() // the first call has ended every slot
	}
	return settled, nil
}

// failed keeps what another settlement can do after one of the changes has failed with err. If changes may have been
// counted, that is only the slots, which can be released twice.
func (h *holding) failed(changes []Request, err error) (outcome, error) {
	if !MayHaveCounted(err) {
		return open, err
	}
	if h.taken = slotsOf(h.taken); len(h.slots()) == 0 {
		h.left = settled
	}
	if slices.ContainsFunc(changes, func(q Request) bool { return q.Rule.units() != nil }) {
		return lost, err
	}
	return open, err
}

func (h *holding) record(ctx context.Context, changes []Request) error {
	if n := changes[0].Cost; n < 0 && h.withdraw != nil {
		return h.withdraw(ctx, -n)
	}
	d, err := h.engine.Record(ctx, changes...)
	if err == nil && d.Unrecorded {
		return unrecorded(changes, d)
	}
	return err
}

// unrecorded returns the error of changes that were refused. With several, a cluster may have counted some of them.
func unrecorded(changes []Request, d Decision) error {
	i := slices.IndexFunc(changes, func(q Request) bool { return q.Rule.Name() == d.Rule && q.Key == d.Key })
	err := &RequestError{Op: opSettle, Rule: d.Rule, Field: "cost", Reason: fmt.Sprintf("of %d for key %q beyond the reserved one is not recorded, because the limit has too many entries above it", changes[max(i, 0)].Cost, d.Key)}
	if len(changes) > 1 {
		return fmt.Errorf("%s; other costs of the settlement may not be recorded, either", err) // not %w, which says that nothing was counted
	}
	return err
}

// changes returns the requests of the next call, and what is left to settle after it. The first call ends every slot.
// Units come in a second call if they could keep it from that: a log may have no space for more of them, and a call
// takes only one set of limits for the key of a rule with slots and units.
func (h *holding) changes(s settlement) (changes, rest []Request) {
	held, cancels := len(h.slots()) > 0, s.cancels()
	rest = make([]Request, len(h.taken))
	for i, q := range h.taken {
		slots, later := q.Rule.slots(), q
		later.Rule = q.Rule.units()
		q.Cost = s.used(i, q.Cost) - q.Cost
		switch {
		case !held:
			q.Rule = later.Rule
		case cancels:
		case slots != nil:
			if q.Cost != 0 {
				rest[i] = later
			}
			q.Rule, q.Cost = slots, -later.Cost
		case q.Cost > 0:
			rest[i] = later
			continue
		}
		if q.Rule != nil && q.Cost != 0 {
			changes = append(changes, q)
		}
	}
	return changes, rest
}
