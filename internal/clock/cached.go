package clock

import (
	"sync"
	"sync/atomic"
	"time"
)

// Cached is a default Clock that a goroutine reads at every tick.
type Cached struct {
	clock *Clock
	value atomic.Int64
	done  chan struct{}
	close sync.Once
}

// NewCached starts a clock with a tick every precision.
func NewCached(precision time.Duration) *Cached {
	c := &Cached{clock: New(nil), done: make(chan struct{})}
	c.value.Store(c.clock.Now())
	go c.run(time.NewTicker(precision))
	return c
}

// Now returns the time of the last tick.
func (c *Cached) Now() int64 { return c.value.Load() }

// Close ends the goroutine.
func (c *Cached) Close() { c.close.Do(func() { close(c.done) }) }

func (c *Cached) run(ticker *time.Ticker) {
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
