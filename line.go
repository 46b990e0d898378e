package weir

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/clock"
)

// line is those who wait for a subject, first come, first served (or by weight:
// order.go). Nobody polls and there is no goroutine: one timer stands for the
// head of the line, and when it fires everyone whose turn has come is let go.
// The owner's lock is held in every method but fire.
//
// Units are taken from the state when a waiter is let go, not when it joins, so
// one that leaves has cost nothing and those behind it move forward. Where the
// limit plans (a bucket), the units are spent as of the instant that was due,
// and a late wake-up loses nothing; where it is strict (a gate, a log, a window),
// at the instant of the release, and a late wake-up breaks no promise.
type line struct {
	queue   *queue
	subject *subject
	order   order
	totals
	timer    *time.Timer
	wake     int64    // when the timer fires; unset if it will not
	released *wakeUps // while the timer fires
	// since is the last instant that the state was changed at: nobody is due
	// before it.
	since int64
	plan  plan
	// late is how late the timer was, and until when newcomers to an empty line
	// are owed that.
	late, until int64
}

// queue is what the lines of one owner share: its lock, its clock and its
// options.
type queue struct {
	mu      *sync.Mutex
	clock   *clock.Clock
	options Options
}

// now reads the clock where a panic of it must not pass.
func (q *queue) now() (at int64, ok bool) {
	r, ok := q.clock.ReadSafely()
	return r.At, ok
}

// waiter stands in line.
type waiter struct {
	subject *subject
	n       int64
	arrived int64
	class   int
	queued  bool
	done    chan error // told nil when it is let go; nil for a booking
	told    int64      // the instant that a booking was promised
	held    *Slots     // notes the slots that it takes; nil if nobody asks
	run     *run

	previous, next *waiter // in its class
}

// lineOf is the line of s, begun if there is none.
func (q *queue) lineOf(s *subject, now int64) *line {
	if s.line == nil {
		s.line = &line{queue: q, subject: s, order: newOrder(q.options.Weights), totals: newTotals(), since: now, wake: unset}
	}
	return s.line
}

// join adds w at the end. The caller has seen to it that the timer is set.
func (l *line) join(w *waiter) {
	l.totals.add(w)
	l.order.push(w)
	l.plan.extend(l, w)
}

// leave takes w out before its turn. If it was the head, whoever follows is due
// from now on at the earliest.
func (l *line) leave(w *waiter, now int64) {
	head := l.order.next() == w
	l.plan.left(l, w)
	l.remove(w)
	if head {
		l.resume(now)
	}
}

// remove takes w out of the line without charging its class.
func (l *line) remove(w *waiter) {
	l.order.remove(w)
	l.totals.remove(w)
}

// replan follows a change of the state or the limit.
func (l *line) replan(now int64) {
	l.plan.drop()
	l.resume(now)
}

// resume goes on with nobody due before now.
func (l *line) resume(now int64) {
	l.since = max(l.since, now)
	l.ranBack = l.ranBack || now < l.newest
	l.advance(now)
}

// fire is the timer. Those whose turn has come are woken when the lock is free
// again: they are many, and each will want it.
func (l *line) fire() {
	var due wakeUps
	l.queue.mu.Lock()
	if l.subject.line == l {
		l.wake = unset
		l.released = &due
		now, _ := l.queue.now()
		l.fell(now)
		l.advance(now)
		l.released = nil
	}
	l.queue.mu.Unlock()
	due.wake()
}

// advance lets go everyone whose turn has come and sets the timer for the next.
// An empty line ends, if it is not about to be taken up again.
func (l *line) advance(now int64) {
	for w := l.order.next(); w != nil; w = l.order.next() {
		if l.hopeless(w) {
			l.release(w, &CostError{Op: opWait, Cost: w.n, Capacity: l.subject.algorithm.Capacity()})
			l.plan.drop()
			continue
		}
		from, at := l.due(w, now)
		if at > now {
			l.sleep(at)
			return
		}
		l.spend(w, from, at)
	}
	if now < l.until {
		l.sleep(l.until)
		return
	}
	l.end()
}

