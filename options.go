package weir

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weirflow/weir/internal/clock"
	"github.com/weirflow/weir/internal/line"
)

// Options say how callers wait for their turn. The zero value is one line,
// first come, first served: a field that is zero has its default.
type Options struct {
	// Weights makes classes that share the limit in proportion while they all
	// have someone waiting; what one leaves unused goes to the others. A
	// caller names its class by its index. Each is 1 to 1024. Default: one
	// class.
	Weights []int64
	// Queue is how many may wait at once for one subject. Default: 65536.
	Queue int
	// Jitter spreads those who were let go: each is held back by a random time
	// below it. A caller that need not wait is not. It only ever adds. The limit holds for the instants before it,
	// so where it must hold for the starts themselves (a gate, a log), use none.
	// Default: none.
	Jitter time.Duration
	// MaxKeys is how many keys a Keyed remembers at most, not counting idle
	// ones. Further keys share budgets. A Limiter ignores it. Default, and for
	// any value below 1: DefaultMaxKeys.
	MaxKeys int
	// Clock tells the time in nanoseconds since the Unix epoch, and is taken as
	// it is: see CachedClock. Those who wait sleep on the machine's clock all
	// the same, for as long as this one says. Default: as MemoryOptions.Clock.
	Clock func() int64
}

// DefaultMaxKeys is the default of Options.MaxKeys and MemoryOptions.MaxKeys.
const DefaultMaxKeys = 10_000_000

const defaultQueue = 1 << 16

// keyBound is the bound on keys that an option MaxKeys stands for.
func keyBound(maxKeys int) int {
	if maxKeys < 1 {
		return DefaultMaxKeys
	}
	return maxKeys
}

func (o *Options) queue() int {
	if o.Queue == 0 {
		return defaultQueue
	}
	return o.Queue
}

// lines are those of an owner whose subjects mu guards.
func (o *Options) lines(mu *sync.Mutex, clock *clock.Clock) line.Lines {
	return line.Lines{Lock: mu, Clock: clock, Weights: o.Weights, Capacity: o.queue()}
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
