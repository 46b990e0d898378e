package pace

import (
	"container/list"
	"context"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/fair"
)

// booking is the strategy for callers of one key whose rule can be booked, on an engine that keeps lines. The queue books
// for the oldest callers that have no instant yet, many in one call, and no further ahead than horizon. The engine
// remembers for how long the first one that it refused has waited, and books no younger caller of another process before
// it.
//
// Booked instants belong to the key, not to a caller: its first caller goes at the first instant. A caller that leaves
// therefore passes its instant on, also to a caller that comes later. An instant that has passed without a caller is
// spent, at most those within the horizon.
type booking struct {
	queue  *Queue
	lines  enginekit.Lines
	keys   map[string]*bookedKey
	agenda *agenda
}

// horizon bounds how far ahead instants are booked, and so what callers that leave can waste.
const horizon = 250 * time.Millisecond

// bookedKey is the callers of one key, by what they cost: instants of equal costs can be exchanged.
type bookedKey struct {
	booking   *booking
	name      string
	costs     map[int64]*costLine
	open      fair.Heap[*costLine] // those with a caller to book for, by its arrival
	asked     []*caller            // for which a booking is on its way, the oldest first
	most      int                  // callers to ask for at once: about twice as many as were booked the last time
	notBefore time.Time            // no caller without an instant goes before it; zero if that is not known
	left      func()               // for callers that have left during a booking: ends what Flush waits for
	failures  int
	retry     appointment
}

// costLine is the callers of one cost. The oldest are covered: there is an instant for each, booked or on its way.
type costLine struct {
	key           *bookedKey
	cost          int64
	covered, open list.List // of *caller, in order of arrival
	instants      []instant // earliest first
	pending       int       // callers that are asked for
	place         int       // in bookedKey.open
	due           appointment
}

// instant is a booked instant.
type instant struct {
	at       time.Time
	cost     int64
	took     time.Time // no later than the booking
	decision weir.Decision
	withdraw func(ctx context.Context, n int64) error
}

func newBooking(q *Queue, lines enginekit.Lines) *booking {
	return &booking{queue: q, lines: lines, keys: map[string]*bookedKey{}, agenda: newAgenda(&q.mu, func() {})}
}

// can reports whether c can be booked. Callers of a flow cannot be exchanged.
func (b *booking) can(c *caller) bool {
	if len(c.requests) != 1 {
		return false
	}
	r := &c.requests[0]
	return c.flow == "" && r.Rule.Bookable()
}

func (b *booking) join(c *caller) error {
	r := c.requests[0]
	k := b.keys[keyOf(&r)]
	if k != nil && !k.notBefore.IsZero() {
		if err := c.tooLate(time.Until(k.notBefore)); err != nil {
			return err
		}
	}
	if err := b.queue.enter(); err != nil {
		return err
	}
	if k == nil {
		k = b.newKey(keyOf(&r))
	}
	l := k.line(r.Cost)
	c.costLine, c.element = l, l.open.PushBack(c)
	l.balance()
	k.book()
	return nil
}

// leave removes c. The callers behind it move up.
func (b *booking) leave(c *caller) {
	if c.costLine.pending > 0 && c.costLine.key.left == nil { // Flush waits for the answer
		c.costLine.key.left = b.queue.background.begin()
	}
	c.costLine.remove(c)
	c.costLine.balance()
}

func (b *booking) newKey(name string) *bookedKey {
	k := &bookedKey{booking: b, name: name, costs: map[int64]*costLine{}}
	k.retry = newAppointment(k.book)
	k.open = fair.NewHeap(
		func(a, b *costLine) bool { return a.first().Arrival < b.first().Arrival },
		func(l *costLine) *int { return &l.place })
	b.keys[name] = k
	return k
}

func (k *bookedKey) line(cost int64) *costLine {
	l := k.costs[cost]
	if l == nil {
		l = &costLine{key: k, cost: cost, place: -1}
		l.due = newAppointment(l.serve)
		k.costs[cost] = l
	}
	return l
}

// flush gives back the instants that nobody needs, the last one of each line first: only the newest comes back exactly.
func (b *booking) flush() {
	var unused []instant
	for _, k := range b.keys {
		for _, l := range k.costs {
			for last := len(l.instants) - 1; last >= l.covered.Len(); last-- {
				unused, l.instants = append(unused, l.instants[last]), l.instants[:last]
			}
		}
	}
	for _, k := range b.keys {
		for _, l := range k.costs {
			l.balance()
		}
	}
	if len(unused) > 0 {
		b.queue.inBackground(func(ctx context.Context) (err error) {
			for _, at := range unused {
				if at.withdraw != nil && err == nil {
					err = at.withdraw(ctx, at.cost)
				}
			}
			return err
		})
	}
}

// unused gives back what nobody has used, as far as the engine permits, unless too much of it is on its way.
func (q *Queue) unused(withdraw func(ctx context.Context, n int64) error, cost int64) {
	if running, _ := q.background.state(); withdraw != nil && running < enginekit.MaxLineCallers {
		q.inBackground(func(ctx context.Context) error { return withdraw(ctx, cost) })
	}
}

// first returns the first caller to book for.
func (l *costLine) first() *caller { return l.open.Front().Value.(*caller) }

// balance covers as many callers as there are instants, plans the next grant, and forgets an idle line.
func (l *costLine) balance() {
	k := l.key
	k.open.Remove(l)
	have := len(l.instants) + l.pending
	for l.covered.Len() < have && l.open.Len() > 0 {
		c := l.first()
		l.open.Remove(c.element)
		c.element = l.covered.PushBack(c)
	}
	for l.covered.Len() > have {
		c := l.covered.Back().Value.(*caller)
		l.covered.Remove(c.element)
		c.element = l.open.PushFront(c)
	}
	if l.open.Len() > 0 {
		k.open.Put(l)
	}
	if len(l.instants) > 0 {
		k.booking.agenda.plan(&l.due, l.instants[0].at)
		return
	}
	k.booking.agenda.Remove(&l.due)
	if l.pending+l.open.Len() > 0 {
		return
	}
	if delete(k.costs, l.cost); len(k.costs) == 0 {
		k.booking.agenda.Remove(&k.retry)
		delete(k.booking.keys, k.name)
	}
}

