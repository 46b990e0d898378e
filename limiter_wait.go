package weir

import (
	"context"
	"time"

	"github.com/weirflow/weir/internal/clock"
	"github.com/weirflow/weir/internal/line"
)

// Wait waits for the caller's turn and takes cost 1: see WaitN.
func (l *Limiter) Wait(ctx context.Context) error { return l.WaitN(ctx, 1) }

// WaitN waits for the caller's turn and takes cost n. Turns are in order of arrival, or by weight between the classes
// of Options. WaitN returns nil when it has taken the cost. A caller that leaves before its turn takes nothing. A
// caller that leaves after it, during Options.Jitter, gives the cost back.
//
// If the context's deadline is before the turn, WaitN returns a *WaitError at once, which is also a
// context.DeadlineExceeded. If callers of other classes or flows wait, the turn may come later than WaitN assumes; then
// the error comes at the deadline. WaitN does not refuse a wait for slots of a Concurrency, since these may be released at any
// time. If the context ends during the wait, the caller loses its place, later callers move forward, and the error
// wraps the context's. A cost above the capacity is a *CostError, and a negative cost a *RequestError. A full queue
// is ErrQueueFull. After Close the error is ErrClosed.
func (l *Limiter) WaitN(ctx context.Context, n int64) error {
	return l.wait(ctx, Turn{Cost: n, Max: Never})
}

// WaitMax works like WaitN with a maximum wait. With a longest of 0 or less it does not wait. A longer wait is a
// *WaitError: at once if its length is known, otherwise after longest.
func (l *Limiter) WaitMax(ctx context.Context, n int64, longest time.Duration) error {
	return l.wait(ctx, Turn{Cost: n, Max: max(longest, 0)})
}

// WaitTurn works like WaitN with a class and a maximum wait.
func (l *Limiter) WaitTurn(ctx context.Context, turn Turn) error {
	turn.Max = turn.longest()
	return l.wait(ctx, turn)
}

func (l *Limiter) wait(ctx context.Context, turn Turn) error {
	if l.unmade() {
		return l.notMade(opWait)
	}
	if err := l.lines.Check(ctx, turn.Cost, turn.Class, turn.Weight); err != nil {
		return refusal(opWait, err)
	}
	r, w := l.clock.Read(), l.word.Load()
	if need, done := w.Within(r.At, turn.Cost, line.Alone(ctx, int64(turn.Max))); done {
		return turn.late(&l.lines, need)
	}
	if allowed, _ := w.Allow(r.At, turn.Cost); allowed {
		return nil
	}
	waiter, err := l.join(ctx, r, turn)
	if err != nil {
		return refusal(opWait, err)
	}
	return await(ctx, turn, &l.lines, l.jitter, l, waiter)
}

func (l *Limiter) join(ctx context.Context, r clock.Reading, turn Turn) (*line.Waiter, error) {
	s, now := l.lock(r)
	defer l.unlock(now)
	if l.closed {
		return nil, l.lines.Count(line.ErrClosed)
	}
	return l.lines.Join(ctx, s, now, turn.inLine())
}

// Reserve takes cost n for the earliest instant within longest; Never means no bound. The caller waits for
// Decision.Delay before it goes ahead. A window or a log can only be reserved with a longest of 0. While callers
// wait, the reservation comes after them if its instant is known, as for a bucket with one class; otherwise it is
// refused. The Reservation is never nil.
func (l *Limiter) Reserve(n int64, longest time.Duration) (*Reservation, error) {
	return l.reserve(l.clock.Read(), n, longest)
}

// ReserveAt works like Reserve at a given time.
func (l *Limiter) ReserveAt(t time.Time, n int64, longest time.Duration) (*Reservation, error) {
	return l.reserve(clock.Given(t), n, longest)
}

func (l *Limiter) reserve(r clock.Reading, n int64, longest time.Duration) (*Reservation, error) {
	if l.unmade() {
		return &Reservation{}, l.notMade(opReserve)
	}
	s, now := l.lock(r)
	defer l.unlock(now)
	return newBooking(l, s, now, n, longest)
}

// Close ends the waits of waiting and later callers with ErrClosed. The other methods continue to work.
func (l *Limiter) Close() {
	if l.unmade() {
		return
	}
	s, now := l.lock(l.clock.Read())
	defer l.mu.Unlock()
	l.closed = true
	l.word.Store(nil) // sends every caller to the lock, where it sees the close
	s.Close(now)
}

// WaitStats returns the statistics of the waiting callers.
func (l *Limiter) WaitStats() WaitStats {
	var s line.Stats
	if !l.unmade() {
		now := l.clock.Read().At
		l.mu.Lock()
		defer l.mu.Unlock()
		l.subject.AddTo(&s, now)
		l.lines.AddTo(&s)
	}
	return waitStats(&s)
}
