package pace

import (
	"context"
	"sync"
	"time"

	"github.com/weirflow/weir"
)

// Flush waits until all that callers have left behind, booked instants and units, has been given back to the engine, or
// until ctx ends. Callers that leave do not wait for that themselves. A program calls Flush before it closes the engine
// or ends. If the engine, or one below it, has a method Flush(context.Context) error, Flush calls it, too: a caller may have left while
// the engine decided for it.
func (q *Queue) Flush(ctx context.Context) error {
	q.mu.Lock()
	if q.book != nil {
		for _, k := range q.book.keys {
			k.withdraw(true)
		}
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

// flusher is an engine that gives back, in the background, units of callers that left.
type flusher interface {
	Flush(ctx context.Context) error
}

// abandon gives back the unused units of a caller that still count. No caller waits for that. If it fails, the units of
// a rate stay spent.
func (q *Queue) abandon(c *caller) {
	r := c.reservation
	if r == nil {
		r = weir.Kit.Granted(q.engine, time.Now(), c.decision, nil, weir.Call{Requests: c.took(), Taken: c.taken})
	}
	q.inBackground(r.Cancel)
}

// release releases the slots of a call that may have been made, and whose answer nobody has.
func (q *Queue) release(call weir.Call) {
	q.inBackground(func(context.Context) error {
		weir.Kit.Drop(q.engine, call)
		return nil
	})
}

// inBackground runs a call of the engine that no caller waits for.
func (q *Queue) inBackground(call func(ctx context.Context) error) {
	end := q.background.begin()
	go func() {
		defer end()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = guarded(func() error { return call(ctx) })
	}()
}

// background counts what is under way to give back what callers have left.
type background struct {
	mu      sync.Mutex
	running int
	idle    chan struct{} // closed when none runs any more; made again for the first
}

// begin counts work, until end is called.
func (b *background) begin() (end func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running++; b.running == 1 {
		b.idle = make(chan struct{})
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.running--; b.running == 0 {
			close(b.idle)
		}
	}
}

func (b *background) state() (running int, idle <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.running, b.idle
}
