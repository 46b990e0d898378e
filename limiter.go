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

// Limiter holds one limit for one subject, in this process.
//
// Allow returns a bool; Take returns the full Decision. Peek decides without consuming anything. Record consumes
// units even when they do not fit. Reset clears the limiter.
//
// The plain methods read the clock once. The At methods take the time instead, for tests, replays and callers that
// already have it; Options.Clock gives it to all methods. An earlier time than the last is not an error and never adds units. Times must be within the years
// 1678 to 2261, where nanoseconds fit 64 bits.
//
// Every method refuses a negative cost: AllowN returns false, and the others return a Decision whose Limit is 0. Return
// gives units back.
//
// Wait blocks until the limit admits the caller, in order of arrival. Reserve reserves a later instant instead. While
// callers wait, Allow and Take refuse, so that no caller overtakes.
//
// A Limiter needs no goroutine and no Close. Make it with New: the zero Limiter refuses everything. It is safe for
// concurrent use.
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

// New returns an unused Limiter. Its errors are joined *LimitError values.
func New(limit Limit) (*Limiter, error) { return NewWith(limit, Options{}) }

// NewWith works like New with options. Invalid options are *OptionError values.
func NewWith(limit Limit, options Options) (*Limiter, error) {
	compiled, err := compileAlone(limit)
	if err := errors.Join(err, options.check()); err != nil {
		return nil, err
	}
	l := &Limiter{clock: clock.New(options.Clock), limit: limit, jitter: options.Jitter}
	now := l.clock.Prime()
	l.subject = line.NewSubject(compiled, now)
	l.lines = options.lines(&l.mu, l.clock)
	l.word.Store(word.NewSingle(compiled, now))
	l.lock(clock.Reading{At: now})
	l.unlock(now)
	return l, nil
}

// Allow reports whether cost 1 is admitted now, and takes it if so.
func (l *Limiter) Allow() bool { return l.AllowN(1) }

// AllowN reports whether cost n is admitted now, and takes it if so. With a LeakyBucket it admits only a cost that
// needs no delay; use Take there.
func (l *Limiter) AllowN(n int64) bool {
	if l.unmade() {
		return false
	}
	now := l.clock.Now() // the fast path is quicker without a Reading
	if allowed, done := l.word.Load().Allow(now, n); done {
		return allowed
	}
	return l.allowUnderLock(l.clock.Reading(now), n)
}

// AllowAt works like AllowN at a given time.
func (l *Limiter) AllowAt(t time.Time, n int64) bool {
	r := clock.Given(t)
	if allowed, done := l.word.Load().Allow(r.At, n); done {
		return allowed
	}
	return l.allowUnderLock(r, n)
}

// allowUnderLock decides on a state that is not in the word. It is a separate function because a deferred call costs
// time.
func (l *Limiter) allowUnderLock(r clock.Reading, n int64) bool {
	if l.unmade() {
		return false
	}
	s, now := l.lock(r)
	defer l.unlock(now)
	return s.Allow(now, n)
}

// Take takes cost n if it is admitted now.
func (l *Limiter) Take(n int64) (d Decision) { l.take(l.clock.Read(), n, &d); return d }

// TakeAt works like Take at a given time.
func (l *Limiter) TakeAt(t time.Time, n int64) (d Decision) { l.take(clock.Given(t), n, &d); return d }

func (l *Limiter) take(r clock.Reading, n int64, d *Decision) {
	var a algorithm.Answer
	if l.word.Load().Take(r.At, n, &a) {
		d.describe(&a)
		return
	}
	*d = l.decide(r, n, (*line.Subject).Take)
}

// verb is an operation of a Subject with a cost.
type verb func(s *line.Subject, now, n int64) algorithm.Answer

// decide calls v on the subject under the lock.
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

// TakeUpTo takes up to n units, as many as are admitted now, in one decision. It returns that number; 0 is a refusal,
// and the Decision then describes the refusal of one unit. While callers wait it takes nothing.
func (l *Limiter) TakeUpTo(n int64) (taken int64, d Decision) {
	d = l.decide(l.clock.Read(), n, func(s *line.Subject, now, n int64) (a algorithm.Answer) {
		taken, a = s.TakeUpTo(now, n)
		return a
	})
	return taken, d
}

// Peek returns the answer that Take would give, without taking anything.
func (l *Limiter) Peek(n int64) Decision { return l.decide(l.clock.Read(), n, (*line.Subject).Peek) }

// PeekAt works like Peek at a given time.
func (l *Limiter) PeekAt(t time.Time, n int64) Decision {
	return l.decide(clock.Given(t), n, (*line.Subject).Peek)
}

// Record counts cost n even if it does not fit: the subject may go into debt. Allowed reports whether it fitted.
func (l *Limiter) Record(n int64) Decision { return l.decide(l.clock.Read(), n, recorded) }

// Return gives back n units that were taken and not used. The subject never gets better than fresh.
func (l *Limiter) Return(n int64) Decision { return l.decide(l.clock.Read(), n, returned) }

// recorded and returned refuse a negative cost.
func recorded(s *line.Subject, now, n int64) algorithm.Answer {
	if n < 0 {
		return line.Never
	}
	return s.Record(now, n)
}

func returned(s *line.Subject, now, n int64) algorithm.Answer {
	if n < 0 {
		return line.Never
	}
	return s.Record(now, -n)
}

// Reset clears the subject.
func (l *Limiter) Reset() {
	if l.unmade() {
		return
	}
	s, now := l.lock(l.clock.Read())
	defer l.unlock(now)
	s.Reset(now)
}

// SetLimit replaces the limit and keeps the units used: a bucket that lacked 3 units lacks 3 under the new rate, and
// counts stay. A Bursty and a WarmUp pay for earlier calls at the old rate, as in Guava. Another algorithm or another
// window period starts afresh. Waiting callers are rescheduled, and callers whose cost can no longer fit get a
// *CostError. After an error, nothing has changed.
func (l *Limiter) SetLimit(limit Limit) error {
	if l.unmade() {
		return l.notMade("set limit")
	}
	compiled, err := compileAlone(limit)
	if err != nil {
		return err
	}
	s, now := l.lock(l.clock.Read())
	defer l.unlock(now)
	s.SetAlgorithm(now, compiled, identity(limit) == identity(l.limit))
	l.limit = limit
	if !l.closed {
		l.word.Store(word.NewSingle(compiled, now))
	}
	return nil
}

// Limit returns the limit in force.
func (l *Limiter) Limit() Limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limit
}

// unmade reports whether l is the zero Limiter.
func (l *Limiter) unmade() bool { return l.clock == nil }

func (l *Limiter) notMade(op string) error { return notMade(op, "limiter", "weir.New") }

// notMade returns the error of an operation on a zero value.
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

// lock takes the lock and borrows the state from the word. It returns the time of the decision.
func (l *Limiter) lock(r clock.Reading) (*line.Subject, int64) {
	l.mu.Lock()
	if l.word.Load().Borrow(&l.subject.State) {
		l.subject.Restored()
	}
	return &l.subject, r.Latest(&l.newest)
}

// unlock returns the state to the word if it is the whole subject, and releases the lock.
func (l *Limiter) unlock(now int64) {
	defer l.mu.Unlock()
	if l.subject.AtRest(now) {
		l.word.Load().Return(&l.subject.State, now)
	}
}
