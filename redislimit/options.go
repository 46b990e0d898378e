package redislimit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weirflow/weir"
)

// Options configure an Engine. The zero value is ready to use.
type Options struct {
	// Prefix begins every key; engines with different prefixes share nothing.
	// It has no braces. Default: weir.
	Prefix string
	// Lanes is over how many hash tags the keys are spread, to MaxLanes. Keys of
	// one lane share a slot of a cluster, and calls are shared within a lane;
	// without a cluster every call spans all lanes. It is part of every key: all
	// processes must agree on it, and a change of it loses all state. Default:
	// 128.
	Lanes int
	// OneSlot keeps each call within one slot, as with a client of a cluster: for
	// a cluster behind one address, like a proxy or a managed one. The engine finds
	// out by itself where the server refuses a call with CROSSSLOT; a proxy that
	// routes each call by its first key has to be told. Default: false.
	OneSlot bool
	// Batch is how many decisions share a call at most, to MaxBatch. Default: 128.
	Batch int
	// Clock tells the time in nanoseconds since the Unix epoch, for servers that
	// do not let a script ask for theirs, and for tests. It is read once a call,
	// and only its whole microseconds count. With it the clocks of all processes
	// decide together. Default: the server's clock.
	Clock func() int64
	// DenyNewServer makes up for what a server may have forgotten: whatever a
	// server process that was not seen before would admit is refused until the
	// limit would have filled up again, had all of it been spent. That is the
	// first minutes or days of a new installation, too, as long as the limits
	// are. A Concurrency without a lease is not refused. It costs some
	// microseconds of Redis for each call. Default: a server that lost its memory
	// admits one more burst, and a replica that takes over what had not reached it.
	DenyNewServer bool
	// Observe is told of each call of the script after its end, for metrics and
	// traces. It runs before the callers have their answers, so it should be quick,
	// and several may run at once. Its context holds what that of the oldest caller
	// holds, and so does the context that the client is called with. Default: none.
	Observe func(context.Context, Call)
	// Linger is how long a key outlives its state, so that a clock that is
	// behind by less still finds it. Default: 0 with the server's clock, which
	// also ends the keys, and a minute with Clock.
	Linger time.Duration
}

// Bounds of Options.
const (
	MaxLanes = 16384
	MaxBatch = 1024
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
	if o.Linger == 0 && o.Clock != nil {
		o.Linger = time.Minute
	}
	return o
}

// over is o where it says something, and base elsewhere.
func (o Options) over(base Options) Options {
	base.Prefix = cmp.Or(o.Prefix, base.Prefix)
	base.Lanes = cmp.Or(o.Lanes, base.Lanes)
	base.Batch = cmp.Or(o.Batch, base.Batch)
	base.Linger = cmp.Or(o.Linger, base.Linger)
	base.OneSlot = o.OneSlot || base.OneSlot
	base.DenyNewServer = o.DenyNewServer || base.DenyNewServer
	return base
}

// check refuses options that make no sense.
func (o *Options) check() error {
	var problems []error
	bad := func(field, format string, values ...any) {
		problems = append(problems, &weir.OptionError{Op: "redislimit", Field: field, Reason: fmt.Sprintf(format, values...)})
	}
	if strings.ContainsAny(o.Prefix, "{}") {
		bad("prefix", "%q holds braces, which would move the hash tag", o.Prefix)
	}
	if o.Lanes < 0 || o.Lanes > MaxLanes {
		bad("lanes", "%d is not within 0 and %d", o.Lanes, MaxLanes)
	}
	if o.Batch < 0 || o.Batch > MaxBatch {
		bad("batch", "%d is not within 0 and %d", o.Batch, MaxBatch)
	}
	if o.Linger < 0 {
		bad("linger", "%v is negative", o.Linger)
	}
	return errors.Join(problems...)
}
