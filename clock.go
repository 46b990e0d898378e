package weir

import (
	"sync"
	"sync/atomic"
	"time"
)

// clock tells nanoseconds since the Unix epoch: the wall clock when it was made
// plus the monotonic clock since. About once a second it looks at the wall
// clock. If that is ahead by more than a second (the machine slept, or its clock
// was set) it moves forward to it. It never moves back: ahead of the wall, after
// a jump that was corrected, it runs at 7/8 speed until they meet.
//
// An injected source is taken as it is instead.
type clock struct {
	now   func() int64 // reads the monotonic clock once, or the source
	own   bool         // no source was injected
	start int64        // the wall clock when it was made

	machine func() (since, wall int64) // reads the monotonic and the wall clock
	stretch atomic.Pointer[stretch]
	looking sync.Mutex // held to look at the wall clock

	told atomic.Int64 // by steady, if a source was injected
}

func newClock(source func() int64) *clock {
	if source != nil {
		return &clock{now: source, start: wallNow(), machine: func() (int64, int64) { return 0, wallNow() }}
	}
	start := time.Now()
	c := newOwnClock(func() (since, wall int64) {
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

// newOwnClock makes a clock of what machine reads.
func newOwnClock(machine func() (since, wall int64)) *clock {
	since, wall := machine()
	c := &clock{own: true, start: wall, machine: machine}
	c.stretch.Store(newStretch(since, wall, wall))
	c.now = func() int64 {
		since, _ := machine()
		return c.at(since)
	}
	return c
}

// begin sets a clock of its own, before anyone reads it, to the instant that it
// is made at.
func (c *clock) begin(at int64) {
	c.stretch.Store(newStretch(c.stretch.Load().from, at, c.start))
}

// both reads this clock and the wall clock.
func (c *clock) both() clocks {
	_, wall := c.machine()
	return clocks{engine: c.now(), wall: wall}
}

// at is the time of a monotonic reading. A reading that a stretch does not cover
// never uses it, so the next stretch starts where no goroutine has been yet.
func (c *clock) at(since int64) int64 {
	if s := c.stretch.Load(); s.within(since) {
		return s.at(since)
	}
	return c.look(since)
}

// look extends the stretch by a second, or begins another.
func (c *clock) look(since int64) int64 {
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
	case ahead > int64(Never)/slowBy:
		s.slow = int64(Never)
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

// reading is a time to decide at. One that was read from the owner's clock may
// have been overtaken by a later one when the lock is held at last: then the
// decision is made at that, as if it had been read under the lock. A time that
// was given by the caller, or by an injected clock, is taken as it is.
type reading struct {
	at  int64
	own bool
}

// read is a reading of the clock; of no clock, as a zero value has, it is 0.
func (c *clock) read() reading {
	if c == nil {
		return reading{}
	}
	return reading{c.now(), c.own}
}

// steady is the time for a timer, and for a caller that holds a lock. There a panic
// of an injected clock would end the program, or leave callers waiting with no
// timer set: it is not ok instead, and the time that steady told last.
func (c *clock) steady() (at int64, ok bool) {
	if c.own {
		return c.now(), true
	}
	at = c.told.Load()
	defer func() { _ = recover() }()
	at = c.now()
	c.told.Store(at)
	return at, true
}

// clockRetry is how soon a timer asks a clock again that panicked.
const clockRetry = 10 * time.Millisecond

func given(t time.Time) reading { return reading{at: t.UnixNano()} }

// under is the time to decide at, where newest is the newest reading that was
// decided at under the same lock.
func (r reading) under(newest *int64) int64 {
	if !r.own {
		return r.at
	}
	*newest = max(*newest, r.at)
	return *newest
}
