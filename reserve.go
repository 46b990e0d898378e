package weir

import (
	"context"
	"math/rand/v2"
	"slices"
)

// holding is a reservation on an engine.
type holding struct {
	Reservation
	engine  Engine
	taken   []Request     // what is not settled
	turn    chan struct{} // full while a settlement is under way
	left    outcome
	unknown bool // whether a settlement was counted: taken are the slots alone
}

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
	h := &holding{engine: e, taken: identified(requests), turn: make(chan struct{}, 1)}
	h.handle = h
	d, err := e.Take(ctx, h.taken...)
	if err != nil {
		if !MayHaveCounted(err) || !h.keepSlots(settlement{actual: []int64{0}}) {
			return nil, err
		}
		return &h.Reservation, err
	}
	h.Decision = d
	if !d.Allowed {
		h.left = settled
	}
	return &h.Reservation, nil
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

func (h *holding) requests() int { return len(h.taken) }

// settle settles once, alone.
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
		}
		return h.left, nil
	}
	_, err := h.engine.Record(ctx, changes...)
	if err == nil {
		h.left = settled
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

// changes are what is left to be recorded.
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

// keepSlots leaves only what can be released again by its identity, now that
// nobody knows whether it was: all of the slots. It says whether there are any.
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
