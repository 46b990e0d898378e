package redislimit

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// submission is what one caller asks in one call of the script: decisions that
// go together, each on its own.
type submission struct {
	decisions []decision
	err       error           // of the call as a whole
	ctx       context.Context // of the caller; nil if there is none

	place place         // in the queue of the committer, whose lock holds it
	done  chan struct{} // receives once when answered
	state atomic.Int32  // who has it: open, answered or gone

	one [1]decision // most submissions are one decision of one part
	few [2]part
}

const (
	open int32 = iota
	answered
	gone   // the caller did not wait for the answer
	nobody // ever waited for it
)

// committer shares calls of the script among callers: the first goes at once,
// and whoever comes while a call is under way leaves with the next one. That one
// leaves when the call is back. Of many callers it leaves before, so that Redis
// has something to decide while the callers of the first are answered and ask anew.
type committer struct {
	run   func([]*submission) // asks the script and answers each
	most  int                 // decisions in a call
	worth int                 // decisions that are worth a second call meanwhile

	mu     sync.Mutex
	flying int
	queue  queue
}

// do has s answered, or returns why not: ctx ended first. A submission that was
// still waiting then was never sent.
func (c *committer) do(ctx context.Context, s *submission) error {
	s.ctx = ctx
	c.mu.Lock()
	if c.flying > 0 {
		c.push(s)
		c.mu.Unlock()
		return c.wait(ctx, s)
	}
	c.flying++
	c.mu.Unlock()
	if ctx.Done() == nil { // nothing can end the wait: no goroutine is needed
		c.run([]*submission{s})
		c.land()
		<-s.done
		return s.err
	}
	go func() {
		c.run([]*submission{s})
		c.land()
	}()
	return c.wait(ctx, s)
}

// send is do without anybody who waits.
func (c *committer) send(s *submission) {
	s.state.Store(nobody)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.push(s)
	if c.flying == 0 {
		c.flying++
		go c.land()
	}
}

// push puts s in the queue. The lock is held.
func (c *committer) push(s *submission) {
	c.queue.push(s)
	if c.flying == 1 && c.queue.decisions >= c.worth {
		c.flying++
		go c.land()
	}
}

func (c *committer) wait(ctx context.Context, s *submission) error {
	select {
	case <-s.done:
		return s.err
	case <-ctx.Done():
	}
	if c.leave(s) {
		return ctx.Err()
	}
	if s.state.CompareAndSwap(open, gone) {
		return &Error{Reason: Cancelled, Counted: true, Err: ctx.Err()}
	}
	<-s.done
	return s.err
}

// leave takes s out of the queue, if it is still there.
func (c *committer) leave(s *submission) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queue.remove(s)
}

// waiting is how many decisions are in the queue.
func (c *committer) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queue.decisions
}

// land ends a call: whoever has come meanwhile leaves at once, until nobody has.
// Those who were just answered are let run before the next call leaves, since most
// of them have another question: without it half of them would miss the call.
func (c *committer) land() {
	next := c.next()
	if next == nil {
		return
	}
	go func() {
		for next != nil {
			c.run(next)
			runtime.Gosched()
			next = c.next()
		}
	}()
}

// next takes the oldest submissions of the queue, as many as make one call; if
// there are none, one call less is under way.
func (c *committer) next() []*submission {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queue.first == nil {
		c.flying--
		return nil
	}
	batch := make([]*submission, 0, min(c.queue.decisions, c.most))
	size, parts := 0, 0
	for s := c.queue.first; s != nil; s = c.queue.first {
		size += len(s.decisions)
		parts += s.parts()
		if len(batch) > 0 && (size > c.most || parts > mostParts) {
			break
		}
		c.queue.remove(s)
		batch = append(batch, s)
	}
	return batch
}

// mostParts bounds the parts of a call, unless one submission alone has more.
const mostParts = 1024

func (s *submission) lane() int { return s.decisions[0].parts[0].lane }

func (s *submission) parts() (n int) {
	for i := range s.decisions {
		n += len(s.decisions[i].parts)
	}
	return n
}

// deliver hands the answer to the caller; false if he has gone.
func (s *submission) deliver() bool {
	if !s.state.CompareAndSwap(open, answered) {
		return false
	}
	s.done <- struct{}{}
	return true
}
