package weir

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
)

// reserved is a reservation on an engine.
type reserved struct {
	Reservation
	engine    Engine
	asked     []Request
	unsettled []Request     // what is left of each request, without a rule if that is nothing
	turn      chan struct{} // full during a settlement
	left      outcome
	release   func()      // ends the renewal of the slots
	repeats   atomic.Bool // a settlement that failed
	// withdraw gives units of a booking back exactly, which a Record would not; nil if nothing is booked.
	withdraw func(ctx context.Context, n int64) error
}

func newReserved(e Engine, c *Call) *reserved {
	h := &reserved{engine: e, asked: slices.Clone(c.Requests), turn: make(chan struct{}, 1), release: func() {}}
	for i := range h.asked {
		h.asked[i].Otherwise = nil
	}
	h.unsettled = h.asked // which a settlement replaces
	h.handle, h.lease, h.taken = h, c.Lease, slices.Clone(c.Taken)
	return h
}

// alone returns a copy of requests with nothing in their places.
func alone(requests []Request) []Request {
	requests = slices.Clone(requests)
	for i := range requests {
		requests[i].Otherwise = nil
	}
	return requests
}

// Reserve makes an OpReserve on e by a take: an engine implements it so. A LeakyBucket cannot be reserved. The units of a
// Concurrency get a lease, so that the reservation releases exactly these.
//
// If Reserve fails and slots may have been taken, it returns a reservation beside the error, and Cancel releases the
// slots.
func (EngineKit) Reserve(ctx context.Context, e Engine, call Call) (Answer, error) {
	for _, q := range call.Requests {
		if q.Rule != nil && q.Rule.compiled.Made() && q.Cost < 0 {
			return Answer{}, q.negative(opReserve)
		}
		if q.Rule != nil && q.Rule.compiled.Delays() {
			return Answer{}, &RequestError{Op: opReserve, Rule: q.Rule.Name(), Field: "rule", Reason: "is a leaky bucket, whose delay a reservation cannot tell"}
		}
	}
	if call.Op = OpTake; call.Lease == 0 {
		call.Lease = Kit.LeaseOf(call)
	}
	h := newReserved(e, &call)
	began := time.Now()
	a, err := e.Do(ctx, call)
	if err != nil {
		if h.unsettled = slotsOf(Kit.Links(call.Requests)); WasCounted(err) == CountedNo || len(h.slots()) == 0 {
			return Answer{}, err
		}
		if call.Identity == "" { // with an identity it can be asked again
			time.AfterFunc(dropAfter, func() { Kit.Drop(e, call) }) // unless the caller's Cancel is quicker
		}
		return Answer{Reservation: &h.Reservation}, err
	}
	if h.taken = a.Taken; a.Paid != nil {
		h.asked = alone(a.Paid)
		h.unsettled = h.asked
	}
	h.admit(began, a.Decision)
	return Answer{Decision: a.Decision, Reservation: &h.Reservation}, nil
}

// Granted returns the reservation of a call that was decided on e at an instant after since, with the call's lease and the
// Taken of its answer. Without Taken, windows, cycles, logs and gates get nothing back in its settlement. withdraw gives units
// of a booking back; otherwise it is nil.
func (EngineKit) Granted(e Engine, since time.Time, d Decision, withdraw func(ctx context.Context, n int64) error, call Call) *Reservation {
	h := newReserved(e, &call)
	h.withdraw = withdraw
	h.admit(since, d)
	return &h.Reservation
}

// admit takes in the decision. A refusal leaves nothing to settle.
func (h *reserved) admit(since time.Time, d Decision) {
	if h.Decision = d; d.Allowed {
		h.keepSlots(since)
	} else {
		h.left = settled
	}
}

// keepSlots has the engine renew the slots, if slots expire there. It stops when the reservation is settled, or dropped
// and collected: a forgotten slot then expires.
func (h *reserved) keepSlots(since time.Time) {
	slots := h.held()
	if len(slots.Requests) == 0 {
		return
	}
	engine, ok := Find[SlotKeeper](h.engine)
	if !ok {
		return
	}
	h.lost, h.release = engine.KeepSlots(since, slots)
	runtime.AddCleanup(h, func(release func()) { release() }, h.release)
}

// slots returns the requests for the slots alone.
func (h *reserved) slots() []Request {
	return slices.DeleteFunc(slotsOf(h.unsettled), func(q Request) bool { return q.Rule == nil || q.Cost == 0 })
}

// held returns the slots as SlotKeeper takes them.
func (h *reserved) held() Call { return Call{Requests: h.slots(), Lease: h.lease} }

// slotsOf returns a copy of the requests with only the slots of each rule.
func slotsOf(requests []Request) []Request {
	requests = slices.Clone(requests)
	for i := range requests {
		requests[i].Rule = Kit.Held(requests[i].Rule)
	}
	return requests
}

func (h *reserved) requests() int { return len(h.asked) }

