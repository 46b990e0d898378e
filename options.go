package weir

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weirflow/weir/internal/clock"
	"github.com/weirflow/weir/internal/line"
)

// Options configure waiting and the clock. A zero field has its default: one queue in order of arrival.
type Options struct {
	// Weights makes classes, which share the limit in proportion while each has a waiting caller. The others use what
	// a class leaves unused. A caller names its class by its index. Each weight is 1 to 1024. Default: one class.
	Weights []int64
	// Queue bounds the callers that wait for one subject. Default: 65536.
	Queue int
	// Jitter spreads released callers: each is held back for a random time below Jitter. A caller that need not wait
	// is not held back. The limit holds for the instants before the jitter. If it must hold for the starts themselves
	// (a gate, a log), use no jitter. Default: none.
	Jitter time.Duration
	// MaxKeys bounds the keys that a Keyed remembers, not counting idle ones that it may evict. Further keys share states.
	// A Limiter ignores it. Default, and for any value below 1: 10 million.
	MaxKeys int
	// Clock returns the time in nanoseconds since the Unix epoch, and is used unchanged: see MonotonicClock. Waiting
	// callers sleep on the machine's clock for durations of this one. Default: as MemoryOptions.Clock.
	Clock func() int64
}

// defaultMaxKeys is the default of Options.MaxKeys and MemoryOptions.MaxKeys.
const defaultMaxKeys = 10_000_000

const defaultQueue = 1 << 16

// keyBound returns the bound on keys for an option MaxKeys.
func keyBound(maxKeys int) int {
	if maxKeys < 1 {
		return defaultMaxKeys
	}
	return maxKeys
}

// lines returns the lines of an owner whose subjects mu guards.
func (o *Options) lines(mu *sync.Mutex, clock *clock.Clock) line.Lines {
	return line.Lines{Lock: mu, Clock: clock, Weights: o.Weights, Capacity: cmp.Or(o.Queue, defaultQueue)}
}

func (o *Options) check() error {
	var problems []error
	bad := func(field, format string, values ...any) {
		problems = append(problems, &OptionError{Op: "new", Field: field, Reason: fmt.Sprintf(format, values...)})
	}
	for _, w := range o.Weights {
		if w < 1 || w > line.MaxWeight {
			bad("weights", "%d is not within 1 and %d", w, line.MaxWeight)
		}
	}
	if o.Queue < 0 {
		bad("queue", "%d is negative", o.Queue)
	}
	if o.Jitter < 0 {
		bad("jitter", "%v is negative", o.Jitter)
	}
	return errors.Join(problems...)
}

// MonotonicClock is a clock that no step of the wall clock moves: the wall clock at the start of the program plus the
// monotonic clock since. Pass it as the Clock of Options or MemoryOptions where a RateGate or another limit must hold in
// elapsed time even if someone sets the wall clock. The default clock jumps forward to a wall clock that is ahead.
//
// While the machine is suspended, the monotonic clock of most systems stands still, so nothing refills in that time.
// Daily windows then end late by it, until the program restarts. A program that loads a snapshot begins again at the
// wall clock, so a step of the wall clock between the two starts shows then: after a step back, keys wait longer by the
// step, and after a step forward they refill by it.
func MonotonicClock() int64 { return monotonic.Now() }

var monotonic = clock.Monotonic(clock.New(nil))
