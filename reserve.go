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
	taken   []Request     // the unsettled requests
	turn    chan struct{} // full during a settlement
	left    outcome
	unknown bool   // a settlement may have been counted: taken holds only slots
	release func() // ends the renewal of the slots
	// withdraw gives units of a booking back exactly, which a Record would not; nil if nothing is booked.
	withdraw func(ctx context.Context, n int64) error
}

func newHolding(e Engine, taken []Request) *holding {
	h := &holding{engine: e, taken: taken, turn: make(chan struct{}, 1), release: func() {}}
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
		if !MayHaveCounted(err) || !h.keepSlots(settlement{actual: []int64{0}}) {
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
func (h *holding) slots() (slots []Request) {
	for _, q := range h.taken {
		if q.Rule = q.Rule.slots(); q.Rule != nil && q.Cost > 0 {
			slots = append(slots, q)
		}
	}
	return slots
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

func (h *holding) requests() int { return len(h.taken) }

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
	changes := h.changes(s)
	if len(changes) == 0 {
		if !h.unknown {
			h.left = settled
			h.release()
		}
		return h.left, nil
	}
	err := h.record(ctx, changes)
	if err == nil {
		h.left = settled
		h.release()
		return settled, nil
	}
	if MayHaveCounted(err) && !h.unknown {
		if !h.keepSlots(s) {
			h.left = settled
		}
		if slices.ContainsFunc(changes, func(q Request) bool { return q.Rule.slots() != q.Rule }) {
			return lost, err
		}
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

// changes returns the requests to record.
func (h *holding) changes(s settlement) []Request {
	if h.left == settled {
		return nil
	}
	changes := make([]Request, 0, len(h.taken))
	for i, q := range h.taken {
		if s.done {
			q.Rule = q.Rule.slots()
		}
		used := s.used(i)
		if q.Rule == nil || q.Cost == used || h.unknown && used != 0 {
			continue
		}
		q.Cost = used - q.Cost
		changes = append(changes, q)
	}
	return changes
}

// keepSlots keeps only slots, which can be released again by identity when a settlement may have been counted. It
// reports whether there are any.
func (h *holding) keepSlots(s settlement) (some bool) {
	h.unknown = true
	for i := range h.taken {
		q := &h.taken[i]
		q.Cost = max(q.Cost, s.used(i))
		q.Rule = q.Rule.slots()
		some = some || q.Rule != nil
	}
	return some
}
