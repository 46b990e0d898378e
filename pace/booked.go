package pace

import (
	"container/list"
	"context"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// bookedLine is the callers that have booked the same request of one key. Each books its own instant in one call, and
// the engine gives the instants out in the order in which it sees the calls of all processes. The instants of a line
// are interchangeable: the first caller in order goes at the first instant. When a caller leaves, the callers behind
// it move up, and the last instant is cancelled. The lock of the queue guards it.
type bookedLine struct {
	queue    *Queue
	request  weir.Request
	places   list.List // of *place, in order of arrival
	instants []booked  // as many as places, earliest first
	timer    *time.Timer

	left       []*weir.Reservation // to be cancelled, the first one first
	cancelling bool                // cancelLeft runs
}

// booked is a booked instant.
type booked struct {
	at          time.Time
	reservation *weir.Reservation
}

// books reports whether the requests can be booked: one request of a rule that plans, on an engine that books, with a
// key that no caller waits for together with other keys. Such a caller asks, and would never be admitted while others
// book ahead of it. Callers of the memory engine need no bookings, and callers of a flow cannot be interchanged. The
// caller holds the lock.
func (q *Queue) books(requests []weir.Request, flow string) bool {
	if _, ok := q.engine.(weir.AheadTaker); !ok || q.local != nil || len(requests) != 1 {
		return false
	}
	r := &requests[0]
	return r.Cost > 0 && r.Identity == "" && flow == "" && r.Rule.Bookable() && q.joint[keyOf(r)] == 0
}

// book books p's request, unless that would take too long. The refusal of a booking for which the limit has no space
// yet is a decision.
func (q *Queue) book(ctx context.Context, p *place) (weir.Decision, error) {
	longest, bounded := timeLeft(ctx)
	if !bounded {
		longest = weir.Never
	}
	r, err := weir.Book(ctx, q.engine, longest, p.requests[0])
	if err != nil {
		return weir.Decision{}, err
	}
	d := r.Decision
	if d.Allowed {
		p.booked = booked{time.Now().Add(d.Delay), r}
		return d, nil
	}
	return d, q.tooFar(ctx, p, d, longest)
}

// tooFar refuses a caller whose instant is later than its deadline. A limit with a queue or a gate can also lack space,
// for which the caller waits.
func (q *Queue) tooFar(ctx context.Context, p *place, d weir.Decision, longest time.Duration) error {
	if cost := costOf(p.requests, d); cost > d.Limit {
		return &weir.CostError{Cost: cost, Capacity: d.Limit}
	}
	if longest == weir.Never {
		return nil
	}
	if r := &p.requests[0]; has[weir.RateGate](r) || has[weir.LeakyBucket](r) {
		now, err := q.engine.Peek(ctx, p.requests...)
		if err != nil {
			return err
		}
		if need := max(now.RetryAfter, now.Delay); need <= longest {
			return nil
		}
	}
	if d.RetryAfter < weir.Never-longest {
		return tooLong(longest+d.RetryAfter, longest)
	}
	return tooLong(weir.Never, longest)
}

// waitBooked waits for p's turn. Without space for a booking, p waits in the line of its key.
func (q *Queue) waitBooked(ctx context.Context, p *place) error {
	d, err := q.book(ctx, p)
	switch {
	case err != nil:
		q.mu.Lock()
		q.waiting--
		q.mu.Unlock()
		return err
	case !d.Allowed:
		q.mu.Lock()
		q.waiting--
		q.mu.Unlock()
		return q.waitInLine(ctx, p)
	}
	return q.sleepBooked(ctx, p)
}

// sleepBooked waits for the first instant that no earlier caller has. It counts p until then.
func (q *Queue) sleepBooked(ctx context.Context, p *place) error {
	q.mu.Lock()
	l := q.bookedLine(p)
	l.add(p)
	q.mu.Unlock()
	select {
	case <-p.turn:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	select {
	case <-p.turn:
		q.mu.Unlock()
		return nil
	default:
	}
	l.leave(p)
	if !l.cancelling {
		l.cancelling = true
		q.background.run(func() { l.cancelLeft(ctx) })
	}
	q.mu.Unlock()
	return ctx.Err()
}

// cancelLeft cancels the instants that callers have left, one after the other: only the newest comes back exactly, and
// it was left first. What cannot be cancelled stays spent. ctx has ended, so each takes a second at most.
func (l *bookedLine) cancelLeft(ctx context.Context) {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	for len(l.left) > 0 {
		next := l.left[0]
		l.left = l.left[1:]
		l.queue.mu.Unlock()
		_ = next.Cancel(ctx)
		l.queue.mu.Lock()
	}
	l.cancelling = false
}

// bookedLine returns the line of p's request. The caller holds the lock.
func (q *Queue) bookedLine(p *place) *bookedLine {
	l := q.booked[p.requests[0]]
	if l == nil {
		l = &bookedLine{queue: q, request: p.requests[0]}
		q.booked[l.request] = l
	}
	return l
}

// add adds p in order of arrival, and its instant.
func (l *bookedLine) add(p *place) {
	behind := l.places.Back()
	for behind != nil && behind.Value.(*place).arrival > p.arrival {
		behind = behind.Prev()
	}
	if behind == nil {
		p.element = l.places.PushFront(p)
	} else {
		p.element = l.places.InsertAfter(p, behind)
	}
	i := len(l.instants)
	for i > 0 && l.instants[i-1].at.After(p.booked.at) {
		i--
	}
	l.instants = slices.Insert(l.instants, i, p.booked)
	if i == 0 {
		l.serve()
	}
}

// leave removes p, and the last instant, which no caller of the line needs any more.
func (l *bookedLine) leave(p *place) {
	l.places.Remove(p.element)
	l.queue.waiting--
	l.left = append(l.left, l.instants[len(l.instants)-1].reservation)
	l.instants = l.instants[:len(l.instants)-1]
	l.endIfEmpty()
}

// serve lets the callers go whose instants have come, and sets the timer for the next one.
func (l *bookedLine) serve() {
	now := time.Now()
	for len(l.instants) > 0 && !l.instants[0].at.After(now) {
		p := l.places.Remove(l.places.Front()).(*place)
		p.reservation, p.decision = l.instants[0].reservation, l.instants[0].reservation.Decision
		p.decision.Delay = 0
		l.instants = l.instants[1:]
		l.queue.waiting--
		p.turn <- granted
	}
	if l.endIfEmpty() {
		return
	}
	pause := l.instants[0].at.Sub(now)
	if l.timer == nil {
		l.timer = time.AfterFunc(pause, l.due)
		return
	}
	l.timer.Reset(pause)
}

func (l *bookedLine) due() {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	if l.places.Len() > 0 {
		l.serve()
	}
}

// endIfEmpty forgets a line without callers.
func (l *bookedLine) endIfEmpty() bool {
	if l.places.Len() > 0 {
		return false
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.queue.booked[l.request] == l {
		delete(l.queue.booked, l.request)
	}
	return true
}
