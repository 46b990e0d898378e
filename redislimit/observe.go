package redislimit

import (
	"context"
	"time"
)

// Call is one call of the script, as [Options.Observe] is told of it.
type Call struct {
	Began     time.Time
	Took      time.Duration // until the answer, or until it was given up
	Decisions int           // that shared the call
	Keys      int           // that they named, each once
	Sent      int           // bytes of keys and arguments
	Received  int           // bytes of the answer
	Outcome   Reason        // empty if Redis answered
	Err       error         // the error that the callers have, or nil
	// Callers are the contexts of those who shared the call, the oldest first, to
	// link their traces to it. An undo has no caller.
	Callers []context.Context
}

// observe tells Options.Observe of a call.
func (e *Engine) observe(ctx context.Context, began time.Time, submissions []*submission, b *batch, received int, err error) {
	if e.options.Observe == nil {
		return
	}
	call := Call{Began: began, Took: time.Since(began), Keys: len(b.keys), Sent: len(b.args) + len(b.spent), Received: received, Err: err}
	for _, key := range b.keys {
		call.Sent += len(key)
	}
	for _, s := range submissions {
		call.Decisions += len(s.decisions)
		if s.ctx != nil {
			call.Callers = append(call.Callers, s.ctx)
		}
	}
	if err != nil {
		call.Outcome = failure(err).Reason
	}
	e.options.Observe(ctx, call)
}

// traced is the context of a call: what that of the oldest caller holds, such as
// a trace, without its end. The call is everybody's, so no caller ends it.
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
