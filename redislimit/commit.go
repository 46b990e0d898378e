package redislimit

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// submission is the decisions of one caller in one call of the script, each on its own.
//
// The order of the fields keeps together what a waiting caller writes, what its call writes, and what the caller reads
// then.
type submission struct {
	done      chan struct{}   // receives once, at the answer
	ctx       context.Context // the caller's; nil without a caller
	decisions []decision
	decided   int          // how many of the decisions, after a call that could not make all of them
	state     atomic.Int32 // the holder: open, answered or gone

	place    place // in the committer's queue, under its lock
	err      error // of the call as a whole
	composed composed
	one      [1]decision // most submissions are one decision of one part

	name  []byte // space for the key of a single take
	few   [2]part
	after func() // called with the answer; nil with a caller
}

const (
	open int32 = iota
	answered
	gone     // the caller did not wait for the answer
	noCaller // no caller waited for it
)

// committer combines callers into calls of the script. The first call leaves at once, and later callers leave
// together when it returns. If many callers are waiting, their call leaves earlier, so that Redis has work while the
// callers of the first call are answered and ask again. If the server is far away, more calls leave before: see
// distance.
type committer struct {
	run     func([]*submission) (answered bool) // calls the script, answers each, and says whether Redis did
	most    int                                 // decisions per call
	worth   int                                 // number of decisions that justify a second call
	unheard *atomic.Int64                       // submissions whose callers left before the answer
	clock   serverClock

	mu       sync.Mutex
	flying   int
	queue    queue
	distance distance
	left     time.Time   // when the last call left; only kept for a distant server
	timer    *time.Timer // sends the queue to a distant server
	timed    bool        // the timer runs
}

// do waits until s is answered. If ctx ends first, it returns that error. A submission that was still queued was
// never sent.
func (c *committer) do(ctx context.Context, s *submission) error {
	switch {
	case !c.leavesAlone(ctx, s):
	case ctx.Done() == nil: // nothing can end the wait, so no goroutine is needed
		c.flyAlone(s)
	default:
		go c.flyAlone(s)
	}
	return c.wait(ctx, s)
}

// start works like do, but does not wait.
func (c *committer) start(ctx context.Context, s *submission) {
	if c.leavesAlone(ctx, s) {
		go c.flyAlone(s)
	}
}

// leavesAlone reports whether a call with s alone leaves now, which the caller then makes. Otherwise s joins the callers
// of another call.
func (c *committer) leavesAlone(ctx context.Context, s *submission) (alone bool) {
	s.ctx = ctx
	c.mu.Lock()
	switch {
	case c.flying >= max(c.distance.calls, 1):
		c.distance.waited = true
		c.push(s)
		c.mu.Unlock()
		return false
	case c.queue.first != nil: // background work, which leaves with s
		c.queue.push(s)
		c.leaves()
		c.mu.Unlock()
		c.land()
		return false
	}
	c.leaves()
	c.mu.Unlock()
	return true
}

// flyAlone makes the call of one submission.
func (c *committer) flyAlone(s *submission) {
	c.fly([]*submission{s})
	c.land()
}

// leaves counts a call that leaves. The caller holds the lock.
func (c *committer) leaves() {
	c.flying++
	c.distance.highest = max(c.distance.highest, c.flying)
	if c.distance.calls > 1 {
		c.left = time.Now()
	}
}

// fly makes one call and measures it, unless it failed without an answer: such a call ends early or late.
func (c *committer) fly(call []*submission) {
	decisions := 0
	for _, s := range call {
		decisions += len(s.decisions)
	}
	flight := c.distance.all.leaves(decisions)
	if !c.run(call) {
		c.distance.all.returns(flight)
		return
	}
	now := time.Now()
	c.mu.Lock()
	c.distance.measure(now, flight)
	c.mu.Unlock()
}

// send queues s without a waiting caller. s.after gets the answer.
func (c *committer) send(s *submission) {
	s.state.Store(noCaller)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.push(s)
	if c.flying == 0 {
		c.leaves()
		go c.land()
	}
}

// push adds s to the queue, and sends it if a call is due. The caller holds the lock.
func (c *committer) push(s *submission) {
	c.queue.push(s)
	switch {
	case c.flying == 0 || c.flying >= c.distance.most: // send, or the next call that returns
	case c.another():
		c.leaves()
		go c.land()
	case c.distance.gap > 0 && !c.timed:
		c.timed = true
		if c.timer == nil {
			c.timer = time.AfterFunc(c.distance.gap, c.due)
		} else {
			c.timer.Reset(c.distance.gap)
		}
	}
}

// another reports whether the queue justifies one more call beside those in flight. The caller holds the lock.
func (c *committer) another() bool {
	waiting, calls := c.queue.decisions, c.distance.calls
	switch {
	case c.distance.gap > 0:
		return waiting >= c.most || time.Since(c.left) >= c.distance.gap
	case calls > 1:
		return waiting >= c.most || waiting >= c.worth && c.flying < calls+beyond
	}
	return waiting >= c.worth && c.flying == 1
}

// due sends what has been queued for the gap between two calls.
func (c *committer) due() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timed = false
	if c.queue.first != nil && c.flying > 0 && c.flying < c.distance.most {
		c.leaves()
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
		return uncounted(Cancelled, ctx.Err())
	}
	c.unheard.Add(1) // before an answer can find the caller gone
	if s.state.CompareAndSwap(open, gone) {
		return &Error{Reason: Cancelled, Err: ctx.Err()}
	}
	c.unheard.Add(-1)
	<-s.done
	return s.err
}

// leave removes s from the queue and reports whether it was still there.
func (c *committer) leave(s *submission) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queue.remove(s)
}

// waiting returns the number of decisions in the queue.
func (c *committer) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queue.decisions
}

// land ends a call. The queued callers leave with the next call at once, until the queue is empty. It first lets the
// answered callers run, because most of them ask again; otherwise half of them would miss the next call.
func (c *committer) land() {
	next := c.next()
	if next == nil {
		return
	}
	go func() {
		for next != nil {
			c.fly(next)
			runtime.Gosched()
			next = c.next()
		}
	}()
}

// next removes the oldest submissions of the queue, up to one call. If the queue is empty, it counts one call less in
// flight.
func (c *committer) next() []*submission {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queue.first == nil {
		c.flying--
		return nil
	}
	batch := make([]*submission, 0, min(c.queue.decisions, c.most))
	size, work := 0, workload{}
	for s := c.queue.first; s != nil; s = c.queue.first {
		size += len(s.decisions)
		for i := range s.decisions {
			work.add(&s.decisions[i])
		}
		if len(batch) > 0 && (size > c.most || work.full()) {
			break
		}
		c.queue.remove(s)
		batch = append(batch, s)
	}
	return batch
}

func (s *submission) lane() int { return s.decisions[0].parts[0].lane }

// deliver gives the answer to the caller and reports whether the caller was still waiting.
func (s *submission) deliver() bool {
	if !s.state.CompareAndSwap(open, answered) {
		return false
	}
	s.done <- struct{}{}
	return true
}
