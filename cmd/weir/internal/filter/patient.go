package filter

import (
	"context"
	"errors"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

// patient waits in a queue. It asks a failing engine again, for a bounded time. What a failed call has counted stays
// spent.
type patient struct {
	queue    *pace.Queue
	rule     *weir.Rule
	patience time.Duration
	acquires bool
}

// enginePause is the pause after a failure of the engine.
const enginePause = 250 * time.Millisecond

// wait returns an *EngineError when the patience is over, or when a retry cannot help.
func (p patient) wait(ctx context.Context, key string, cost int64) (*pace.Acquired, error) {
	request := p.rule.For(key[:min(len(key), weir.MaxKey)], cost)
	var failing time.Time // since when
	for {
		began := time.Now()
		slot, err := p.ask(ctx, request)
		switch {
		case err == nil:
			return slot, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, weir.ErrRequest) || errors.Is(err, weir.ErrNever):
			return nil, &EngineError{err}
		case failing.IsZero() || began.Sub(failing) > p.patience+2*enginePause: // it has waited meanwhile
			failing = time.Now()
		}
		if time.Since(failing) >= p.patience {
			return nil, &EngineError{err}
		}
		select {
		case <-time.After(enginePause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (p patient) ask(ctx context.Context, request weir.Request) (*pace.Acquired, error) {
	if p.acquires {
		return p.queue.Acquire(ctx, request)
	}
	_, err := p.queue.Wait(ctx, request)
	return nil, err
}
