// Package line holds the callers that wait for one limit, in this process. A
// Subject is what is limited: its verbs decide, and refuse while callers wait.
// Lines.Join and Lines.Await wait for a turn, and Subject.Book takes a cost for an
// instant to come.
//
// The package knows algorithms and clocks. Its owner gives it a lock, a clock and
// the classes, and it answers with algorithm.Answer and the refusals of
// refusal.go.
package line

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/clock"
)

// line is the waiting callers of a subject, first come, first served (or by
// weight: order.go). Nobody polls and there is no goroutine: one timer stands for
// the head of the line, and when it fires, every caller whose turn has come is
// let go. Every method but fire needs the owner's lock.
//
// Units are taken from the state when a waiter is let go, not when it joins. So a
// waiter that withdraws has cost nothing, and those behind it move forward. Where
// the limit plans (a bucket), the units are spent as of the instant that was due,
// and a late wake-up loses nothing. Where it is strict (a gate, a log, a window),
// they are spent at the instant of the release, and a late wake-up breaks no
// promise.
type line struct {
	owner   *Lines
	subject *Subject
	order   order
	totals
	timer    *time.Timer
	wake     int64    // when the timer fires; unset if it will not
	released *wakeUps // while the timer fires
	// since is the last instant that the state was changed at: nobody is due
	// before it.
	since int64
	plan  plan
	// lateness is how late the timer was, and newcomers to an empty line are
	// credited with it until creditEnds.
	lateness, creditEnds int64
}

// Lines are the lines of one owner: what its subjects share.
type Lines struct {
	Lock     *sync.Mutex // the owner's lock; it guards the subjects
	Clock    *clock.Clock
	Weights  []int64 // of the classes, each 1 to MaxWeight; none is one class
	Capacity int     // how many may wait at once for one subject
}

// now reads the clock where a panic of it must not pass.
func (q *Lines) now() (at int64, ok bool) {
	r, ok := q.Clock.ReadSafely()
	return r.At, ok
}

// lineOf returns the line of s, begun if there is none.
func (q *Lines) lineOf(s *Subject, now int64) *line {
	if s.line == nil {
		s.line = &line{owner: q, subject: s, order: newOrder(q.Weights), totals: newTotals(), since: now, wake: unset}
	}
	return s.line
}

// full reports whether no more may wait.
func (l *line) full() bool { return l.length >= l.owner.Capacity }

// push adds w at the end. The caller has seen to it that the timer is set.
func (l *line) push(w *Waiter) {
	l.totals.add(w)
	l.order.push(w)
	l.plan.extend(l, w)
}

// withdraw takes w out before its turn. If it was the head, the next one is due
// from now on at the earliest.
func (l *line) withdraw(w *Waiter, now int64) {
	head := l.order.next() == w
	l.plan.withdrawn(l, w)
	l.remove(w)
	if head {
		l.resume(now)
	}
}

// remove takes w out of the line without charging its class.
func (l *line) remove(w *Waiter) {
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

// fire is the timer. The waiters whose turn has come are woken when the lock is
// free again: they are many, and each will want it.
func (l *line) fire() {
	var due wakeUps
	l.owner.Lock.Lock()
	if l.subject.line == l {
		l.wake = unset
		l.released = &due
		now, _ := l.owner.now()
		l.noteLateness(now)
		l.advance(now)
		l.released = nil
	}
	l.owner.Lock.Unlock()
	due.wake()
}

// advance lets go every waiter whose turn has come and sets the timer for the next.
// An empty line ends, if it is not about to be taken up again.
func (l *line) advance(now int64) {
	for w := l.order.next(); w != nil; w = l.order.next() {
		if l.hopeless(w) {
			l.release(w, &TooLargeError{Cost: w.n, Capacity: l.subject.algorithm.Capacity()})
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
	if now < l.creditEnds {
		l.sleep(l.creditEnds)
		return
	}
	l.end()
}

// noteLateness notes how late the timer was. Callers that come straight back
// would have come that much earlier, had they been let go in time. So a plan that
// has run dry goes on where it stopped for callers that come until then: a timer
// that is late (on Linux often by 1 ms) does not cost throughput. The credit is
// never above the lateness, nor above maxLate.
func (l *line) noteLateness(now int64) {
	w := l.order.next()
	if w == nil || !algorithm.Planned(l.subject.algorithm) {
		return
	}
	if _, at := l.due(w, now); at < now {
		l.lateness = min(now-at, maxLate)
		l.creditEnds = now + l.lateness
	}
}

const maxLate = int64(10 * time.Millisecond)

// arrival is when a newcomer counts as come.
func (l *line) arrival(now int64) int64 {
	if l.length == 0 && now < l.creditEnds {
		return min(now, max(l.since, now-l.lateness))
	}
	return now
}

// hopeless reports whether w can never go, since the limit has changed. A booking was
// promised an instant and goes all the same.
func (l *line) hopeless(w *Waiter) bool {
	return !w.isBooking() && w.n > l.subject.algorithm.Capacity()
}

// due is when the head of the line may go, and the instant to take its units
// at. A plan takes them when they were asked for, as a debt: taken at the due
// instant, which is rounded up to a nanosecond, the rounding would pile up. For
// the same reason a booking takes them just before the instant it was promised.
func (l *line) due(w *Waiter, now int64) (from, at int64) {
	s := l.subject
	switch {
	case w.isBooking():
		return w.spentAt(s.algorithm), w.promised
	case algorithm.Planned(s.algorithm):
		from = max(w.arrived, l.since)
		return from, algorithm.AddSaturating(from, algorithm.Hold(s.algorithm, s.State, from, w.n))
	}
	return now, algorithm.AddSaturating(now, s.algorithm.Wait(s.State, now, w.n))
}

// spend takes the units of the head of the line and lets it go.
func (l *line) spend(w *Waiter, from, at int64) {
	s := l.subject
	s.spend(from, w.n, w.lease)
	l.since = max(l.since, at)
	l.plan.served(l)
	l.order.serve(w)
	l.totals.remove(w)
	switch {
	case w.isBooking():
	case l.released != nil:
		l.released.add(w)
	default:
		w.done <- nil
	}
}

// release sends w away with an error.
func (l *line) release(w *Waiter, err error) {
	l.remove(w)
	if !w.isBooking() {
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
	now, ok := l.owner.now()
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

// close sends the waiting callers away. The bookings stay, since their instants
// were promised.
func (l *line) close(now int64) {
	for _, w := range slices.Collect(l.order.all) {
		if !w.isBooking() {
			l.release(w, ErrClosed)
		}
	}
	l.replan(now)
}

// refusal returns the answer of the verbs that do not wait, beside waiting callers.
func (l *line) refusal(now, n int64) algorithm.Answer {
	a := l.subject.algorithm
	state, from := l.plan.tail(l, now)
	ahead := from - now
	answer := algorithm.Answer{
		Limit:      a.Capacity(),
		ResetAfter: algorithm.AddSaturating(ahead, a.Wait(state, from, a.Capacity())),
	}
	switch {
	case n == 0:
		answer.Allowed = true
	case n > a.Capacity():
		answer.RetryAfter = algorithm.Never
	default:
		answer.RetryAfter = max(1, algorithm.AddSaturating(ahead, algorithm.Hold(a, state, from, n)))
	}
	return answer
}
