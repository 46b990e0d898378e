package weir

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/clock"
	"github.com/weirflow/weir/internal/word"
)

// Limiter holds one limit for one subject, in this process. The verbs differ
// in what they tell: Allow a bool, Take the whole Decision. Peek asks without
// taking, Record counts whatever the answer, Reset forgets.
//
// The plain forms read the clock once; the At forms take the time instead, for
// tests, replays and callers that have it at hand. A time before one that was
// used earlier is never an error and never adds budget. Times must be within
// the years 1678 to 2261, where nanoseconds fit 64 bits.
//
// A negative cost is refused for ever by every verb but Record: AllowN is
// false, and Take and Peek answer the Decision whose Limit is 0.
//
// Wait sleeps until it is the caller's turn, first come, first served; Reserve
// tells an instant to come instead. While anyone waits, Allow and Take refuse:
// nobody overtakes.
//
// A Limiter needs no goroutine and no closing. Make it with New: the zero Limiter
// refuses everything.
type Limiter struct {
	clock *clock.Clock
	word  atomic.Pointer[word.Single]
	queue queue

	mu      sync.Mutex
	limit   Limit
	subject subject
	newest  int64 // reading of the clock
	closed  bool
}

// New makes a Limiter that has seen nothing. Its errors are *LimitError values
// joined.
func New(limit Limit) (*Limiter, error) { return NewWith(limit, Options{}) }

// NewWith is New with options. Wrong options are *OptionError values.
func NewWith(limit Limit, options Options) (*Limiter, error) {
	compiled, err := compile(limit)
	if err := errors.Join(err, options.check()); err != nil {
		return nil, err
	}
	l := &Limiter{clock: clock.New(options.Clock), limit: limit}
	now := l.clock.Prime()
	l.subject = newSubject(compiled, now)
	l.queue = queue{mu: &l.mu, clock: l.clock, options: options}
	l.word.Store(word.NewSingle(compiled, now))
	l.enter(clock.Reading{At: now})
	l.leave(now)
	return l, nil
}

// Allow is AllowN(1).
func (l *Limiter) Allow() bool { return l.allow(l.clock.Read(), 1) }

// AllowN says whether cost n is admitted now, and takes it if so. On a
// LeakyBucket it admits only what need not be delayed: use Take there.
func (l *Limiter) AllowN(n int64) bool { return l.allow(l.clock.Read(), n) }

// AllowAt is AllowN at a given time.
func (l *Limiter) AllowAt(t time.Time, n int64) bool { return l.allow(clock.Given(t), n) }

func (l *Limiter) allow(r clock.Reading, n int64) bool {
	if allowed, done := l.word.Load().Allow(r.At, n); done {
		return allowed
	}
	return l.allowLocked(r, n)
}

// allowLocked is allow the long way, apart from it because a deferred call has
// a price.
func (l *Limiter) allowLocked(r clock.Reading, n int64) bool {
	if l.unmade() {
		return false
	}
	s, now := l.enter(r)
	defer l.leave(now)
	return s.allow(now, n)
}

// Take takes cost n if it is admitted now, and tells all about it.
func (l *Limiter) Take(n int64) Decision { return l.take(l.clock.Read(), n) }

// TakeAt is Take at a given time.
func (l *Limiter) TakeAt(t time.Time, n int64) Decision { return l.take(clock.Given(t), n) }

func (l *Limiter) take(r clock.Reading, n int64) Decision {
	var a algorithm.Answer
	if l.word.Load().Take(r.At, n, &a) {
		return decision(a)
	}
	if l.unmade() {
		return invalidCost
	}
	s, now := l.enter(r)
	defer l.leave(now)
	return s.take(now, n)
}

// Peek tells what Take(n) would, and takes nothing.
func (l *Limiter) Peek(n int64) Decision { return l.peek(l.clock.Read(), n) }

// PeekAt is Peek at a given time.
func (l *Limiter) PeekAt(t time.Time, n int64) Decision { return l.peek(clock.Given(t), n) }

func (l *Limiter) peek(r clock.Reading, n int64) Decision {
	if l.unmade() {
		return invalidCost
	}
	s, now := l.enter(r)
	defer l.leave(now)
	return s.peek(now, n)
}

// Record counts cost n whether it fits or not: the subject may go into debt.
// Allowed says whether it still fitted. A negative n gives units back that were
// taken and not used; the subject never gets better than fresh.
func (l *Limiter) Record(n int64) Decision { return l.record(l.clock.Read(), n) }

// RecordAt is Record at a given time.
func (l *Limiter) RecordAt(t time.Time, n int64) Decision { return l.record(clock.Given(t), n) }

func (l *Limiter) record(r clock.Reading, n int64) Decision {
	if l.unmade() {
		return invalidCost
	}
	s, now := l.enter(r)
	defer l.leave(now)
	return s.record(now, n)
}

// Reset makes the subject as if never seen.
func (l *Limiter) Reset() {
	if l.unmade() {
		return
	}
	s, now := l.enter(l.clock.Read())
	defer l.leave(now)
	s.reset(now)
}

// SetLimit replaces the limit and keeps the units used: a bucket that lacked 3
// units lacks 3 under the new rate, and counts stay counts. Another algorithm
// or another window period starts fresh. Who waits is planned anew, and who can
// never fit any more is told so. If the error is not nil, nothing has changed.
func (l *Limiter) SetLimit(limit Limit) error { return l.setLimit(l.clock.Read(), limit) }

// SetLimitAt is SetLimit at a given time.
func (l *Limiter) SetLimitAt(t time.Time, limit Limit) error {
	return l.setLimit(clock.Given(t), limit)
}

func (l *Limiter) setLimit(r clock.Reading, limit Limit) error {
	if l.unmade() {
		return l.refusal("set limit")
	}
	compiled, err := compile(limit)
	if err != nil {
		return err
	}
	s, now := l.enter(r)
	defer l.leave(now)
	s.setAlgorithm(now, compiled, identity(limit) == identity(l.limit))
	l.limit = limit
	if !l.closed {
		l.word.Store(word.NewSingle(compiled, now))
	}
	return nil
}

// Limit is the limit in force.
func (l *Limiter) Limit() Limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limit
}

// unmade says that l is the zero Limiter.
func (l *Limiter) unmade() bool { return l.clock == nil }

func (l *Limiter) refusal(op string) error { return notMade(op, "limiter", "weir.New") }

// notMade refuses an operation on a zero value.
func notMade(op, what, by string) error {
	return &RequestError{Op: op, Field: what, Reason: "is a zero value: make it with " + by}
}

// visit lets do see the subject under the lock.
func (l *Limiter) visit(do func(s *subject, now int64)) error {
	r, _ := l.clock.ReadSafely()
	s, now := l.enter(r)
	defer l.leave(now)
	do(s, now)
	return nil
}

// enter takes the lock and borrows the state. It tells the time to decide at.
func (l *Limiter) enter(r clock.Reading) (*subject, int64) {
	l.mu.Lock()
	if state, ok := l.word.Load().Borrow(); ok {
		l.subject.state = state
	}
	return &l.subject, r.Latest(&l.newest)
}

// leave gives the state back, unless someone waits or an instant to come was
// told, and the lock.
func (l *Limiter) leave(now int64) {
	defer l.mu.Unlock()
	if s := &l.subject; s.line == nil && s.told <= now {
		l.word.Load().Return(s.state)
	}
}
