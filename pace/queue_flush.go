package pace

import (
	"context"

	"github.com/weirflow/weir"
)

// Flush waits until all that callers have left behind, booked instants and units, has been given back to the engine, or
// until ctx ends. Callers that leave do not wait for that themselves. A program calls Flush before it closes the engine
// or ends. If the engine, or one below it, has a method Flush(context.Context) error, Flush calls it, too: a caller may have left while
// the engine decided for it.
func (q *Queue) Flush(ctx context.Context) error {
	q.mu.Lock()
	if q.book != nil {
		q.book.flush()
	}
	q.mu.Unlock()
	if running, idle := q.background.state(); running > 0 {
		select {
		case <-idle:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if engine, ok := weir.Find[flusher](q.engine); ok {
		return engine.Flush(ctx)
	}
	return nil
}

// flusher is an engine that gives back in the background what callers took that left.
type flusher interface {
	Flush(ctx context.Context) error
}
