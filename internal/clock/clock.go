// Package clock reads the time of decisions, in nanoseconds since the Unix epoch. New returns a Clock, and Clock.Read
// reads it once for each decision.
package clock

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Clock reads nanoseconds since the Unix epoch: the wall clock at its creation plus the monotonic clock since. About
// once a second it checks the wall clock. If the wall clock is more than a second ahead, because the machine slept or
// its clock was set, Clock jumps forward to it. Clock never runs backwards. When it is ahead of the wall clock, it
// runs at 7/8 speed until they meet.
//
// An injected source replaces all of this.
type Clock struct {
	now   func() int64 // reads the monotonic clock once, or the source
	own   bool         // no source was injected
	start int64        // the wall clock at creation

	machine  func() (since, wall int64) // reads the monotonic and the wall clock
	stretch  atomic.Pointer[stretch]
	checking sync.Mutex // held to check the wall clock

	lastSafe atomic.Int64 // the last reading of an injected source by ReadSafely
}

// New returns a clock that reads source, or a default clock if source is nil.
func New(source func() int64) *Clock {
	if source != nil {
		return &Clock{now: source, start: wallNow(), machine: func() (int64, int64) { return 0, wallNow() }}
	}
	start := time.Now()
	c := NewOn(func() (since, wall int64) {
		now := time.Now()
		return int64(now.Sub(start)), now.UnixNano()
	})
	c.now = func() int64 {
		since := int64(time.Since(start))
		if at, ok := c.stretch.Load().atFullSpeed(since); ok {
			return at
		}
		return c.at(since)
	}
	return c
}

func wallNow() int64 { return time.Now().UnixNano() }

// NewOn returns a default clock over the given machine clocks, for tests.
func NewOn(machine func() (since, wall int64)) *Clock {
	since, wall := machine()
	c := &Clock{own: true, start: wall, machine: machine}
	c.stretch.Store(newStretch(since, wall, wall))
	c.now = func() int64 {
		since, _ := machine()
		return c.at(since)
	}
	return c
}

// Monotonic makes a default clock never check the wall clock again, and returns it.
func Monotonic(c *Clock) *Clock {
	c.stretch.Load().covers.Store(math.MaxUint64)
	return c
}

// Now returns the time. It reads the monotonic clock once.
func (c *Clock) Now() int64 { return c.now() }

// Injected reports whether the time comes from a source of the caller.
func (c *Clock) Injected() bool { return !c.own }

// MadeAt returns the wall clock at the creation of c.
func (c *Clock) MadeAt() int64 { return c.start }

// Begin sets a default clock to an instant, before the first reading.
func (c *Clock) Begin(at int64) {
	c.stretch.Store(newStretch(c.stretch.Load().from, at, c.start))
}

// Pair is a simultaneous reading of a Clock and of the wall clock.
type Pair struct{ Clock, Wall int64 }

// Pair reads this clock and the wall clock.
func (c *Clock) Pair() Pair {
	_, wall := c.machine()
	return Pair{Clock: c.now(), Wall: wall}
}

// At returns the time of the clock at a time of the wall clock.
func (p Pair) At(wall int64) int64 {
	if wall <= p.Wall {
		return p.Clock
	}
	passed := min(uint64(wall)-uint64(p.Wall), math.MaxInt64)
	if p.Clock > math.MaxInt64-int64(passed) {
		return math.MaxInt64
	}
	return p.Clock + int64(passed)
}

// at returns the time at a monotonic reading. It never uses a stretch that does not cover the reading, so no
// goroutine has read a time after the start of the next stretch.
func (c *Clock) at(since int64) int64 {
	if s := c.stretch.Load(); s.covered(since) {
		return s.at(since)
	}
	return c.check(since)
}

// check extends the stretch by a second or begins another stretch.
func (c *Clock) check(since int64) int64 {
	c.checking.Lock()
	defer c.checking.Unlock()
	s := c.stretch.Load()
	if !s.covered(since) {
		if now, wall := c.machine(); s.leadsTo(now, wall) {
			s.covers.Store(uint64(now - s.from + checkEvery))
		} else {
			s = newStretch(now, s.at(now), wall)
			c.stretch.Store(s)
		}
	}
	return s.at(since)
}

