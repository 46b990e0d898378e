// Package clock is the time that decisions are made at: nanoseconds since the
// Unix epoch, read once for each decision. New makes a clock, Read reads it.
package clock

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Clock tells nanoseconds since the Unix epoch: the wall clock when it was made
// plus the monotonic clock since. About once a second it looks at the wall
// clock. If that is ahead by more than a second (the machine slept, or its clock
// was set) it moves forward to it. It never moves back: ahead of the wall, after
// a jump that was corrected, it runs at 7/8 speed until they meet.
//
// An injected source is taken as it is instead.
type Clock struct {
	now   func() int64 // reads the monotonic clock once, or the source
	own   bool         // no source was injected
	start int64        // the wall clock when it was made

	machine func() (since, wall int64) // reads the monotonic and the wall clock
	stretch atomic.Pointer[stretch]
	looking sync.Mutex // held to look at the wall clock

	told atomic.Int64 // the last reading of ReadSafely, if a source was injected
}

// New makes a clock of a source, or a default clock if the source is nil.
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
		if at, ok := c.stretch.Load().quick(since); ok {
			return at
		}
		return c.at(since)
	}
	return c
}

func wallNow() int64 { return time.Now().UnixNano() }

// NewOn makes a default clock of what machine reads. The machine is for tests.
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

// Now is the time. It reads the monotonic clock once.
func (c *Clock) Now() int64 { return c.now() }

// Injected says that the time comes from a source of the caller.
func (c *Clock) Injected() bool { return !c.own }

// MadeAt is what the wall clock said when c was made.
func (c *Clock) MadeAt() int64 { return c.start }

// Begin sets a default clock, before anyone reads it, to the instant that it is
// made at.
func (c *Clock) Begin(at int64) {
	c.stretch.Store(newStretch(c.stretch.Load().from, at, c.start))
}

// Pair is what a clock and the wall clock said at one moment.
type Pair struct{ Clock, Wall int64 }

// Pair reads this clock and the wall clock.
func (c *Clock) Pair() Pair {
	_, wall := c.machine()
	return Pair{Clock: c.now(), Wall: wall}
}

// At is the time of the clock when the wall clock says wall.
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

// at is the time of a monotonic reading. A reading that a stretch does not cover
// never uses it, so the next stretch starts where no goroutine has been yet.
func (c *Clock) at(since int64) int64 {
	if s := c.stretch.Load(); s.within(since) {
		return s.at(since)
	}
	return c.look(since)
}

// look extends the stretch by a second, or begins another.
func (c *Clock) look(since int64) int64 {
	c.looking.Lock()
	defer c.looking.Unlock()
	s := c.stretch.Load()
	if !s.within(since) {
		if now, wall := c.machine(); s.leadsTo(now, wall) {
			s.covers.Store(uint64(now - s.from + lookEvery))
		} else {
			s = newStretch(now, s.at(now), wall)
			c.stretch.Store(s)
		}
	}
	return s.at(since)
}

// lookEvery is the time between two looks at the wall clock, and how far that
// may be ahead.
const lookEvery = int64(time.Second)

// stretch is a part of a clock's course: from a monotonic reading on it goes on
// from an instant, slowly at first and then at full speed.
type stretch struct {
	from   int64         // monotonic reading
	base   int64         // the time then
	slow   int64         // how long it runs at 7/8 speed
	covers atomic.Uint64 // monotonic time from its start to the next look
}

// newStretch begins where the clock says ours and the wall clock wall.
func newStretch(from, ours, wall int64) *stretch {
	s := &stretch{from: from, base: ours}
	switch ahead := ours - wall; {
	case ahead > math.MaxInt64/slowBy:
		s.slow = math.MaxInt64
	case ahead > 0:
		s.slow = ahead * slowBy
	case ahead < -lookEvery:
		s.base = wall
	}
	s.covers.Store(uint64(lookEvery))
	return s
}

// leadsTo says that the stretch need not change where the wall clock says wall.
func (s *stretch) leadsTo(now, wall int64) bool {
	ahead := s.at(now) - wall
	if s.slow == 0 {
		return -lookEvery <= ahead && ahead <= 0
	}
	left := s.slow - (now - s.from)
	return left > 0 && ahead == (left+slowBy-1)/slowBy
}

// slowBy is the time in which a slow clock falls back by one.
const slowBy = 8

// quick is at, if the stretch runs at full speed and covers the reading. It is
// small enough to be inlined where every decision reads the clock.
func (s *stretch) quick(since int64) (at int64, ok bool) {
	passed := since - s.from
	return s.base + passed, s.slow == 0 && uint64(passed) < s.covers.Load()
}

// within says that a reading is before the next look.
func (s *stretch) within(since int64) bool {
	return since < s.from || uint64(since-s.from) < s.covers.Load()
}

// at is the time of a reading. One from before the start, which a goroutine took
// just before another one looked, is taken as the start: the goroutine may have
// read the clock earlier, and later than this stretch would tell.
func (s *stretch) at(since int64) int64 {
	passed := max(since-s.from, 0)
	return s.base + passed - min(passed, s.slow)/slowBy
}

// Reading is a time to decide at.
type Reading struct {
	At int64
	// Default says that it was read from a default clock. By the time the caller
	// holds the lock, a later reading may already have been decided at: then this
	// decision is made at that one, as if it had been read under the lock. A time
	// that the caller gave, or an injected clock, is taken as it is.
	Default bool
}

// Given is the reading of a time that the caller gave.
func Given(t time.Time) Reading { return Reading{At: t.UnixNano()} }

// Read is a reading of the clock; of no clock, as a zero value has, it is 0.
func (c *Clock) Read() Reading {
	if c == nil {
		return Reading{}
	}
	return Reading{c.now(), c.own}
}

// Latest is the time to decide at, where newest is the newest reading of a
// default clock that was decided at under the lock that the caller holds.
func (r Reading) Latest(newest *int64) int64 {
	if !r.Default {
		return r.At
	}
	*newest = max(*newest, r.At)
	return *newest
}

// ReadSafely is for timers, and for callers that hold a lock. A panic of an
// injected clock would there end the program, or leave callers waiting with no
// timer set: instead it is not ok, and the reading is the last one of ReadSafely.
func (c *Clock) ReadSafely() (r Reading, ok bool) {
	if c.own {
		return c.Read(), true
	}
	r.At = c.told.Load()
	defer func() { _ = recover() }()
	r.At = c.now()
	c.told.Store(r.At)
	return r, true
}

// Prime reads an injected clock for the first time, so that ReadSafely has a
// reading to fall back on. A panic of the clock is the caller's.
func (c *Clock) Prime() int64 {
	now := c.now()
	c.told.Store(now)
	return now
}

// Retry is how soon a timer asks an injected clock again that panicked.
const Retry = 10 * time.Millisecond