// fell notes how late the timer was. Callers who come straight back would have
// come that much earlier, had they been let go in time: a plan that has run dry
// takes up those who come until then where it stopped, so that what a timer
// cannot do (on Linux it is often 1 ms late) does not cost throughput. The
// credit is never above the lateness, nor above maxLate.
func (l *line) fell(now int64) {
	w := l.order.next()
	if w == nil || !algorithm.Planned(l.subject.algorithm) {
		return
	}
	if _, at := l.due(w, now); at < now {
		l.late = min(now-at, maxLate)
		l.until = now + l.late
	}
}

const maxLate = int64(10 * time.Millisecond)

// arrival is when a newcomer counts as come.
func (l *line) arrival(now int64) int64 {
	if l.length == 0 && now < l.until {
		return min(now, max(l.since, now-l.late))
	}
	return now
}

// hopeless says that w can never go, since the limit has changed. A booking was
// told an instant and goes all the same.
func (l *line) hopeless(w *waiter) bool {
	return w.done != nil && w.n > l.subject.algorithm.Capacity()
}

// due is when the head of the line may go, and the instant to take its units
// at. A plan takes them when they were asked for, as a debt: taken at the due
// instant, which is rounded up to a nanosecond, the rounding would pile up. For
// the same reason a booking takes them just before the instant it was told.
func (l *line) due(w *waiter, now int64) (from, at int64) {
	s := l.subject
	switch {
	case w.done == nil:
		return w.spent(s.algorithm), w.told
	case algorithm.Planned(s.algorithm):
		from = max(w.arrived, l.since)
		return from, saturatingAdd(from, algorithm.Hold(s.algorithm, s.state, from, w.n))
	}
	return now, saturatingAdd(now, s.algorithm.Wait(s.state, now, w.n))
}

// spent is the instant to take the units of a booking at.
func (w *waiter) spent(a algorithm.Algorithm) int64 {
	if algorithm.Planned(a) {
		return w.told - 1
	}
	return w.told
}

// spend takes the units of the head of the line and lets it go.
func (l *line) spend(w *waiter, from, at int64) {
	s := l.subject
	s.spend(from, w.n, w.held)
	l.since = max(l.since, at)
	l.plan.served(l)
	l.order.serve(w)
	l.totals.remove(w)
	switch {
	case w.done == nil:
	case l.released != nil:
		l.released.add(w)
	default:
		w.done <- nil
	}
}

// release sends w away with an error.
func (l *line) release(w *waiter, err error) {
	l.remove(w)
	if w.done != nil {
		w.done <- err
	}
}

// unset is the wake of a timer that is not running.
const unset = math.MaxInt64

// sleep sees to it that the timer fires at an instant to come, or before: it
// then sets itself anew, which is cheaper than to move it at every step. The
// clock is read again, since the time of the verb may be a little old by now, or
// given by the caller.
func (l *line) sleep(at int64) {
	if at >= l.wake {
		return
	}
	now, ok := l.queue.now()
	left := time.Duration(at - now)
	if !ok {
		left = min(left, clock.Retry)
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(left, l.fire)
	} else {
		l.timer.Reset(left)
	}
	l.wake = at
}

// end closes an empty line: an idle subject costs nothing.
func (l *line) end() {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.subject.line = nil
}

// close sends everyone away. The bookings stay, since their instants were told.
func (l *line) close(now int64, err error) {
	for _, w := range slices.Collect(l.order.all) {
		if w.done != nil {
			l.release(w, err)
		}
	}
	l.replan(now)
}

// refusal is the answer of the verbs that do not wait while someone does.
func (l *line) refusal(now, n int64) Decision {
	a := l.subject.algorithm
	state, from := l.plan.tail(l, now)
	ahead := from - now
	d := Decision{
		Limit:      a.Capacity(),
		ResetAfter: time.Duration(saturatingAdd(ahead, a.Wait(state, from, a.Capacity()))),
	}
	switch {
	case n == 0:
		d.Allowed = true
	case n > a.Capacity():
		d.RetryAfter = Never
	default:
		d.RetryAfter = time.Duration(max(1, saturatingAdd(ahead, algorithm.Hold(a, state, from, n))))
	}
	return d
}

// wakeUps are waiters that were let go and have yet to be told, in order.
type wakeUps struct{ first, last *waiter }

func (u *wakeUps) add(w *waiter) {
	if u.last == nil {
		u.first = w
	} else {
		u.last.next = w
	}
	u.last = w
}

func (u *wakeUps) wake() {
	for w := u.first; w != nil; {
		next := w.next
		w.done <- nil
		w = next
	}
}