// checkEvery is the time between two checks of the wall clock, and the lead of the wall clock that Clock tolerates.
const checkEvery = int64(time.Second)

// stretch is a part of a clock's course. It begins at a monotonic reading and an instant, and runs slowly at first
// and then at full speed.
type stretch struct {
	from   int64         // monotonic reading
	base   int64         // the time then
	slow   int64         // how long it runs at 7/8 speed
	covers atomic.Uint64 // monotonic time from the start to the next check
}

// newStretch returns a stretch that begins when the clock reads ours and the wall clock reads wall.
func newStretch(from, ours, wall int64) *stretch {
	s := &stretch{from: from, base: ours}
	switch ahead := ours - wall; {
	case ahead > math.MaxInt64/slowBy:
		s.slow = math.MaxInt64
	case ahead > 0:
		s.slow = ahead * slowBy
	case ahead < -checkEvery:
		s.base = wall
	}
	s.covers.Store(uint64(checkEvery))
	return s
}

// leadsTo reports whether the stretch may continue when the wall clock reads wall.
func (s *stretch) leadsTo(now, wall int64) bool {
	ahead := s.at(now) - wall
	if s.slow == 0 {
		return -checkEvery <= ahead && ahead <= 0
	}
	left := s.slow - (now - s.from)
	return left > 0 && ahead == (left+slowBy-1)/slowBy
}

// slowBy is how long a slow clock takes to lose one unit.
const slowBy = 8

// atFullSpeed returns what at returns, if the stretch runs at full speed and covers the reading. The compiler can inline
// it, and every decision reads the clock here.
func (s *stretch) atFullSpeed(since int64) (at int64, ok bool) {
	passed := since - s.from
	return s.base + passed, s.slow == 0 && uint64(passed) < s.covers.Load()
}

// covered reports whether a reading is before the next check.
func (s *stretch) covered(since int64) bool {
	return since < s.from || uint64(since-s.from) < s.covers.Load()
}

// at returns the time at a monotonic reading. It takes a reading before the start as the start: a goroutine read the
// monotonic clock just before another goroutine began the stretch.
func (s *stretch) at(since int64) int64 {
	passed := max(since-s.from, 0)
	return s.base + passed - min(passed, s.slow)/slowBy
}

// Reading is the time of a decision.
type Reading struct {
	At int64
	// Default is true for a reading of a default clock. If a later reading has already been used when the caller gets
	// the lock, the decision is made at that later time, as if it had been read under the lock. The time of a caller
	// or of an injected clock is used unchanged.
	Default bool
}

// Given returns the reading for a time that the caller passed.
func Given(t time.Time) Reading { return Reading{At: t.UnixNano()} }

// Read reads the clock. A nil clock, as in a zero value, reads 0.
func (c *Clock) Read() Reading {
	if c == nil {
		return Reading{}
	}
	return c.Reading(c.now())
}

// Reading returns the reading for a time that Now returned.
func (c *Clock) Reading(at int64) Reading { return Reading{at, c.own} }

// Latest returns the time of a decision. newest is the newest reading of a default clock that was used under the
// lock, which the caller holds.
func (r Reading) Latest(newest *int64) int64 {
	if !r.Default {
		return r.At
	}
	*newest = max(*newest, r.At)
	return *newest
}

// ReadSafely reads the clock for timers and for callers that hold a lock. There, a panic of an injected clock would
// end the program or leave waiting callers without a timer. ReadSafely instead returns the reading before it and
// false.
func (c *Clock) ReadSafely() (r Reading, ok bool) {
	if c.own {
		return c.Read(), true
	}
	r.At = c.lastSafe.Load()
	defer func() { _ = recover() }()
	r.At = c.now()
	c.lastSafe.Store(r.At)
	return r, true
}

// Prime reads an injected clock for the first time, so that ReadSafely has an earlier reading to return. A panic of
// the clock reaches the caller.
func (c *Clock) Prime() int64 {
	now := c.now()
	c.lastSafe.Store(now)
	return now
}

// Retry is how long a timer waits before it reads an injected clock again that panicked.
const Retry = 10 * time.Millisecond