// settle settles the rest. Only one call settles at a time.
func (h *reserved) settle(ctx context.Context, s settlement) (outcome, error) {
	if err := ctx.Err(); err != nil {
		return open, cannotDecide(opSettle, err)
	}
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return open, cannotDecide(opSettle, ctx.Err())
	}
	h.release() // a lease that somebody wants to end is never renewed
	for h.left != settled {
		c, rest := h.next(s)
		if len(c.Requests) == 0 {
			h.left = settled
			break
		}
		if err := h.make(ctx, c); err != nil {
			left, err := h.failed(c, err)
			if left == open && Unavailable(err) {
				h.again(s)
			}
			return left, err
		}
		h.unsettled = rest
	}
	return settled, nil
}

// failed says what another settlement can do after a call has failed with err. Slots can be released twice. Other units that
// may have been counted stay as they are, and by then no slot is left.
func (h *reserved) failed(c Call, err error) (outcome, error) {
	if WasCounted(err) == CountedNo || c.Op == OpReturn && c.Taken == nil {
		return open, err
	}
	h.left = settled
	return lost, err
}

// make makes one call of a settlement.
func (h *reserved) make(ctx context.Context, c Call) error {
	if h.withdraw != nil && c.Op == OpReturn {
		return h.withdraw(ctx, c.Requests[0].Cost)
	}
	a, err := h.engine.Do(ctx, c)
	if err == nil && a.Decision.Unrecorded {
		return unrecorded(c.Requests, a.Decision)
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

// next returns the next call of a settlement, without requests after the last one, and the rest to settle after it.
// Every slot is released first. Then units come back, as the undo of this take, and then others are recorded.
func (h *reserved) next(s settlement) (c Call, rest []Request) {
	c, rest = Call{Op: OpReturn, Requests: h.slots(), Lease: h.lease}, slices.Clone(h.unsettled)
	if len(c.Requests) > 0 {
		for i := range rest {
			rest[i].Rule = Kit.Spent(rest[i].Rule)
		}
		return c, rest
	}
	for _, op := range []Op{OpReturn, OpRecord} {
		c.Op, c.Taken = op, nil
		for i := range rest {
			q := rest[i]
			difference := s.used(i, q.Cost) - q.Cost
			if q.Rule == nil || difference == 0 || (op == OpReturn) != (difference < 0) {
				continue
			}
			q.Cost, rest[i].Rule = max(difference, -difference), nil
			c.Requests = append(c.Requests, q)
			if op == OpReturn {
				c.Taken = append(c.Taken, h.takenAt(i))
			}
		}
		if len(c.Requests) > 0 {
			break
		}
	}
	return c, rest
}

// takenAt returns when the units of the i-th request were taken. If nobody knows, that is before all windows and entries,
// so that none of them gets units back.
func (h *reserved) takenAt(i int) int64 {
	if i < len(h.taken) {
		return h.taken[i]
	}
	return math.MinInt64
}

// Bookable reports whether an engine can reserve ahead under the rule: whether all its limits are buckets, gates
// and cycles. Windows, logs and slots cannot promise when units become free.
func (r *Rule) Bookable() bool { return r != nil && r.compiled.Made() && r.compiled.Bookable() }

// ReserveAhead reserves a request on e for the earliest instant when every limit of its rule admits it, if that is at
// most longest away. Otherwise it takes nothing, and RetryAfter of the refusal is the time after which the same call is
// admitted. The rule has to be [Rule.Bookable].
//
// The instant is Decision.Delay after the decision. It is never revoked: until then the engine admits nothing else of the
// key, and later reservations get no earlier instant. So callers of all processes go in the order that the engine saw
// them. Cancel gives the units back if the work was not done. Those of the newest reservation come back exactly. While a
// reserved instant lies ahead, units of any other reservation come back behind it or, under a limit other than a
// TokenBucket, not at all.
func ReserveAhead(ctx context.Context, e Engine, longest time.Duration, request Request) (*Reservation, error) {
	a, err := e.Do(ctx, Call{Op: OpReserveAhead, Longest: max(longest, 0), Requests: []Request{request}})
	return a.Reservation, err
}

// reserveAhead makes an OpReserveAhead.
func (m *Memory) reserveAhead(ctx context.Context, c Call) (Answer, error) {
	if err := Kit.CheckAhead(c); err != nil {
		return Answer{}, err
	}
	merged, err := m.merge(ctx, opReserveAhead, c.Requests, 0, nil)
	if err != nil {
		return Answer{}, err
	}
	answer, booked, err := m.engine.Book(merged, int64(max(c.Longest, 0)))
	d, err := describe(opReserveAhead, merged, &answer, err)
	if err != nil {
		return Answer{}, err
	}
	c.Taken = []int64{booked[0].Due}
	return Answer{Decision: d, Reservation: Kit.Granted(m, time.Time{}, d, func(ctx context.Context, n int64) error {
		if err := ctx.Err(); err != nil {
			return cannotDecide(opSettle, err)
		}
		_, err := describe(opSettle, merged, &algorithm.Answer{}, m.engine.Withdraw(merged, booked, n))
		return err
	}, c)}, nil
}
