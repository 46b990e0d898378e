// Package line queues the callers that wait for one limit, in this process. A Subject is the limited thing: its
// methods decide, and refuse while callers wait. Lines.Join and Lines.Await wait for a turn, and Subject.Book takes a
// cost for a later instant.
//
// The package knows algorithms and clocks. Its owner provides a lock, a clock and the weights of classes. It answers with
// algorithm.Answer and, where it refuses, a *Refusal.
package line

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/clock"
	"github.com/weirflow/weir/internal/fair"
)

// line is the queue of a subject's waiting callers, in order of arrival or by weight. It needs no polling
// and no goroutine: one timer stands for the head of the line and releases every caller whose turn has come. Every
// method except fire needs the owner's lock.
//
// Units are taken from the state when a waiter is released, not when it joins. A waiter that withdraws has therefore
// cost nothing, and later waiters move forward. A limit that plans (a bucket) spends the units as of the instant that
// was due, so a late wake-up loses nothing. A strict limit (a gate, a log, a window) spends them at the instant of
// the release, so a late wake-up breaks no promise.
type line struct {
	owner   *Lines
	subject *Subject
	queue   fair.Queue[*Waiter]
	// bookings are in order of arrival and of their promised instants. The first one goes before the first waiter if it
	// came earlier, or if the waiter would take units that the booking needs at its instant.
	bookings []*Booking
	between  int64  // the costs of the waiters that arrived before the last booking
	spans    []span // that of all bookings at 1, and the halves of i at 2i and 2i+1; nil until it is needed
	gone     int    // the bookings that have left since spans was made

	arrivals          uint64 // waiters and bookings so far
	smallest, largest int64  // their costs
	newest            int64  // their latest arrival
	ranBack           bool   // the time ran back behind an arrival

	timer    *time.Timer
	wake     int64               // when the timer fires; unset if it is not set
	released *fair.List[*Waiter] // during a call of the timer: those that are still asleep
	// since is the instant of the last change of the state. No waiter is due before it.
	since int64
	plan  *plan // nil until it is asked for
	// lateness is how late the timer was. Newcomers to an empty line are credited with it until creditEnds.
	lateness, creditEnds int64
}

// Lines are the lines of one owner, and the settings that its subjects share.
type Lines struct {
	Lock     *sync.Mutex // the owner's lock; it guards the subjects
	Clock    *clock.Clock
	Weights  []int64 // weights of the classes, each 1 to MaxWeight; empty means one class
	Capacity int     // bound on the callers that wait for one subject
	counts   [ends]atomic.Uint64
}

// now reads the clock, for callers that a panic of the clock must not pass through.
func (q *Lines) now() int64 {
	r, _ := q.Clock.ReadSafely()
	return r.At
}

// lineOf returns the line of s, and begins one if needed.
func (q *Lines) lineOf(s *Subject, now int64) *line {
	if s.line == nil {
		s.line = &line{owner: q, subject: s, smallest: math.MaxInt64, newest: math.MinInt64, since: now, wake: unset}
	}
	return s.line
}

// push adds w at the end of its flow. The caller has set the timer.
func (l *line) push(w *Waiter, flow Flow, weight int64) {
	w.Arrival = l.arrive(w.Cost, w.arrived)
	l.queue.Push(w, &w.Node, l.flowFor(flow), l.owner.weight(flow, weight))
	if l.plan.extends(l) {
		l.plan.add(l, w)
	}
}

// withdraw removes w before its turn. If w was the head, the next waiter is due from now on at the earliest.
func (l *line) withdraw(w *Waiter, now int64) {
	head := l.queue.First() == w
	l.plan.withdrawn(l, w)
	l.left(w)
	l.queue.Withdraw(&w.Node)
	if head {
		l.resume(now)
	}
}

// replan reschedules the line after a change of the state or the limit.
func (l *line) replan(now int64) {
	l.plan.drop()
	l.resume(now)
}

// resume continues with no waiter due before now.
func (l *line) resume(now int64) {
	l.since = max(l.since, now)
	l.ranBack = l.ranBack || now < l.newest
	l.advance(now)
}

// fire runs when the timer fires. It wakes the released waiters after it has released the lock, because each of them
// will take it.
func (l *line) fire() {
	var due fair.List[*Waiter]
	l.owner.Lock.Lock()
	if l.subject.line == l {
		l.wake = unset
		l.released = &due
		now := l.owner.now()
		l.noteLateness(now)
		l.advance(now)
		l.released = nil
	}
	l.owner.Lock.Unlock()
	for w := range due.All {
		close(w.done)
	}
}

