package weir

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
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

func newHolding(e Engine, c *Call) *holding {
	h := &holding{engine: e, asked: len(c.Requests), taken: slices.Clone(c.Requests), turn: make(chan struct{}, 1), release: func() {}}
	h.handle, h.lease = h, c.Lease
	return h
}

// Reserve makes an OpReserve on e by a take: an Engine implements it so. A LeakyBucket cannot be reserved. The units of a
// Concurrency get a lease, so that the reservation releases exactly these.
//
// If Reserve fails and slots may have been taken, it returns a reservation beside the error, and Cancel releases the
// slots.
func Reserve(ctx context.Context, e Engine, call Call) (Answer, error) {
	for _, q := range call.Requests {
		if q.Rule != nil && q.Rule.compiled.Delays() {
			return Answer{}, &RequestError{Op: opReserve, Rule: q.Rule.Name(), Field: "rule", Reason: "is a leaky bucket, whose delay a reservation cannot tell"}
		}
	}
	if call.Op = OpTake; call.Lease == 0 {
		call.Lease = NewLease()
	}
	h := newHolding(e, &call)
	began := time.Now()
	a, err := e.Do(ctx, call)
	if err != nil {
		if h.taken = slotsOf(h.taken); !MayHaveCounted(err) || len(h.slots()) == 0 {
			return Answer{}, err
		}
		if engine, ok := Find[Holder](e); ok && call.Identity == "" { // with an identity it can be asked again
			engine.Drop(h.held())
		}
		return Answer{Reservation: &h.Reservation}, err
	}
	h.admit(began, a.Decision)
	return Answer{Decision: a.Decision, Reservation: &h.Reservation}, nil
}

// Granted returns the reservation of a call that was decided on e at an instant after since, with the call's lease.
// withdraw gives units of a booking back; otherwise it is nil.
func Granted(e Engine, since time.Time, d Decision, withdraw func(ctx context.Context, n int64) error, call Call) *Reservation {
	h := newHolding(e, &call)
	h.withdraw = withdraw
	h.admit(since, d)
	return &h.Reservation
}

// admit takes in the decision. A refusal leaves nothing to settle.
func (h *holding) admit(since time.Time, d Decision) {
	if h.Decision = d; d.Allowed {
		h.hold(since)
	} else {
		h.left = settled
	}
}

// hold has the engine renew the slots, if slots expire there. It stops when the reservation is settled, or dropped
// and collected: a forgotten slot then expires.
func (h *holding) hold(since time.Time) {
	engine, ok := Find[Holder](h.engine)
	if !ok {
		return
	}
	slots := h.held()
	if len(slots.Requests) == 0 {
		return
	}
	h.lost, h.release = engine.Hold(since, slots)
	runtime.AddCleanup(h, func(release func()) { release() }, h.release)
}

// slots returns the requests for the slots alone.
func (h *holding) slots() []Request {
	return slices.DeleteFunc(slotsOf(h.taken), func(q Request) bool { return q.Rule == nil || q.Cost == 0 })
}

// held returns the slots as Holder takes them.
func (h *holding) held() Call { return Call{Requests: h.slots(), Lease: h.lease} }

// slotsOf returns a copy of the requests in which only the slots of each rule are left.
func slotsOf(requests []Request) []Request {
	requests = slices.Clone(requests)
	for i := range requests {
		requests[i].Rule = requests[i].Rule.Held()
	}
	return requests
}

// NewLease returns a random Call.Lease, which is never 0.
func NewLease() uint64 { return rand.Uint64() | 1 }

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
	if slices.ContainsFunc(changes, func(q Request) bool { return q.Rule.Spent() != nil }) {
		return lost, err
	}
	return open, err
}

