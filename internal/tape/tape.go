// Package tape decides events in virtual time: it is the memory engine on a clock that stands at the last event.
// Replays, simulations, What-if and the tests of rules files all decide by it, so that they decide like a daemon. Each
// has its own counts.
package tape

import (
	"context"
	"math"

	"github.com/weirflow/weir"
)

// Tape is a memory engine whose clock stands still between two events. It evicts no key for lack of room. Its clock is for one
// goroutine.
type Tape struct {
	*weir.Memory
	now   int64
	begun bool
}

// New returns a tape without events.
func New() *Tape {
	t := &Tape{}
	t.Memory = weir.NewMemory(weir.MemoryOptions{Clock: t.Now, MaxKeys: math.MaxInt32})
	return t
}

// At moves the tape to the instant of an event, in nanoseconds since 1970. It never moves backwards: an event before the last
// one happens with it.
func (t *Tape) At(now int64) {
	if now > t.now || !t.begun {
		t.now, t.begun = now, true
	}
}

// Now returns the instant of the tape: 0 without events.
func (t *Tape) Now() int64 { return t.now }

// Forget evicts the key of a request. The next event may be at any instant, so that a caller can go through its events key by
// key, with the state of one in memory.
func (t *Tape) Forget(q weir.Request) error {
	t.begun = false
	return t.Reset(context.Background(), q)
}
