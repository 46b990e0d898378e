package redislimit

import (
	"context"
	"time"
)

// Call describes one call of the script for [Options.Observe].
type Call struct {
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
func (e *Engine) observe(ctx context.Context, began time.Time, submissions []*submission, b *batch, received int, err error) {
	if e.options.Observe == nil {
		return
	}
	call := Call{Began: began, Took: time.Since(began), Keys: len(b.keys), Sent: len(b.args) + len(b.spent), Received: received, Err: err}
	for _, key := range b.keys {
		call.Sent += len(key)
	}
	for _, s := range submissions {
		call.Decisions += len(s.decisions) - s.decided
		if s.ctx != nil {
			call.Callers = append(call.Callers, s.ctx)
		}
	}
	if err != nil {
		call.Outcome = failure(err).Reason
	}
	e.options.Observe(ctx, call)
}

// traced returns the context of a call. It has the values of the oldest caller's context, such as a trace, without
// its cancellation, because several callers share the call.
func traced(submissions []*submission) context.Context {
	ctx := submissions[0].ctx
	switch {
	case ctx == nil:
		return context.Background()
	case ctx.Done() == nil:
		return ctx
	}
	return context.WithoutCancel(ctx)
}
