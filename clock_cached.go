package weir

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/internal/clock"
)

// CachedClock is a clock that is nearly free to read: a goroutine updates a number every precision. Pass its Now as
// the Clock of Options or MemoryOptions.
//
// Decisions see the time up to the precision late, and later while the machine is too busy to run the goroutine. They
// never see it early. So a limit never admits more than it would on the true clock plus the lag, but units refill
// later by the lag, and all callers between two ticks decide at the same instant. Do not use it with a rate whose
// unit takes less than the precision, or with a LeakyBucket, which it cannot space more finely.
type CachedClock struct {
	clock *clock.Clock
	value atomic.Int64
	done  chan struct{}
	close sync.Once
}

// NewCachedClock starts a clock with a precision of at least 1 µs. Close ends its goroutine.
func NewCachedClock(precision time.Duration) *CachedClock {
	c := &CachedClock{clock: clock.New(nil), done: make(chan struct{})}
	c.value.Store(c.clock.Now())
	go c.run(time.NewTicker(max(precision, time.Microsecond)))
	return c
}

// Now returns the time in nanoseconds since the Unix epoch as of the last tick.
func (c *CachedClock) Now() int64 { return c.value.Load() }

// Close stops the clock; Now then keeps its value.
func (c *CachedClock) Close() { c.close.Do(func() { close(c.done) }) }

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
