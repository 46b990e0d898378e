package redislimit

import (
	"context"
	"time"
)

// flushTick is how often Flush looks.
const flushTick = time.Millisecond

// Flush waits until the engine has given back the units of callers that left, or until ctx ends. A program calls
// it before Close, once its own callers have returned. [pace.Queue.Flush] calls it.
func (e *Engine) Flush(ctx context.Context) error {
	tick := time.NewTicker(flushTick)
	defer tick.Stop()
	for e.givesBack() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// givesBack reports whether an answer without a caller is awaited, or an undo. An answer counts until its undo counts.
func (e *Engine) givesBack() bool {
	return e.calls.Stats.Unheard.Load() > 0 || e.calls.Undoing() > 0
}
