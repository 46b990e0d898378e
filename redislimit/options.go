package redislimit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/redislimit/internal/stored"
)

// Options configure an Engine. The zero value is ready to use.
type Options struct {
	// Prefix begins every key. Engines with different prefixes share nothing. It has ASCII letters, digits and
	// -._~:/@+=, alone. Default: weir.
	Prefix string
	// Lanes is the number of hash tags over which the keys are spread, up to 16,384. Keys of one lane share a slot
	// of a cluster, and calls are shared within a lane. Without a cluster every call spans all lanes. The lane is
	// part of every key: all processes must use the same number, and a change loses all state. Default: 128.
	Lanes int
	// OneSlot keeps each call within one slot, like a cluster client. It is for a cluster behind one address, such
	// as a proxy or a managed service. The engine sets it when a server refuses a call with CROSSSLOT. Set it
	// yourself for a proxy that routes each call by its first key. Default: false.
	OneSlot bool
	// ConnectLater makes Open, like NewWith, return an engine while no server answers. The engine connects with a later
	// decision. Until then decisions fail with the reason Lost, and nothing is counted. Default: Open fails.
	ConnectLater bool
	// Batch is the largest number of decisions in a call, up to 1,024. Default: 128.
	Batch int
	// Flights is the most calls in flight at a time, in each lane of a cluster, up to 1,024. A server nearby gets
	// two at a time, because decisions that share a call cost it less. A distant one gets more, by the measured
	// round trip, because they would wait for each other. Default: 64.
	Flights int
	// Clock returns the time in nanoseconds since the Unix epoch. It is for tests, and for servers whose scripts may not
	// read the time. The engine reads it once per call and uses whole microseconds. The clocks of all processes then
	// determine the decisions. Layers around the engine go by it as well. Default: the server's clock.
	Clock func() int64
	// DenyNewServer protects limits when a server may have lost its memory. It refuses what an unknown server process
	// would admit until each limit would have refilled from empty. That includes the first minutes or days of a new
	// installation, depending on the limits. It does not refuse a Concurrency without a lease. It costs some
	// microseconds of Redis for each call. Default: a server that lost its memory admits one more burst, and a
	// promoted replica admits again what it had not received.
	DenyNewServer bool
	// Observe is called after each call of the script, for metrics and traces. It runs before the callers get their
	// answers, so it should be fast, and it must not call the engine, whose next call may wait for this one to end. It must
	// not panic, because it runs in a goroutine of the engine: no caller can recover, and the program ends. Several calls
	// may run concurrently. Its context, like the one passed to the client, has the values of the oldest caller's context.
	// Default: none.
	Observe func(context.Context, ScriptCall)
	// Logger receives a warning when the clock of a server moves against this process's by more than a second, at
	// most once a minute. Default: slog.Default(). A logger with slog.DiscardHandler is silent.
	Logger *slog.Logger
	// Linger is how long a key outlives its state, so that a process whose clock is behind by less still finds it.
	// Default: 0 with the server's clock, which also expires the keys, and a minute with Clock.
	Linger time.Duration
}

// The bounds of Options.
const (
	maxLanes   = 16384
	maxBatch   = 1024
	maxFlights = 1024
)

func (o Options) withDefaults() Options {
	if o.Prefix == "" {
		o.Prefix = "weir"
	}
	if o.Lanes == 0 {
		o.Lanes = 128
	}
	if o.Batch == 0 {
		o.Batch = 128
	}
	if o.Flights == 0 {
		o.Flights = 64
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Linger == 0 && o.Clock != nil {
		o.Linger = time.Minute
	}
	return o
}

// over returns o with its zero fields taken from base.
func (o Options) over(base Options) Options {
	base.Prefix = cmp.Or(o.Prefix, base.Prefix)
	base.Lanes = cmp.Or(o.Lanes, base.Lanes)
	base.Batch = cmp.Or(o.Batch, base.Batch)
	base.Flights = cmp.Or(o.Flights, base.Flights)
	base.Linger = cmp.Or(o.Linger, base.Linger)
	base.OneSlot = o.OneSlot || base.OneSlot
	base.DenyNewServer = o.DenyNewServer || base.DenyNewServer
	return base
}

func checkPrefix(prefix string) error {
	if strings.Trim(prefix, ":"+stored.PlainBytes) == "" {
		return nil
	}
	return fmt.Errorf("%q, which has other characters than ASCII letters, digits and -._~:/@+=,", prefix)
}

// check refuses invalid options.
func (o *Options) check() error {
	var problems []error
	bad := func(field, format string, values ...any) {
		problems = append(problems, &weir.OptionError{Op: "redislimit", Field: field, Reason: fmt.Sprintf(format, values...)})
	}
	if err := checkPrefix(o.Prefix); err != nil {
		bad("prefix", "%v", err)
	}
	if o.Lanes < 0 || o.Lanes > maxLanes {
		bad("lanes", "%d is not within 0 and %d", o.Lanes, maxLanes)
	}
	if o.Batch < 0 || o.Batch > maxBatch {
		bad("batch", "%d is not within 0 and %d", o.Batch, maxBatch)
	}
	if o.Flights < 0 || o.Flights > maxFlights {
		bad("flights", "%d is not within 0 and %d", o.Flights, maxFlights)
	}
	if o.Linger < 0 {
		bad("linger", "%v is negative", o.Linger)
	}
	return errors.Join(problems...)
}

// The bounds within which this engine is exact. Check and all operations refuse limits outside them with a
// *weir.LimitError. Periods, gaps, leases and origins are whole microseconds. A bucket may take 71 years to fill, or a queue
// to drain: a larger debt is cut to that.
const (
	// MaxCount is the largest count, burst, queue or number of slots: 1,000,000,000.
	MaxCount = stored.MostCount
	// MaxLog is the largest count of a SlidingLog or a RateGate: 32,768. Their states grow with it, and no call of the
	// script may delay the server's other callers for long. docs/develop/redis.md gives the sizes and times.
	MaxLog = stored.MostLog
	// MaxSlots is the largest number of slots of a Concurrency, for the same reason: 2,048.
	MaxSlots = stored.MostSlots
)

// DefaultLease is the lease of a [weir.Concurrency] without one, 30 seconds. On Redis every slot has a lease, so that no
// fault can hold it permanently.
const DefaultLease = stored.DefaultLease

// ScriptCall describes one call of the script for [Options.Observe].
type ScriptCall struct {
	Began     time.Time
	Took      time.Duration // until the answer, or until the engine gave up
	Decisions int           // in the call
	Keys      int           // distinct keys in the call
	Sent      int           // bytes of keys and arguments
	Received  int           // bytes of the answer
	Outcome   Reason        // "" if Redis answered
	Err       error         // the callers' error, or nil
	// Callers are the contexts of the callers in the call, the oldest first, for links between traces. An undo has no
	// caller.
	Callers []context.Context
}
