package calls

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

const (
	clockStep   = time.Second      // a larger move of a server's clock is a step
	clockMemory = 10 * time.Second // a coarser measurement may replace one older than this, because clocks also drift
	clockQuiet  = time.Minute      // between two lines of the log
)

// serverClock compares the clock of a lane's server with the monotonic clock of this process.
type serverClock struct {
	mu        sync.Mutex
	at        time.Time     // time of the last measurement; zero before the first
	low, high time.Duration // bounds of how much more the server's clock showed than ours
}

// measure notes that a server answered at the instant now of its clock, in us, a call that was sent and answered at these
// instants of ours. It returns the least that the server's clock has moved since the last measurement, or 0 if that is
// no step. Calls that overlap with the last measurement are ignored: their answers may come in another order.
func (c *serverClock) measure(now int64, sent, answered time.Time) (moved time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.at.IsZero()
	if !first && sent.Before(c.at) {
		return 0
	}
	shown := time.Duration(now) * time.Microsecond
	low, high := shown-answered.Sub(clockOrigin), shown-sent.Sub(clockOrigin)
	if !first {
		moved = max(low-c.high, 0) + min(high-c.low, 0)
	}
	stepped := moved.Abs() > clockStep
	if first || stepped || high-low <= c.high-c.low || answered.Sub(c.at) > clockMemory {
		c.at, c.low, c.high = answered, low, high
	}
	if !stepped {
		return 0
	}
	return moved
}

// shows returns the expected time of the server's clock, in us. Before the first measurement it is the time of ours.
func (c *serverClock) shows() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return time.Now().UnixMicro()
	}
	return (time.Since(clockOrigin) + c.low + (c.high-c.low)/2).Microseconds()
}

// clockOrigin is the instant that measure counts ours from.
var clockOrigin = time.Now()

// stepLog logs steps of the servers' clocks, at most one a minute.
type stepLog struct{ last atomic.Pointer[time.Time] }

func (s *stepLog) log(logger *slog.Logger, moved time.Duration) {
	now, last := time.Now(), s.last.Load()
	if (last == nil || now.Sub(*last) >= clockQuiet) && s.last.CompareAndSwap(last, &now) {
		logger.Warn("redislimit: the server's clock moved against this process's, or another server answers now; docs/reference/redis.md says what that costs", "moved", moved.Round(time.Millisecond).String())
	}
}
