package layer

import (
	"time"

	"github.com/weirflow/weir"
)

// clock tells how much time has passed for the limits of an engine. Deadlines, the breaker and pauses go by real time.
type clock struct {
	injected func() int64 // nanoseconds since the Unix epoch; nil for the clock of this process
}

// clockOf returns the clock of an engine that has one, as in a test that moves the time, so that the engine and its
// layers use the same clock.
func clockOf(e weir.Engine) clock {
	if told, ok := weir.Find[interface{ Clock() func() int64 }](e); ok {
		return clock{told.Clock()}
	}
	return clock{}
}

func (c clock) now() time.Time {
	if c.injected == nil {
		return time.Now()
	}
	return time.Unix(0, c.injected())
}

func (c clock) since(t time.Time) time.Duration {
	if c.injected == nil {
		return time.Since(t)
	}
	return c.now().Sub(t)
}
