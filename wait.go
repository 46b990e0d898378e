package weir

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/clock"
)

// Turn asks for a turn in line.
type Turn struct {
	Cost  int64         // 0 passes at once
	Class int           // index into Options.Weights
	Max   time.Duration // the longest wait; 0 means no bound except the context's, less than 0 no wait
	// Slots, unless it is nil, collects the slots of a Concurrency that the turn
	// acquires, so that the caller can release these and nobody else's. A caller
	// without it releases slots with Record and a negative cost.
	Slots *Slots
}

// Wait is WaitN(ctx, 1).
func (l *Limiter) Wait(ctx context.Context) error { return l.WaitN(ctx, 1) }

// WaitN takes cost n when it is the caller's turn: in order of arrival, or by
// weight between the classes of Options. It returns nil when the cost was
// taken. A caller that leaves before its turn takes nothing. One that leaves
// after it, during Options.Jitter, gives the cost back.
//
// If the context's deadline is before the turn, the wait is refused at once with
// a *WaitError, which is also a context.DeadlineExceeded. A wait for slots of a
// Concurrency is not refused, since they may come back at any time. If the context
// ends meanwhile, the place is given up, those behind move forward, and the error
// wraps the context's. A cost above the capacity is a *CostError, a negative one
// a *RequestError. A full queue is ErrQueueFull. After Close it is ErrClosed.
func (l *Limiter) WaitN(ctx context.Context, n int64) error {
	return l.wait(ctx, Turn{Cost: n, Max: Never})
}

// WaitMax is WaitN for at most longest. With a longest of 0 or less it does not
// wait. A longer wait is a *WaitError: at once if
// its length is known, otherwise when longest is over.
func (l *Limiter) WaitMax(ctx context.Context, n int64, longest time.Duration) error {
	return l.wait(ctx, Turn{Cost: n, Max: max(longest, 0)})
}

// WaitTurn is WaitN in a class and with a bound.
func (l *Limiter) WaitTurn(ctx context.Context, turn Turn) error {
	turn.Max = turn.longest()
	return l.wait(ctx, turn)
}

// longest is the longest wait that t.Max stands for.
func (t Turn) longest() time.Duration {
	if t.Max == 0 {
		return Never
	}
	return max(t.Max, 0)
}

// Close sends everyone who waits away with ErrClosed, and whoever comes to wait
// later. The verbs that do not wait go on.
func (l *Limiter) Close() {
	if l.unmade() {
		return
	}
	s, now := l.enter(l.clock.Read())
	defer l.mu.Unlock()
	l.closed = true
	l.word.Store(nil) // so that everyone comes to the lock and sees it
	if s.line != nil {
		s.line.close(now, ErrClosed)
	}
}

// Waiting is how many wait in line.
func (l *Limiter) Waiting() int {
	now := l.clock.Read().At
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.subject.waiters(now)
}

func (l *Limiter) wait(ctx context.Context, turn Turn) error {
	if l.unmade() {
		return l.refusal(opWait)
	}
	if err := l.queue.check(ctx, turn); err != nil {
		return err
	}
	r := l.clock.Read()
	if allowed, done := l.word.Load().Allow(r.At, turn.Cost); done && allowed {
		return nil
	}
	w, err := l.join(ctx, r, turn)
	if w != nil {
		err = l.queue.await(ctx, w, turn.Max)
	}
	if err == nil && (w != nil || turn.Slots != nil) {
		err = l.queue.granted(ctx, l, turn, w != nil)
	}
	return err
}

func (l *Limiter) join(ctx context.Context, r clock.Reading, turn Turn) (*waiter, error) {
	s, now := l.enter(r)
	defer l.leave(now)
	if l.closed {
		return nil, ErrClosed
	}
	return l.queue.enter(ctx, s, now, turn)
}

// check refuses what needs no look at the state.
func (q *queue) check(ctx context.Context, turn Turn) error {
	if err := ctx.Err(); err != nil {
		return waitEnded(err)
	}
	if turn.Cost < 0 {
		return &RequestError{Op: opWait, Field: "cost", Reason: fmt.Sprintf("%d is negative", turn.Cost)}
	}
	if turn.Class < 0 || turn.Class >= max(1, len(q.options.Weights)) {
		return &RequestError{Op: opWait, Field: "class", Reason: fmt.Sprintf("%d is not an index of %d weights", turn.Class, len(q.options.Weights))}
	}
	return nil
}

