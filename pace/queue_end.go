package pace

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weirflow/weir"
)

// end ends the wait of c: it goes, or fails with an error.
func (q *Queue) end(c *caller, err error) {
	if c.entered {
		q.waiting.Add(-1)
	}
	c.err, c.over = err, true
	c.turn <- struct{}{}
}

// giveBack gives back what was taken the given number of times. No caller waits for that. If it fails, the units stay
// spent.
func (q *Queue) giveBack(times int64, requests []weir.Request) {
	back := slices.Clone(requests)
	for i := range back {
		back[i].Cost *= times
	}
	q.inBackground(func(ctx context.Context) error {
		_, err := q.engine.Return(ctx, back...)
		return err
	})
}

// abandon gives back what was taken for a caller that has left.
func (q *Queue) abandon(c *caller) {
	if r := c.reservation; r != nil {
		q.inBackground(r.Cancel)
		return
	}
	q.giveBack(1, c.requests)
}

// release releases the slots of a call that may have been made, and whose answer nobody has.
func (q *Queue) release(call *weir.Call) {
	slots := weir.Call{Op: weir.OpReturn, Requests: slices.Clone(call.Requests), Lease: call.Lease}
	for i := range slots.Requests {
		slots.Requests[i].Rule = slots.Requests[i].Rule.Held()
	}
	slots.Requests = slices.DeleteFunc(slots.Requests, func(r weir.Request) bool { return r.Rule == nil || r.Cost <= 0 })
	if call.Lease == 0 || len(slots.Requests) == 0 {
		return
	}
	if holder, ok := weir.Find[weir.Holder](q.engine); ok {
		_ = guarded(func() error { holder.Drop(slots); return nil })
		return
	}
	q.inBackground(func(ctx context.Context) error {
		_, err := q.engine.Do(ctx, slots)
		return err
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
