package pace

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// end ends the wait of c: it goes, or fails with an error.
func (q *Queue) end(c *caller, err error) {
	if c.entered {
		q.waiting.Add(-1)
	}
	c.err, c.over = err, true
	c.turn <- struct{}{}
}

// abandon gives back what was taken for a caller that does not use it, as far as it still counts. No caller waits for that. If
// it fails, the units of a rate stay spent.
func (q *Queue) abandon(c *caller) {
	r := c.reservation
	if r == nil {
		r = enginekit.Granted(q.engine, time.Now(), c.decision, nil, weir.Call{Requests: c.requests, Taken: c.taken})
	}
	q.inBackground(r.Cancel)
}

// release releases the slots of a call that may have been made, and whose answer nobody has.
func (q *Queue) release(call weir.Call) {
	q.inBackground(func(context.Context) error {
		enginekit.Drop(q.engine, call)
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

// guarded returns the error of a call of the engine, or an error if it panics: one caller's panic must not end the wait of
// the others.
func guarded(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("pace: wait: the engine panicked: %v", p)
		}
	}()
	return call()
}

// enter counts a caller that a strategy adds, unless the queue is full.
func (q *Queue) enter(c *caller) error {
	switch {
	case c.entered:
		return nil
	case int(q.waiting.Load()) >= q.capacity:
		return weir.ErrQueueFull
	}
	c.entered = true
	q.waiting.Add(1)
	return nil
}

// background counts what is under way to give back what callers have left.
type background struct {
	mu      sync.Mutex
	running int
	idle    chan struct{} // closed when none runs any more; made anew for the first
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