// remove removes a caller from whichever list it is in: a list ignores elements of another.
func (l *costLine) remove(c *caller) {
	l.covered.Remove(c.element)
	l.open.Remove(c.element)
	c.element = nil
}

// serve lets the first callers go at the instants that have come.
func (l *costLine) serve() {
	for now := time.Now(); len(l.instants) > 0 && !l.instants[0].at.After(now); l.instants = l.instants[1:] {
		at := l.instants[0]
		if l.covered.Len() == 0 { // nobody is left to use it
			l.key.booking.queue.unused(at.withdraw, l.cost)
			continue
		}
		c := l.covered.Front().Value.(*caller)
		l.remove(c)
		c.decision = at.decision
		c.decision.Delay = 0
		if c.acquires {
			c.reservation = weir.Granted(l.key.booking.queue.engine, at.took, c.decision, at.withdraw, c.call())
		}
		l.key.booking.queue.end(c, nil)
	}
	l.balance()
}

// book books for the oldest callers, unless it has to wait for an answer or an instant.
func (k *bookedKey) book() {
	if k.asked != nil || k.retry.planned() || k.open.Len() == 0 {
		return
	}
	book := &enginekit.LineBook{Horizon: horizon}
	for k.open.Len() > 0 && len(k.asked) < max(k.most, 1) {
		l := k.open.First()
		c := l.first()
		k.asked = append(k.asked, c)
		book.Callers = append(book.Callers, enginekit.LineCaller{Requests: c.requests, Since: c.since})
		l.pending++
		l.balance()
	}
	first := k.asked[0]
	if !first.deadline.IsZero() {
		book.Horizon = min(horizon, max(time.Until(first.deadline), 0))
	}
	go k.fly(context.WithoutCancel(first.ctx), book)
}

func (k *bookedKey) fly(ctx context.Context, book *enginekit.LineBook) {
	took := time.Now()
	callers := book.Callers
	err := guarded(func() error { return k.booking.lines.Book(ctx, book) })
	if len(book.Callers) != len(callers) {
		book.Callers, err = callers, errNonsense
	}
	k.booking.queue.mu.Lock()
	defer k.booking.queue.mu.Unlock()
	asked := k.asked
	k.asked, k.notBefore = nil, time.Time{}
	k.booked(took, book, err == nil, asked)
	if err != nil {
		book.Retry = k.failed(err, asked)
	} else {
		k.failures = 0
		k.refuse(book, asked)
	}
	if book.Retry > 0 {
		k.booking.agenda.plan(&k.retry, time.Now().Add(max(book.Retry, shortestPause)))
	}
	for _, c := range asked {
		c.costLine.serve()
	}
	if k.left != nil {
		k.left()
		k.left = nil
	}
	k.book()
}

// booked takes in the instants of a booking.
func (k *bookedKey) booked(took time.Time, book *enginekit.LineBook, answered bool, asked []*caller) {
	now, booked := time.Now(), 0
	for i, c := range asked {
		l, answer := c.costLine, &book.Callers[i]
		l.pending--
		if answered && answer.Err == nil && answer.Decision.Allowed {
			booked++
			at := len(l.instants)
			for at > 0 && l.instants[at-1].at.After(now.Add(answer.Decision.Delay)) {
				at--
			}
			l.instants = slices.Insert(l.instants, at, instant{now.Add(answer.Decision.Delay), l.cost, took, answer.Decision, answer.Withdraw})
		}
	}
	for _, c := range asked {
		c.costLine.balance()
	}
	k.most = min(2*booked+1, enginekit.MaxLineCallers)
}

// refuse ends the waits of callers that cannot be booked, or not before their deadlines.
func (k *bookedKey) refuse(book *enginekit.LineBook, asked []*caller) {
	now := time.Now()
	for i, c := range asked {
		answer := &book.Callers[i]
		err, d := answer.Err, answer.Decision
		if err == nil && d.Allowed {
			continue
		}
		switch {
		case err != nil && weir.Unavailable(err):
			book.Retry, err = max(book.Retry, firstPause), nil
		case err != nil:
		case c.requests[0].Cost > d.Limit:
			err = &weir.CostError{Cost: c.requests[0].Cost, Capacity: d.Limit}
		case d.RetryAfter <= 0:
			err = errNonsense
		default:
			err = c.tooLate(d.RetryAfter)
			if k.notBefore.IsZero() {
				k.notBefore = now.Add(min(d.RetryAfter, time.Hour))
			}
		}
		if err != nil {
			k.end(c, err)
		}
	}
}

// failed returns how long the callers wait before they book again. While the engine cannot be reached all keep their places,
// although it may have booked for them: those units stay spent. Any other error ends the wait of one caller.
func (k *bookedKey) failed(err error, asked []*caller) (pause time.Duration) {
	if k.failures++; weir.Unavailable(err) {
		return backOff(k.failures)
	}
	if i := slices.IndexFunc(asked, func(c *caller) bool { return c.element != nil }); i >= 0 {
		k.end(asked[i], err)
	}
	return shortestPause
}

// end ends the wait of a caller that is still there.
func (k *bookedKey) end(c *caller, err error) {
	if c.element != nil {
		c.costLine.remove(c)
		c.costLine.balance()
		k.booking.queue.end(c, err)
	}
}
