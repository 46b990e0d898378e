package pace

import (
	"context"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/fair"
)

// booking is the strategy for callers of one key whose rule can be booked, on an engine that books. The queue takes instants
// for its oldest callers, many in one call, at most a horizon ahead (book_trip.go).
//
// Instants belong to a key and a cost, not to a caller: the first caller of that cost goes at the first instant. A caller that
// leaves therefore passes its instant on. Instants that nobody of their cost needs stay while other callers wait for the key, and
// are then withdrawn.
type booking struct {
	queue  *Queue
	keys   map[string]*bookedKey // by key and its limits
	agenda *agenda
}

// bookedKey is the callers of one key and their instants.
type bookedKey struct {
	booking  *booking
	name     string
	request  weir.Request // with any cost
	callers  fair.Queue[*caller]
	instants []instant // earliest first

	asked     []*caller // for which a booking is on its way
	last      int       // instants that the last booking brought
	tempo     *tempo
	horizon   time.Duration
	full      time.Duration // it books no more while the newest instant lies beyond; drawn anew after each booking
	retryAt   time.Time     // when the booking that was refused last may succeed
	notBefore time.Time     // no caller without an instant goes before it; zero if that is not known
	failures  int
	left      func() // for callers that have left during a booking: ends what Flush waits for

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
	if k != nil && !k.notBefore.IsZero() && k.callers.Len() > 0 && k.callers.Single() && k.callers.First().flow == c.flow {
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

func (b *booking) newKey(r weir.Request) *bookedKey {
	k := &bookedKey{booking: b, name: keyOf(&r), request: r, horizon: firstHorizon, full: firstHorizon / 2}
	k.due, k.look = newAppointment(k.serve), newAppointment(k.book)
	k.tempo = enginekit.Keep(r.Rule, tempoOf)
	b.keys[k.name] = k
	return k
}

// tempo is what a booking has to know of the limits of a rule, which keeps it.
type tempo struct {
	unit time.Duration // that one unit takes
	most int           // instants of one booking
}

// tempoOf works out the tempo of a rule. Of a cycle, one booking takes half the permits, so that other processes have some.
func tempoOf(r *weir.Rule) *tempo {
	t := &tempo{most: mostTogether}
	for _, l := range r.Limits() {
		d := weir.Describe(l)
		if d.Rate.Count > 0 {
			t.unit = max(t.unit, d.Rate.Period/time.Duration(d.Rate.Count))
		}
		if cycle := d.Refill == weir.RefillWindow; cycle {
			t.most = min(t.most, int(max(min(d.Rate.Count/2, mostTogether), 1)))
		}
	}
	return t
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

// settle withdraws the instants of a key that nobody waits for, and forgets it.
func (k *bookedKey) settle() {
	if k.callers.Len() > 0 {
		k.book()
		return
	}
	k.booking.queue.withdraw(k.instants)
	k.instants = nil
	k.booking.agenda.Remove(&k.due)
	if k.asked == nil {
		k.booking.agenda.Remove(&k.look)
		delete(k.booking.keys, k.name)
	}
}

// open yields the callers that have no instant, the next one first.
func (k *bookedKey) open(yield func(*caller) bool) {
	have := map[int64]int{}
	for _, at := range k.instants {
		have[at.cost]++
	}
	for c := range k.callers.Ahead {
		if cost := c.requests[0].Cost; have[cost] > 0 {
			have[cost]--
		} else if !yield(c) {
			return
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
			k.booking.queue.withdraw([]instant{at})
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

// flush withdraws the instants that no caller needs.
func (b *booking) flush() {
	for _, k := range b.keys {
		want := map[int64]int{}
		for c := range k.callers.All {
			want[c.requests[0].Cost]++
		}
		var kept, unused []instant
		for _, at := range k.instants {
			if want[at.cost]--; want[at.cost] >= 0 {
				kept = append(kept, at)
			} else {
				unused = append(unused, at)
			}
		}
		k.instants = kept
		b.queue.withdraw(unused)
	}
}

// withdraw gives instants back, the newest first: only the newest booking of a key comes back exactly.
func (q *Queue) withdraw(instants []instant) {
	if len(instants) == 0 {
		return
	}
	instants = slices.Clone(instants)
	q.inBackground(func(ctx context.Context) (err error) {
		for _, at := range slices.Backward(instants) {
			if err == nil {
				err = at.reservation.Cancel(ctx)
			}
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
			booked.hand(slices.DeleteFunc(slices.Collect(booked.open), func(c *caller) bool { return slices.Contains(booked.asked, c) }))
		}
	}
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