// record counts changes, or gives units back if their costs are negative, which are then all of them.
func (h *holding) record(ctx context.Context, changes []Request) error {
	c := Call{Op: OpRecord, Requests: changes, Lease: h.lease}
	if changes[0].Cost < 0 {
		if h.withdraw != nil {
			return h.withdraw(ctx, -changes[0].Cost)
		}
		c.Op, c.Requests = OpReturn, slices.Clone(changes)
		for i := range c.Requests {
			c.Requests[i].Cost *= -1
		}
	}
	a, err := h.engine.Do(ctx, c)
	if err == nil && a.Decision.Unrecorded {
		return unrecorded(changes, a.Decision)
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

// changes returns the requests of the next call, and what is left to settle after it. Units come back before others are
// recorded. The first call ends every slot: units come in a second call if they could keep it from that, because a call
// takes only one set of limits for the key of a rule with slots and units.
func (h *holding) changes(s settlement) (changes, rest []Request) {
	held, cancels, returns := len(h.slots()) > 0, s.cancels(), false
	for i, q := range h.taken {
		returns = returns || q.Rule.Spent() != nil && s.used(i, q.Cost) < q.Cost
	}
	rest = make([]Request, len(h.taken))
	for i, q := range h.taken {
		slots, later := q.Rule.Held(), q
		later.Rule = q.Rule.Spent()
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
		}
		if q.Cost > 0 && (held || returns) {
			rest[i] = later
		} else if q.Rule != nil && q.Cost != 0 {
			changes = append(changes, q)
		}
	}
	return changes, rest
}

// Bookable reports whether an engine can reserve ahead under the rule: whether all its limits are buckets, gates
// and cycles. Windows, logs and slots cannot promise when units become free.
func (r *Rule) Bookable() bool { return r != nil && r.compiled.Made() && r.compiled.Bookable() }

// ReserveAhead reserves a request on e for the earliest instant at which every limit of its rule admits it, if that is at
// most longest away. Otherwise it takes nothing, and RetryAfter of the refusal is the time after which the same call is
// admitted. The rule has to be [Rule.Bookable].
//
// The instant is Decision.Delay after the decision. It is never revoked: until then the engine admits nothing else of the
// key, and later reservations get no earlier instant. So callers of all processes go in the order in which the engine saw
// them. Cancel gives the units back if the work was not done. Those of the newest reservation come back exactly. While a
// reserved instant lies ahead, units of any other reservation come back behind it or, under a limit other than a
// TokenBucket, not at all.
func ReserveAhead(ctx context.Context, e Engine, longest time.Duration, request Request) (*Reservation, error) {
	a, err := e.Do(ctx, Call{Op: OpReserveAhead, Longest: max(longest, 0), Requests: []Request{request}})
	return a.Reservation, err
}

// CheckAhead returns a *RequestError for an OpReserveAhead that no engine can make. An Engine calls it.
func CheckAhead(c Call) error {
	if len(c.Requests) != 1 {
		return &RequestError{Op: opReserveAhead, Field: "requests", Reason: "are not one"}
	}
	switch q := &c.Requests[0]; {
	case q.Rule == nil || !q.Rule.compiled.Made():
		return &RequestError{Op: opReserveAhead, Field: "rule", Reason: "was not made by NewRule"}
	case !q.Rule.Bookable():
		return &RequestError{Op: opReserveAhead, Rule: q.Rule.Name(), Field: "rule", Reason: "cannot be reserved ahead: a window, a log or slots cannot promise when units come free"}
	case c.Identity != "":
		return &RequestError{Op: opReserveAhead, Rule: q.Rule.Name(), Field: "identity", Reason: "is given, but no engine recognises a repeated reservation"}
	}
	return nil
}

// reserveAhead makes an OpReserveAhead.
func (m *Memory) reserveAhead(ctx context.Context, c Call) (Answer, error) {
	if err := CheckAhead(c); err != nil {
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
	return Answer{Decision: d, Reservation: Granted(m, time.Time{}, d, func(ctx context.Context, n int64) error {
		if err := ctx.Err(); err != nil {
			return cannotDecide(opSettle, err)
		}
		_, err := describe(opSettle, merged, &algorithm.Answer{}, m.engine.Withdraw(merged, booked, n))
		return err
	}, c)}, nil
}
