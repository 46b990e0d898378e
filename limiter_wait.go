package weir

import (
	"context"
	"time"

	"github.com/weirflow/weir/internal/clock"
	"github.com/weirflow/weir/internal/line"
)

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
// wait. A longer wait is a *WaitError: at once if its length is known, otherwise
// when longest is over.
func (l *Limiter) WaitMax(ctx context.Context, n int64, longest time.Duration) error {
	return l.wait(ctx, Turn{Cost: n, Max: max(longest, 0)})
}

// WaitTurn is WaitN in a class and with a bound.
func (l *Limiter) WaitTurn(ctx context.Context, turn Turn) error {
	turn.Max = turn.longest()
	return l.wait(ctx, turn)
}

func (l *Limiter) wait(ctx context.Context, turn Turn) error {
	if l.unmade() {
		return l.notMade(opWait)
	}
	if err := l.lines.Check(ctx, turn.Cost, turn.Class); err != nil {
		return refusal(opWait, err)
	}
	r := l.clock.Read()
	if allowed, done := l.word.Load().Allow(r.At, turn.Cost); done && allowed {
		return nil
	}
	w, err := l.join(ctx, r, turn)
	if err != nil {
		return refusal(opWait, err)
	}
	if w == nil && turn.Slots == nil {
		return nil
	}
	return turn.await(ctx, &l.lines, l.jitter, l, w)
}

func (l *Limiter) join(ctx context.Context, r clock.Reading, turn Turn) (*line.Waiter, error) {
	s, now := l.lock(r)
	defer l.unlock(now)
	if l.closed {
		return nil, line.ErrClosed
	}
	return l.lines.Join(ctx, s, now, turn.inLine())
}

// Reserve takes cost n for the earliest instant that is at most longest away; use
// Never for no bound. Decision.Delay is how long the caller waits before it goes
// ahead. A Limiter of a window or a log can only be reserved with a longest of 0.
// While callers wait in line, a reservation comes after them, where the limit can
// tell when that is (a bucket, and a line of one class); otherwise it is refused.
// The Reservation is never nil.
func (l *Limiter) Reserve(n int64, longest time.Duration) (*Reservation, error) {
	return l.reserve(l.clock.Read(), n, longest)
}

// ReserveAt is Reserve at a given time.
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

// Close sends the waiting callers away with ErrClosed, and all that come to wait
// later. The verbs that do not wait go on.
func (l *Limiter) Close() {
	if l.unmade() {
		return
	}
	s, now := l.lock(l.clock.Read())
	defer l.mu.Unlock()
	l.closed = true
	l.word.Store(nil) // so that every caller comes to the lock and sees it
	s.Close(now)
}

// Waiting is the number of callers that wait in line.
func (l *Limiter) Waiting() int {
	now := l.clock.Read().At
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.subject.Waiting(now)
}
