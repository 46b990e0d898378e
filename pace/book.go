package pace

import (
	"context"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/fair"
)

// booking is the strategy for callers of one key whose rule can be booked, on an engine that books. The queue takes instants
// for its oldest callers, many in one call, at most a horizon ahead (book_trip.go).
//
// Instants belong to a key and a cost, not to a caller: the first caller of that cost goes at the first instant. A caller that
// leaves therefore passes its instant on. Instants that nobody of their cost needs are withdrawn, so that they keep nobody.
type booking struct {
	queue  *Queue
	keys   map[string]*bookedKey // by key and its limits
	agenda *agenda
	trip   *bookTrip // that has not set out
}

// bookedKey is the callers of one key and their instants.
type bookedKey struct {
	booking  *booking
	name     string
	request  weir.Request // with any cost
	callers  fair.Queue[*caller]
	instants []instant // earliest first

	asked    []*caller // for which a booking is on its way
	last     int       // instants that the last booking brought
	horizon  time.Duration
	full     time.Duration // it books no more while the newest instant lies beyond; drawn anew after each booking
	failures int
	left     func() // for callers that have left during a booking: ends what Flush waits for

	// The last refusal: no caller of a cost or more gets an instant before notBefore, or zero if that is not known.
	cost      int64
	notBefore time.Time
	lookFor   int64     // the cost of the refused caller for which the next booking is planned; 0 for another reason
	retryAt   time.Time // when its booking may succeed

	due, look appointment // the next instant, and the next booking
}

// instant is a booked instant.
type instant struct {
	at          time.Time
	cost        int64
	reservation *weir.Reservation
}

func newBooking(q *Queue) *booking {
	return &booking{queue: q, keys: map[string]*bookedKey{}, agenda: newAgenda(&q.mu, func() {})}
}

// can reports whether c can be booked. While others of the queue ask for its key, for several keys, it asks among them.
func (b *booking) can(c *caller) bool {
	if len(c.requests) != 1 {
		return false
	}
	r := &c.requests[0]
	return r.Rule.Bookable() && len(b.queue.ask.names[nameOf(r)]) == 0
}

func (b *booking) join(c *caller) error {
	r := c.requests[0]
	k := b.keys[keyOf(&r)]
	if k != nil && k.refuses(c) {
		if err := c.tooLate(time.Until(k.notBefore)); err != nil {
			return err
		}
	}
	if err := b.queue.enter(c); err != nil {
		return err
	}
	if k == nil {
		k = b.newKey(r)
	}
	c.booked = k
	c.enter(&k.callers)
	k.book()
	return nil
}

// refuses reports whether a newcomer gets no instant before notBefore. One of another flow may get that of a caller.
func (k *bookedKey) refuses(c *caller) bool {
	cost := c.requests[0].Cost
	alone := k.callers.Len() > 0 && k.callers.Single() && k.callers.First().flow == c.flow
	return !k.notBefore.IsZero() && cost >= k.cost && (alone || !slices.ContainsFunc(k.instants, func(at instant) bool { return at.cost == cost }))
}

func (b *booking) newKey(r weir.Request) *bookedKey {
	k := &bookedKey{booking: b, name: keyOf(&r), request: r, horizon: firstHorizon, full: firstHorizon / 2}
	k.due, k.look = newAppointment(k.serve), newAppointment(k.book)
	b.keys[k.name] = k
	return k
}

// leave removes c. The callers behind it move up.
func (b *booking) leave(c *caller) {
	k := c.booked
	if k.asked != nil && k.left == nil { // Flush waits for the answer
		k.left = b.queue.background.begin()
	}
	k.callers.Remove(&c.Node)
	c.booked = nil
	k.settle()
}

// settle takes in that callers or instants of a key have changed. It forgets a key without callers.
func (k *bookedKey) settle() {
	k.withdraw(false)
	if k.callers.Len() > 0 {
		k.book()
		return
	}
	k.booking.agenda.Remove(&k.due)
	if k.asked == nil {
		k.booking.agenda.Remove(&k.look)
		delete(k.booking.keys, k.name)
	}
}

// forgetRefusal has the key look anew, unless the engine is away.
func (k *bookedKey) forgetRefusal() {
	k.lookFor, k.retryAt, k.horizon = 0, time.Time{}, firstHorizon
	if k.failures == 0 {
		k.booking.agenda.Remove(&k.look)
	}
}

