package weir

import (
	"sync/atomic"
	"time"
)

// clock tells nanoseconds since the Unix epoch: the wall clock when it was made
// plus the monotonic clock since. About once a second it looks at the wall
// clock, and if that is ahead by more than a second (the machine slept, or its
// clock was set) it moves forward to it. It never moves back.
//
// An injected source is taken as it is instead.
type clock struct {
	now    func() int64 // reads the monotonic clock once, or the source
	own    bool         // no source was injected
	start  time.Time
	offset atomic.Int64 // from the monotonic reading since start to Unix time
	look   atomic.Int64 // the monotonic reading after which to look again
}

func newClock(source func() int64) *clock {
	if source != nil {
		return &clock{now: source, start: time.Now()}
	}
	c := &clock{own: true, start: time.Now()}
	c.offset.Store(c.start.UnixNano())
	c.look.Store(int64(time.Second))
	c.now = func() int64 {
		since := int64(time.Since(c.start))
		if since >= c.look.Load() {
			c.follow(since, time.Now().UnixNano())
		}
		return c.offset.Load() + since
	}
	return c
}

// follow moves the clock forward to wall if it is far behind.
func (c *clock) follow(since, wall int64) {
	c.look.Store(since + int64(time.Second))
	offset := c.offset.Load()
	if ahead := wall - (offset + since); ahead > int64(time.Second) {
		c.offset.CompareAndSwap(offset, offset+ahead)
	}
}

// begin sets a clock of its own, before anyone reads it, to the instant that it
// is made at.
func (c *clock) begin(at int64) { c.offset.Store(at) }

// reading is a time to decide at. One that was read from the owner's clock may
// have been overtaken by a later one when the lock is held at last: then the
// decision is made at that, as if it had been read under the lock. A time that
// was given by the caller, or by an injected clock, is taken as it is.
type reading struct {
	at  int64
	own bool
}

func (c *clock) read() reading { return reading{c.now(), c.own} }

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
