package redislimit

import (
	"context"
	"time"

	"github.com/weirflow/weir/redislimit/internal/calls"
	"github.com/weirflow/weir/redislimit/internal/fault"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

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

// observe passes a call to Options.Observe.
func (e *Engine) observe(ctx context.Context, began time.Time, submissions []*calls.Submission, b *wire.Batch, received int, err error) {
	call := ScriptCall{Began: began, Took: time.Since(began), Keys: len(b.Keys), Sent: len(b.Args) + len(b.Spent), Received: received}
	for _, key := range b.Keys {
		call.Sent += len(key)
	}
	for _, s := range submissions {
		call.Decisions += len(s.Decisions) - s.Decided
		if s.Ctx != nil {
			call.Callers = append(call.Callers, s.Ctx)
		}
	}
	if err != nil {
		call.Outcome, call.Err = Reason(fault.Of(err).Reason), err
	}
	e.options.Observe(ctx, call)
}