// advance releases every waiter whose turn has come and sets the timer for the next one. It ends an empty line,
// unless newcomers still have credit.
func (l *line) advance(now int64) {
	for l.length() > 0 {
		w, from, at := l.next(now)
		switch {
		case w != nil && l.hopeless(w):
			l.release(w, &Refusal{End: TooLarge, Cost: w.Cost, Capacity: l.subject.algorithm.Capacity()})
			l.plan.drop()
		case at > now:
			l.sleep(at)
			return
		default:
			l.spend(w, from, at)
		}
	}
	if now < l.creditEnds {
		l.sleep(l.creditEnds)
		return
	}
	l.end()
}

// noteLateness records how late the timer was. Callers that return at once would have come earlier if they had been
// released in time. An empty line therefore continues its plan where it stopped for callers that come within the
// lateness, so that a late timer (on Linux often by 1 ms) costs no throughput. The credit is at most the lateness and
// at most maxLate.
func (l *line) noteLateness(now int64) {
	if l.length() == 0 || !l.subject.algorithm.Planned() {
		return
	}
	if _, _, at := l.next(now); at < now {
		l.lateness = min(now-at, maxLate)
		l.creditEnds = now + l.lateness
	}
}

const maxLate = int64(10 * time.Millisecond)

// arrival returns the instant that counts as a newcomer's arrival.
func (l *line) arrival(now int64) int64 {
	if l.length() == 0 && now < l.creditEnds {
		return min(now, max(l.since, now-l.lateness))
	}
	return now
}

// next returns the head of the line, which is the first booking if w is nil, the instant of its release, and the instant
// when its units are taken. A limit that plans takes them as of the arrival, as a debt. Taking them at the due instant
// would accumulate its rounding to a nanosecond.
func (l *line) next(now int64) (w *Waiter, from, at int64) {
	s := l.subject
	w = l.queue.First()
	if len(l.bookings) > 0 {
		b := l.bookings[0]
		var p plan
		if p.begin(l, now); w == nil || p.yields(l, w, b) {
			return nil, b.spentAt(s.algorithm), b.promised
		}
	}
	if s.algorithm.Planned() {
		from = max(w.arrived, l.since)
		until := algorithm.UntilDue(s.algorithm, s.State, from, w.Cost)
		return w, s.algorithm.SpendAt(s.State, from, until), algorithm.AddSaturating(from, until)
	}
	return w, now, algorithm.AddSaturating(now, s.algorithm.Wait(s.State, now, w.Cost))
}

// spend takes the units of the head of the line and releases it.
func (l *line) spend(w *Waiter, from, at int64) {
	l.plan.served(l, w, at)
	l.since = max(l.since, at)
	if w == nil {
		l.subject.spend(from, l.unbookFirst().Cost, nil)
		return
	}
	l.left(w)
	l.subject.spend(from, w.Cost, w.lease)
	if l.queue.Serve(&w.Node); l.released != nil {
		l.released.Push(w, &w.Node)
	} else {
		close(w.done)
	}
}

// release ends the wait of w with an error.
func (l *line) release(w *Waiter, err error) {
	l.left(w)
	l.queue.Withdraw(&w.Node)
	w.err = err
	close(w.done)
}

// unset is the wake of a timer that is not set.
const unset = math.MaxInt64

const longestSleep = time.Minute

// sleep makes the timer fire at a later instant or before. The timer then sets itself again, which is cheaper than
// moving it at every change. sleep reads the clock again, because the time of the method may be old, or given by the
// caller.
func (l *line) sleep(at int64) {
	if at >= l.wake {
		return
	}
	r, ok := l.owner.Clock.ReadSafely()
	left := time.Duration(at - r.At)
	switch {
	case !ok:
		left = min(left, clock.Retry)
	case at < algorithm.Never && !l.owner.Clock.Injected(): // it follows a wall clock that jumps ahead, for example after a suspend
		left = min(left, longestSleep)
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(left, l.fire)
	} else {
		l.timer.Reset(left)
	}
	l.wake = at
}

// end removes an empty line, so that an idle subject costs nothing.
func (l *line) end() {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.subject.line = nil
}

// close ends the waits of all callers. Bookings stay, since their instants were promised.
func (l *line) close(now int64) {
	for _, w := range slices.Collect(l.queue.All) {
		l.release(w, ErrClosed)
	}
	l.replan(now)
}

// refusal returns the answer of the methods that do not wait, while callers wait.
func (l *line) refusal(now, n int64) algorithm.Answer {
	a := l.subject.algorithm
	state, from := l.tail(now)
	ahead := from - now
	answer := algorithm.Answer{
		Limit:      a.Capacity(),
		ResetAfter: algorithm.AddSaturating(ahead, a.Wait(state, from, a.Capacity())),
	}
	answer.LimitReset = answer.ResetAfter
	switch {
	case n == 0:
		answer.Allowed = true
	case n > a.Capacity():
		answer.RetryAfter = algorithm.Never
	default:
		until := algorithm.UntilDue(a, state, from, n)
		answer.RetryAfter = max(1, algorithm.AddSaturating(ahead, until))
		answer.ByGap = algorithm.ByGap(a, &state, from, until)
	}
	return answer
}