// enter passes s at once if nobody waits and the cost fits, or joins its line.
// If there is neither a waiter nor an error, the cost was taken.
func (q *queue) enter(ctx context.Context, s *subject, now int64, turn Turn) (*waiter, error) {
	n := turn.Cost
	if n > s.algorithm.Capacity() {
		return nil, &CostError{Op: opWait, Cost: n, Capacity: s.algorithm.Capacity()}
	}
	waiting := s.waiting(now)
	if n == 0 || s.line == nil && s.pass(now, turn) {
		return nil, nil
	}
	if err := q.refuse(ctx, s, now, turn); err != nil {
		return nil, err
	}
	line := q.lineOf(s, now)
	w := &waiter{subject: s, n: n, arrived: line.arrival(now), class: turn.Class, done: make(chan error, 1), held: turn.Slots}
	line.join(w)
	if !waiting || len(q.options.Weights) > 1 {
		line.advance(now)
	}
	return w, nil
}

// pass takes a turn if it need not be held back.
func (s *subject) pass(now int64, t Turn) bool {
	if algorithm.Hold(s.algorithm, s.state, now, t.Cost) > 0 || s.algorithm.Wait(s.state, now, t.Cost) > 0 {
		return false
	}
	s.spend(now, t.Cost, t.Slots)
	return true
}

// refuse says why a turn must not join the line: the line is full, or longer
// than the caller can wait. Slots may come back at any time, so they refuse only
// callers that cannot wait at all.
func (q *queue) refuse(ctx context.Context, s *subject, now int64, turn Turn) error {
	if s.line != nil && s.line.length >= q.options.queue() {
		return ErrQueueFull
	}
	bound, deadline := turn.Max, false
	if end, ok := ctx.Deadline(); ok {
		if left := time.Until(end); left < bound {
			bound, deadline = left, true
		}
	}
	if bound == Never && !algorithm.Delays(s.algorithm) || bound > 0 && algorithm.Leases(s.algorithm) {
		return nil
	}
	hold, room := s.ahead(now, turn)
	if !room {
		return ErrQueueFull
	}
	if need := time.Duration(hold); need > bound {
		return &WaitError{Need: need, Bound: bound, deadline: deadline}
	}
	return nil
}

// ahead is how long a turn would have to wait if nobody else came, and whether a
// limit with a queue of its own has room for it.
func (s *subject) ahead(now int64, t Turn) (hold int64, room bool) {
	state, from := s.state, now
	if s.line != nil {
		state, from = s.line.plan.tail(s.line, now)
	}
	if algorithm.Delays(s.algorithm) && s.algorithm.Wait(state, now, t.Cost) > 0 {
		return 0, false
	}
	if s.line != nil {
		state, from = s.line.turn(now, t)
	}
	return saturatingAdd(from-now, algorithm.Hold(s.algorithm, state, from, t.Cost)), true
}

// await sleeps until w is let go, the context ends or the longest wait is over.
func (q *queue) await(ctx context.Context, w *waiter, longest time.Duration) error {
	var over <-chan time.Time // never, where there is no bound
	if longest < Never {
		timer := time.NewTimer(longest)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case err := <-w.done:
		return err
	case <-ctx.Done():
		return q.leave(w, waitEnded(ctx.Err()))
	case <-over:
		return q.leave(w, &WaitError{Need: Never, Bound: longest})
	}
}

// leave takes w out of its line, unless it was let go meanwhile.
func (q *queue) leave(w *waiter, why error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	now, _ := q.now()
	if w.queued {
		w.subject.line.advance(now) // the turn may have come at this very instant
	}
	if w.queued {
		w.subject.line.leave(w, now)
		return why
	}
	return <-w.done
}

// granted ends a turn that was let go, and holds it back by the jitter if it had
// to wait. A caller that leaves meanwhile gives the units back.
func (q *queue) granted(ctx context.Context, o owner, turn Turn, waited bool) error {
	if waited && q.options.Jitter > 0 {
		timer := time.NewTimer(rand.N(q.options.Jitter))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			giveBack(o, turn.Cost, turn.Slots.who())
			return waitEnded(ctx.Err())
		}
	}
	turn.Slots.keep(o, turn.Cost)
	return nil
}

func waitEnded(err error) error { return fmt.Errorf("weir: wait: %w", err) }

// waiters is how many wait, bookings not counted.
func (s *subject) waiters(now int64) int {
	if !s.waiting(now) {
		return 0
	}
	return s.line.length - s.line.bookings
}
