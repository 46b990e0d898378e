package weir

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/clock"
	"github.com/weirflow/weir/internal/line"
	"github.com/weirflow/weir/internal/word"
)

// Limiter holds one limit for one subject, in this process. Allow
// returns a bool, Take the whole Decision. Peek asks without taking, Record counts
// whatever the answer, Reset forgets.
//
// The plain forms read the clock once; the At forms take the time instead, for
// tests, replays and callers that have it at hand. A time before one that was
// used earlier is never an error and never adds budget. Times must be within
// the years 1678 to 2261, where nanoseconds fit 64 bits.
//
// Every verb but Record refuses a negative cost: AllowN is false, and Take and
// Peek return a Decision whose Limit is 0.
//
// Wait sleeps until it is the caller's turn, first come, first served; Reserve
// reserves a later instant instead. While callers wait, Allow and Take refuse:
// nobody overtakes.
//
// A Limiter needs no goroutine and no closing. Make it with New: the zero Limiter
// refuses everything.
type Limiter struct {
	clock  *clock.Clock
	word   atomic.Pointer[word.Single]
	lines  line.Lines
	jitter time.Duration

	mu      sync.Mutex
	limit   Limit
	subject line.Subject
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
	l := &Limiter{clock: clock.New(options.Clock), limit: limit, jitter: options.Jitter}
	now := l.clock.Prime()
	l.subject = line.NewSubject(compiled, now, 0)
	l.lines = options.lines(&l.mu, l.clock)
	l.word.Store(word.NewSingle(compiled, now))
	l.lock(clock.Reading{At: now})
	l.unlock(now)
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
	return l.allowUnderLock(r, n)
}

// allowUnderLock is allow of a state that is not in the word. It is a function
// of its own because a deferred call has a price.
func (l *Limiter) allowUnderLock(r clock.Reading, n int64) bool {
	if l.unmade() {
		return false
	}
	s, now := l.lock(r)
	defer l.unlock(now)
	return s.Allow(now, n)
}

// Take takes cost n if it is admitted now.
func (l *Limiter) Take(n int64) Decision { return l.take(l.clock.Read(), n) }

// TakeAt is Take at a given time.
func (l *Limiter) TakeAt(t time.Time, n int64) Decision { return l.take(clock.Given(t), n) }

func (l *Limiter) take(r clock.Reading, n int64) Decision {
	var a algorithm.Answer
	if l.word.Load().Take(r.At, n, &a) {
		return decision(a)
	}
	return l.decide(r, n, (*line.Subject).Take)
}

// verb is what a Subject does with a cost.
type verb func(s *line.Subject, now, n int64) algorithm.Answer

// decide asks the subject under the lock.
func (l *Limiter) decide(r clock.Reading, n int64, v verb) (d Decision) {
	if l.unmade() {
		return invalidCost
	}
	s, now := l.lock(r)
	defer l.unlock(now)
	a := v(s, now, n)
	d.describe(&a)
	return d
}

// TakeUpTo takes as many units as are admitted now, n at most, in one decision.
// It returns how many; 0 is a refusal, and the Decision then describes that of
// one unit. While callers wait it takes nothing.
func (l *Limiter) TakeUpTo(n int64) (taken int64, d Decision) {
	d = l.decide(l.clock.Read(), n, func(s *line.Subject, now, n int64) (a algorithm.Answer) {
		taken, a = s.TakeUpTo(now, n)
		return a
	})
	return taken, d
}

// Peek returns what Take(n) would, and takes nothing.
func (l *Limiter) Peek(n int64) Decision {
	return l.decide(l.clock.Read(), n, (*line.Subject).Peek)
}

// PeekAt is Peek at a given time.
func (l *Limiter) PeekAt(t time.Time, n int64) Decision {
	return l.decide(clock.Given(t), n, (*line.Subject).Peek)
}

// Record counts cost n whether it fits or not: the subject may go into debt.
// Allowed says whether it still fitted. A negative n gives units back that were
// taken and not used; the subject never gets better than fresh.
func (l *Limiter) Record(n int64) Decision {
	return l.decide(l.clock.Read(), n, (*line.Subject).Record)
}

// RecordAt is Record at a given time.
func (l *Limiter) RecordAt(t time.Time, n int64) Decision {
	return l.decide(clock.Given(t), n, (*line.Subject).Record)
}

// Reset makes the subject as if never seen.
func (l *Limiter) Reset() {
	if l.unmade() {
		return
	}
	s, now := l.lock(l.clock.Read())
	defer l.unlock(now)
	s.Reset(now)
}

// SetLimit replaces the limit and keeps the units used: a bucket that lacked 3
// units lacks 3 under the new rate, and counts stay counts. Another algorithm
// or another window period starts fresh. Waiting callers are planned anew, and those
// whose cost can no longer fit get a *CostError. If the error is not nil, nothing
// has changed.
func (l *Limiter) SetLimit(limit Limit) error { return l.setLimit(l.clock.Read(), limit) }

// SetLimitAt is SetLimit at a given time.
func (l *Limiter) SetLimitAt(t time.Time, limit Limit) error {
	return l.setLimit(clock.Given(t), limit)
}

func (l *Limiter) setLimit(r clock.Reading, limit Limit) error {
	if l.unmade() {
		return l.notMade("set limit")
	}
	compiled, err := compile(limit)
	if err != nil {
		return err
	}
	s, now := l.lock(r)
	defer l.unlock(now)
	s.SetAlgorithm(now, compiled, identity(limit) == identity(l.limit))
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

func (l *Limiter) notMade(op string) error { return notMade(op, "limiter", "weir.New") }

// notMade refuses an operation on a zero value.
func notMade(op, what, by string) error {
	return &RequestError{Op: op, Field: what, Reason: "is a zero value: make it with " + by}
}

func (l *Limiter) withSubject(do func(s *line.Subject, now int64)) error {
	r, _ := l.clock.ReadSafely()
	s, now := l.lock(r)
	defer l.unlock(now)
	do(s, now)
	return nil
}

// lock takes the lock and borrows the state from the word. It returns the time to
// decide at.
func (l *Limiter) lock(r clock.Reading) (*line.Subject, int64) {
	l.mu.Lock()
	if state, ok := l.word.Load().Borrow(); ok {
		l.subject.State = state
	}
	return &l.subject, r.Latest(&l.newest)
}

// unlock puts the state back into the word, if it is the whole subject, and gives
// back the lock.
func (l *Limiter) unlock(now int64) {
	defer l.mu.Unlock()
	if l.subject.AtRest(now) {
		l.word.Load().Return(l.subject.State)
	}
}
