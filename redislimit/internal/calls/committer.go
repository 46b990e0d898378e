package calls

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir/redislimit/internal/fault"
	"github.com/weirflow/weir/redislimit/internal/stored"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// Committer combines callers into calls of the script. The first call leaves at once, and later callers leave
// together when it returns. If many callers are waiting, their call leaves earlier, so that Redis has work while the
// callers of the first call are answered and ask again. If the server is far away, more calls leave before: see
// distance.
type Committer struct {
	run     func([]*Submission) (answered bool) // calls the script, answers each, and says whether Redis did
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
func (c *Committer) do(ctx context.Context, s *Submission) error {
	switch {
	case !c.leavesAlone(ctx, s):
	case ctx.Done() == nil: // nothing can end the wait, so no goroutine is needed
		c.flyAlone(s)
	default:
		go c.flyAlone(s)
	}
	return c.Wait(ctx, s)
}

// Start works like do, but does not wait.
func (c *Committer) Start(ctx context.Context, s *Submission) {
	if c.leavesAlone(ctx, s) {
		go c.flyAlone(s)
	}
}

// leavesAlone reports whether a call with s alone leaves now, which the caller then makes. Otherwise s joins the callers
// of another call.
func (c *Committer) leavesAlone(ctx context.Context, s *Submission) (alone bool) {
	s.Ctx = ctx
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
func (c *Committer) flyAlone(s *Submission) {
	c.fly([]*Submission{s})
	c.land()
}

// leaves counts a call that leaves. The caller holds the lock.
func (c *Committer) leaves() {
	c.flying++
	c.distance.highest = max(c.distance.highest, c.flying)
	if c.distance.calls > 1 {
		c.left = time.Now()
	}
}

// fly makes one call and measures it, unless it failed without an answer: such a call ends early or late.
func (c *Committer) fly(call []*Submission) {
	decisions := 0
	for _, s := range call {
		decisions += len(s.Decisions)
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

// Send queues s without a waiting caller. s.after gets the answer.
func (c *Committer) Send(s *Submission) {
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
func (c *Committer) push(s *Submission) {
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
func (c *Committer) another() bool {
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
func (c *Committer) due() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timed = false
	if c.queue.first != nil && c.flying > 0 && c.flying < c.distance.most {
		c.leaves()
		go c.land()
	}
}

func (c *Committer) Wait(ctx context.Context, s *Submission) error {
	select {
	case <-s.done:
		return s.Err
	case <-ctx.Done():
	}
	if c.leave(s) {
		return fault.Uncounted(fault.Cancelled, ctx.Err())
	}
	c.unheard.Add(1) // before an answer can find the caller gone
	if s.state.CompareAndSwap(open, gone) {
		return &fault.Error{Reason: fault.Cancelled, Err: ctx.Err()}
	}
	c.unheard.Add(-1)
	<-s.done
	return s.Err
}

// leave removes s from the queue and reports whether it was still there.
func (c *Committer) leave(s *Submission) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queue.remove(s)
}

// waiting returns the number of decisions in the queue.
func (c *Committer) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queue.decisions
}

// land ends a call. The queued callers leave with the next call at once, until the queue is empty. It first lets the
// answered callers run, because most of them ask again; otherwise half of them would miss the next call.
func (c *Committer) land() {
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
func (c *Committer) next() []*Submission {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queue.first == nil {
		c.flying--
		return nil
	}
	batch := make([]*Submission, 0, min(c.queue.decisions, c.most))
	size, work := 0, workload{}
	for s := c.queue.first; s != nil; s = c.queue.first {
		size += len(s.Decisions)
		for i := range s.Decisions {
			work.add(&s.Decisions[i])
		}
		if len(batch) > 0 && (size > c.most || work.full()) {
			break
		}
		c.queue.remove(s)
		batch = append(batch, s)
	}
	return batch
}

// workload is the work of the decisions of a call. A state is read once.
type workload struct {
	total int
	heavy int             // that of heavy states
	read  map[string]bool // the keys of heavy states
}

func (w *workload) add(d *wire.Decision) {
	for i := range d.Parts {
		p := &d.Parts[i]
		work := p.Limit.Weight
		if work >= stored.HeavyWork {
			if w.read[p.Key] {
				work = stored.LaterWork
			} else {
				if w.read == nil {
					w.read = map[string]bool{}
				}
				w.read[p.Key] = true
				w.heavy += work
			}
		}
		w.total += work
	}
}

// full reports whether the work is more than a call may have.
func (w *workload) full() bool { return w.total > stored.MostWork || w.heavy > stored.MostHeavy }
