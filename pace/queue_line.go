package pace

import (
	"container/list"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weirflow/weir"
)

// queueLine is the callers that ask for the same keys, in order of arrival. The lock of the queue guards it. Its first
// caller has the lead: it asks the engine without the lock. A line has at least one place.
type queueLine struct {
	queue  *Queue
	keys   string
	slots  []string // the keys of requests for slots
	joint  []string // the keys, if there are several
	places order
	// notBefore is when the engine may admit the first caller, by its last refusal; zero if that is not known.
	notBefore time.Time
	wake      chan struct{}  // receives when slots were released
	inEngine  weir.LinePlace // of the caller with the lead, if it acquires slots on an engine that keeps a line; otherwise nil

	// On the memory engine, see local.
	mixed                      bool // the requests of its callers differ
	uses                       []localUse
	inReady, inLater, inParked int       // the places in the heaps, or -1
	parkedAt                   *localKey // the key where it is parked, or nil
}

// place is a waiting caller.
type place struct {
	requests []weir.Request
	acquires bool
	line     *queueLine
	inFlow   *flow
	element  *list.Element
	arrival  uint64
	since    time.Time
	inAll    *list.Element
	turn     chan turn
	flow     string
	weight   int64

	// What was taken for it, written before the turn is granted.
	decision    weir.Decision
	reservation *weir.Reservation
	booked      booked    // the instant that it brought, if it booked
	served      bool      // its flow is charged
	deadline    time.Time // on the memory engine; zero means none
	err         error     // of the memory engine
}

// cost returns what its flow is charged: the largest cost of its requests.
func (p *place) cost() (most int64) {
	for i := range p.requests {
		most = max(most, p.requests[i].Cost)
	}
	return most
}

// takeNow takes the requests if they are admitted now.
func (p *place) takeNow(ctx context.Context, engine weir.Engine) (err error) {
	if !p.acquires {
		p.decision, err = engine.Take(ctx, p.requests...)
		return err
	}
	if p.reservation, err = engine.Reserve(ctx, p.requests...); err == nil {
		p.decision = p.reservation.Decision
	}
	return err
}

// turn tells a waiting caller what to do.
type turn uint8

const (
	lead    turn = iota // ask the engine for the line
	granted             // the requests were taken
)

// maxTogether bounds the callers for which one call asks.
const maxTogether = 256

// errOvertaken is returned to a caller with the lead when a caller of another flow is before it.
var errOvertaken = errors.New("pace: another flow is first")

// ask asks the engine until it admits the first caller of the line, p.
func (l *queueLine) ask(ctx context.Context, p *place) error {
	for refusals := 1; ; refusals++ {
		if refusals > 1 && l.handOver(p) {
			return errOvertaken
		}
		d, err := l.take(ctx, p)
		if err != nil || d.Allowed {
			p.served = err == nil
			return err
		}
		if err := l.sleep(ctx, p, d, refusals); err != nil {
			return err
		}
	}
}

// take asks once, for p and the callers behind it.
func (l *queueLine) take(ctx context.Context, p *place) (weir.Decision, error) {
	if !p.acquires {
		l.leaveEngine()
	}
	switch {
	case l.books(p):
		return l.queue.book(ctx, p)
	case p.acquires:
		r, err := l.reserve(ctx, p)
		if err != nil {
			return weir.Decision{}, err
		}
		p.reservation = r
		return r.Decision, nil
	case len(p.requests) == 1 && has[weir.LeakyBucket](&p.requests[0]):
		return l.takeDelayed(ctx, p)
	}
	together := l.together(p)
	if together == 1 {
		d, err := l.queue.engine.Take(ctx, p.requests...)
		p.decision = d
		return d, err
	}
	times, d, err := weir.TakeUpTo(ctx, l.queue.engine, together, p.requests...)
	p.decision = d
	if err == nil && times > 1 {
		l.grant(ctx, p, times-1)
	}
	return d, err
}

func (l *queueLine) books(p *place) bool {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	return l.queue.books(p.requests, p.flow)
}

// takeDelayed takes from a limit that admits with a delay, unless the delay ends after the context.
func (l *queueLine) takeDelayed(ctx context.Context, p *place) (d weir.Decision, err error) {
	if left, bounded := timeLeft(ctx); bounded {
		if d, err = l.queue.engine.Peek(ctx, p.requests...); err != nil {
			return d, err
		}
		if d.Delay > left {
			return d, tooLong(d.Delay, left)
		}
	}
	p.decision, err = l.queue.engine.Take(ctx, p.requests...)
	return p.decision, err
}

// together returns the number of callers from the first on that ask for the same as p.
func (l *queueLine) together(p *place) (n int64) {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	if !l.places.single() {
		return 1
	}
	next := p.element
	for n = 1; n < maxTogether; n++ {
		if next = next.Next(); next == nil || !next.Value.(*place).asksLike(p) {
			break
		}
	}
	return n
}

// asksLike reports whether one call can take for both.
func (p *place) asksLike(other *place) bool {
	return !p.acquires && slices.Equal(p.requests, other.requests)
}

