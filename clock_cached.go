package weir

import (
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/internal/clock"
)

// CachedClock is a clock that costs next to nothing to read, because it is a
// number that one goroutine brings up to date every precision. Its Now is for
// the Clock of Options and MemoryOptions.
//
// What it gives up: decisions see the time up to the precision late, and later
// still while the machine is too busy to run the goroutine. It is never early,
// so no limit is ever exceeded on the true clock by more than what flows back
// within that lag, but budget comes back late by as much, and everyone who asks
// between two ticks asks at the same instant. Do not use it with rates whose
// unit takes less than the precision, or with a LeakyBucket, which cannot space
// units more finely than it.
type CachedClock struct {
	clock *clock.Clock
	value atomic.Int64
	done  chan struct{}
}

// NewCachedClock starts a clock of a precision of at least 1 µs; Close ends its
// goroutine.
func NewCachedClock(precision time.Duration) *CachedClock {
	c := &CachedClock{clock: clock.New(nil), done: make(chan struct{})}
	c.value.Store(c.clock.Now())
	go c.run(time.NewTicker(max(precision, time.Microsecond)))
	return c
}

// Now is the time in nanoseconds since the Unix epoch as of the last tick.
func (c *CachedClock) Now() int64 { return c.value.Load() }

// Close stops the clock: Now stays what it is. It is called once.
func (c *CachedClock) Close() { close(c.done) }

func (c *CachedClock) run(ticker *time.Ticker) {
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			c.value.Store(c.clock.Now())
		case <-c.done:
			return
		}
	}
}
