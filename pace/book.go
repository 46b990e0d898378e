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
// leaves therefore passes its instant on. The queue withdraws instants that no caller of their cost needs, so that they
// hold up no other caller.
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
	costs    map[int64]int // how many callers have a cost
	instants []instant     // earliest first

	asked    []*caller // callers whose booking is on its way
	last     int       // instants that the last booking brought
	horizon  time.Duration
	full     time.Duration // it books no more while the newest instant lies beyond; drawn again after each booking
	failures int
	left     func() // for callers that have left during a booking: ends what Flush waits for

	// The last refusal: no caller of a cost or more gets an instant before notBefore, or zero if that is not known.
	cost      int64
	notBefore time.Time
	retryAt   time.Time // when the booking of its caller may succeed

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
	return len(c.requests) == 1 && c.requests[0].Rule.Bookable() && len(b.queue.ask.names[nameOf(&c.requests[0])]) == 0
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
	k.costs[c.Cost]++
	k.book()
	return nil
}

// remove removes a caller by a function of its flows.
func (k *bookedKey) remove(c *caller, by func(*fair.Node[*caller])) {
	by(&c.Node)
	c.booked = nil
	if k.costs[c.Cost]--; k.costs[c.Cost] == 0 { // its requests may have changed
		delete(k.costs, c.Cost)
	}
}

// refuses reports whether a newcomer gets no instant before notBefore. One of another flow may get that of a caller.
func (k *bookedKey) refuses(c *caller) bool {
	cost := c.requests[0].Cost
	alone := k.callers.Len() > 0 && k.callers.Single() && k.callers.First().flow == c.flow
	return !k.notBefore.IsZero() && cost >= k.cost && (alone || !slices.ContainsFunc(k.instants, func(at instant) bool { return at.cost == cost }))
}

func (b *booking) newKey(r weir.Request) *bookedKey {
	k := &bookedKey{booking: b, name: keyOf(&r), request: r, costs: map[int64]int{}, horizon: firstHorizon, full: firstHorizon / 2}
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
	k.remove(c, k.callers.Remove)
	k.settle()
}

// settle handles a change of the callers or instants of a key. It forgets a key without callers.
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

// forgetRefusal has the key look again, unless the engine is away.
func (k *bookedKey) forgetRefusal() {
	k.retryAt, k.horizon = time.Time{}, firstHorizon
	if k.failures == 0 {
		k.booking.agenda.Remove(&k.look)
	}
}

// withdraw withdraws the instants that no caller needs, the newest of each cost. For a cost that callers wait for, it
// keeps those in the first horizon for newcomers, unless all are to go: then there is room for other callers.
func (k *bookedKey) withdraw(all bool) {
	q, have, near := k.booking.queue, map[int64]int{}, time.Now().Add(firstHorizon)
	var gone []instant
	k.instants = slices.DeleteFunc(k.instants, func(at instant) bool {
		have[at.cost]++
		wait := k.costs[at.cost]
		unused := have[at.cost] > wait && (all || wait == 0 || at.at.After(near))
		if unused {
			gone = append(gone, at)
		}
		return unused
	})
	if len(gone) == 0 {
		return
	}
	q.inBackground(func(ctx context.Context) (err error) {
		for _, at := range slices.Backward(gone) { // only the newest booking of a key comes back exactly
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

// open yields the callers without an instant, the next one first. A caller is late if a newcomer of another cost may go
// before it: all callers of a flow before it have instants, and it can use none of these.
func (k *bookedKey) open(yield func(c *caller, late bool) bool) {
	have := map[int64]int{}
	for _, at := range k.instants {
		have[at.cost]++
	}
	ended, costs := int64(0), 0 // those of the last callers of flows
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
		c := k.firstOf(at.cost)
		if c == nil { // settle withdraws it
			break
		}
		k.instants = k.instants[1:]
		k.remove(c, k.callers.Serve)
		c.decision, c.reservation = at.reservation.Decision, at.reservation
		c.decision.Delay = 0
		k.booking.queue.end(c, nil)
	}
	k.settle()
	if len(k.instants) > 0 {
		k.booking.agenda.plan(&k.due, k.instants[0].at)
	}
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

// askInstead has callers without instants ask, because others ask for their keys. Callers with instants go at these.
func (q *Queue) askInstead(keys []*askKey) {
	if q.book == nil {
		return
	}
	for _, k := range keys {
		for _, r := range append([]weir.Request{k.request}, k.links...) {
			if booked := q.book.keys[keyOf(&r)]; booked != nil {
				booked.handOpen()
			}
		}
	}
}

// handOpen has callers without an instant or a booking on its way join the queue again.
func (k *bookedKey) handOpen() {
	var open []*caller
	for c := range k.open {
		if !slices.Contains(k.asked, c) {
			open = append(open, c)
		}
	}
	k.hand(open)
}

// hand has callers without an instant join the queue again.
func (k *bookedKey) hand(callers []*caller) {
	for _, c := range callers {
		k.remove(c, k.callers.Remove)
	}
	k.settle()
	for _, c := range callers {
		k.booking.queue.rejoin(c)
	}
}