// unused returns the instants by cost that callers do not need, and whether callers wait for that cost.
func (k *bookedKey) unused() (unused map[int64]int, waits map[int64]bool) {
	unused, waits = map[int64]int{}, map[int64]bool{}
	for _, at := range k.instants {
		unused[at.cost]++
	}
	needed := 0
	for c := range k.callers.All {
		if needed == len(k.instants) {
			break
		}
		if cost := c.requests[0].Cost; unused[cost] > 0 {
			unused[cost]--
			needed++
			waits[cost] = true
		}
	}
	return unused, waits
}

// withdraw withdraws the instants that no caller needs, the newest of each cost. Of a cost that callers wait for it keeps those
// in the first horizon for newcomers, unless all are to go.
func (k *bookedKey) withdraw(all bool) {
	if len(k.instants) == 0 {
		return
	}
	unused, waits := k.unused()
	near := time.Now().Add(firstHorizon)
	var gone []instant
	for i, at := range slices.Backward(k.instants) {
		if unused[at.cost] == 0 {
			continue
		}
		unused[at.cost]--
		if all || !waits[at.cost] || at.at.After(near) {
			gone = append(gone, at)
			k.instants = slices.Delete(k.instants, i, i+1)
		}
	}
	k.giveBack(gone)
}

// open yields the callers that have no instant, the next one first. One is late if a newcomer of another cost may go before it:
// all callers of a flow before it have instants, of which it could use none.
func (k *bookedKey) open(yield func(c *caller, late bool) bool) {
	have := map[int64]int{}
	for _, at := range k.instants {
		have[at.cost]++
	}
	ended, costs := int64(0), 0 // of the last callers of flows
	for c := range k.callers.Ahead {
		cost := c.requests[0].Cost
		if have[cost] > 0 {
			have[cost]--
		} else if !yield(c, costs > 1 || costs == 1 && ended != cost) {
			return
		}
		if c.Next() == nil && (costs == 0 || ended != cost) {
			ended, costs = cost, costs+1
		}
	}
}

// serve lets the first callers go at the instants that have come.
func (k *bookedKey) serve() {
	for now := time.Now(); len(k.instants) > 0 && !k.instants[0].at.After(now); {
		at := k.instants[0]
		k.instants = k.instants[1:]
		c := k.firstOf(at.cost)
		if c == nil { // nobody needs it
			k.giveBack([]instant{at})
			continue
		}
		k.callers.Serve(&c.Node)
		c.booked = nil
		c.decision, c.reservation = at.reservation.Decision, at.reservation
		c.decision.Delay = 0
		k.booking.queue.end(c, nil)
	}
	if len(k.instants) > 0 {
		k.booking.agenda.plan(&k.due, k.instants[0].at)
	}
	k.settle()
}

// firstOf returns the first caller of a cost, or nil.
func (k *bookedKey) firstOf(cost int64) *caller {
	for c := range k.callers.Ahead {
		if c.requests[0].Cost == cost {
			return c
		}
	}
	return nil
}

// giveBack gives instants back, which are the newest first: only the newest booking of a key comes back exactly. Then there is
// room for other callers.
func (k *bookedKey) giveBack(gone []instant) {
	q := k.booking.queue
	if len(gone) == 0 {
		return
	}
	q.inBackground(func(ctx context.Context) (err error) {
		for _, at := range gone {
			if err == nil {
				err = at.reservation.Cancel(ctx)
			}
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		if now := k.booking.keys[k.name]; now != nil {
			now.notBefore = time.Time{}
			now.forgetRefusal()
			now.settle()
		}
		return err
	})
}

// askInstead has the callers of keys ask that have no instants, because others ask for these keys. Those with instants go at
// them.
func (q *Queue) askInstead(keys []*askKey) {
	if q.book == nil {
		return
	}
	for _, k := range keys {
		if booked := q.book.keys[keyOf(&k.request)]; booked != nil {
			booked.handOpen()
		}
	}
}

// handOpen has those callers without an instant join the queue anew for which no booking is on its way.
func (k *bookedKey) handOpen() {
	var open []*caller
	for c := range k.open {
		if !slices.Contains(k.asked, c) {
			open = append(open, c)
		}
	}
	k.hand(open)
}

// hand has callers without an instant join the queue anew.
func (k *bookedKey) hand(callers []*caller) {
	for _, c := range callers {
		k.callers.Remove(&c.Node)
	}
	k.settle()
	for _, c := range callers {
		k.booking.queue.rejoin(c)
	}
}