// grant lets up to n callers behind p go, for whom units were taken. What callers have left behind is given back; if
// that fails, it stays spent.
func (l *queueLine) grant(ctx context.Context, p *place, n int64) {
	l.queue.mu.Lock()
	for ; n > 0; n-- {
		behind := p.element.Next()
		if behind == nil || !behind.Value.(*place).asksLike(p) {
			break
		}
		next := behind.Value.(*place)
		next.decision, next.served = p.decision, true
		l.leave(next)
		next.turn <- granted
	}
	l.queue.mu.Unlock()
	if n > 0 {
		l.queue.giveBack(ctx, n, p.requests)
	}
}

// handOver gives the lead of p to the first caller, if that is another one by now.
func (l *queueLine) handOver(p *place) bool {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	first := l.first()
	if first != p {
		first.turn <- lead
	}
	return first != p
}

// add adds a place.
func (l *queueLine) add(p *place) {
	p.line = l
	l.places.push(p)
	l.queue.waiting++
}

// leave removes a place that has no turn pending.
func (l *queueLine) leave(p *place) {
	if p.served {
		l.places.serve(p)
	} else {
		l.places.remove(p)
	}
	l.queue.waiting--
}

// first returns the next caller.
func (l *queueLine) first() *place { return l.places.first() }

// sleep waits after a refusal until the engine may admit p, or slots were released. It refuses a wait that is longer
// than the caller's.
func (l *queueLine) sleep(ctx context.Context, p *place, d weir.Decision, refusals int) error {
	slots := waitsForSlots(p.requests, d)
	pause := d.RetryAfter
	notBefore := time.Time{}
	if slots {
		pause = min(pause, backOff(refusals))
	} else if pause != weir.Never {
		notBefore = time.Now().Add(pause)
	}
	l.setNotBefore(notBefore)
	if err := hopeless(ctx, p, d); err != nil {
		return err
	}
	if l.inEngine != nil {
		return l.inEngine.Wait(ctx)
	}
	if !slots {
		pause += l.spread(pause, refusals)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.wake:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// hopeless refuses a caller that can never go, or not before its deadline. Slots may come back at any time.
func hopeless(ctx context.Context, p *place, d weir.Decision) error {
	slots := waitsForSlots(p.requests, d)
	cost := costOf(p.requests, d)
	if d.RetryAfter == weir.Never && (!slots || cost > d.Limit) { // slots without a lease come back all the same
		return &weir.CostError{Cost: cost, Capacity: d.Limit}
	}
	if left, bounded := timeLeft(ctx); bounded && !slots && d.RetryAfter > left {
		return tooLong(d.RetryAfter, left)
	}
	return nil
}

// waitsForSlots reports whether the refusing rule has slots, which may come back before the engine's RetryAfter.
func waitsForSlots(requests []weir.Request, d weir.Decision) bool {
	return slices.ContainsFunc(requests, func(r weir.Request) bool { return r.Rule.Name() == d.Rule && asksForSlots(&r) })
}

// The pauses between two questions about slots, which another process may release.
const (
	shortestPause = 10 * time.Millisecond
	longestPause  = time.Second
)

func backOff(refusals int) time.Duration {
	return min(shortestPause<<min(refusals-1, 10), longestPause)
}

// spread returns a random time for a caller that was refused again at the named instant, because callers of other
// processes received the same instant. Lines that share a key always spread, so that none of them is always late.
func (l *queueLine) spread(pause time.Duration, refusals int) time.Duration {
	share := time.Duration(2)
	if l.sharesKeys() {
		share = 16
	} else if refusals == 1 {
		return 0
	}
	return rand.N(min(pause/share, longestPause) + 1)
}

// sharesKeys reports whether callers of another line wait for one of the keys, together with other keys on either side.
func (l *queueLine) sharesKeys() bool {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	return len(l.queue.lines) > 1 && (len(l.joint) > 0 || l.queue.joint[l.keys] > 0)
}

func (l *queueLine) setNotBefore(at time.Time) {
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	l.notBefore = at
}

// tooLate refuses a newcomer whose deadline is before the instant at which the engine may admit the first caller, behind
// which it goes.
func (l *queueLine) tooLate(ctx context.Context, p *place) error {
	need := time.Until(l.notBefore)
	if left, bounded := timeLeft(ctx); bounded && l.places.length > 0 && l.first().flow == p.flow && need > left {
		return tooLong(need, left)
	}
	return nil
}

// wakeUp makes the first caller ask now.
func (l *queueLine) wakeUp() {
	select {
	case l.wake <- struct{}{}:
	default: // it has been woken
	}
}

func timeLeft(ctx context.Context) (left time.Duration, bounded bool) {
	deadline, bounded := ctx.Deadline()
	return time.Until(deadline), bounded
}

func tooLong(need, bound time.Duration) error {
	return &weir.WaitError{Need: need, Bound: bound, Deadline: true}
}

// costOf returns the cost of the key that a decision names.
func costOf(requests []weir.Request, d weir.Decision) (cost int64) {
	for _, r := range requests {
		if r.Rule.Name() == d.Rule && r.Key == d.Key {
			cost += r.Cost
		}
	}
	return cost
}
