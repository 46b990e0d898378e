package waittest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

// worker is a process of a schedule.
type worker struct {
	*schedule
	queue *pace.Queue
	ctx   context.Context // for its callers
	end   func()
	dead  atomic.Bool
	holds map[string]int64 // by rule; the schedule's lock guards it
}

// start starts a process and its callers.
func (s *schedule) start(callers *sync.WaitGroup) *worker {
	w := &worker{schedule: s, holds: map[string]int64{}}
	w.ctx, w.end = context.WithDeadline(s.Context(), s.stops.Add(patience))
	n := s.network()
	down, deaf := n.Down, n.Deaf
	n.Down = func() bool { return w.dead.Load() || down() }
	n.Deaf = func() bool { return w.dead.Load() || deaf() }
	queue, err := pace.NewQueue(s.world.Connect(n), pace.QueueOptions{Resolve: resolve, NoBooking: s.world.Asks})
	if err != nil {
		s.Fatal(err)
	}
	w.queue = queue
	for range 1 + s.random.IntN(4) {
		c := &caller{worker: w, requests: s.requests(), works: time.Duration(1+s.random.IntN(40)) * time.Millisecond, flow: s.random.IntN(3), takes: s.random.IntN(2) == 0}
		if s.random.IntN(4) == 0 {
			c.leaves, c.tells = time.Duration(1+s.random.IntN(300))*time.Millisecond, s.random.IntN(2) == 0
		}
		callers.Go(c.run)
	}
	for range s.random.IntN(3) {
		h, requests, flow, pause := &allHopeless[s.random.IntN(len(allHopeless))], s.requests(), s.random.IntN(3), time.Duration(1+s.random.IntN(100))*time.Millisecond
		callers.Go(func() { w.bother(h, requests[0], flow, pause) })
	}
	return w
}

// bother makes hopeless calls.
func (w *worker) bother(h *hopeless, r weir.Request, flow int, pause time.Duration) {
	for time.Now().Before(w.stops) && !w.dead.Load() {
		if q, err := w.queue.InFlow(flows[flow], int64(1+flow)); err != nil {
			w.Error(err)
		} else {
			h.call(w.ctx, w.T, q, r)
		}
		time.Sleep(pause)
	}
}

var flows = []string{"", "", "f"}

// die ends a process: none of its calls reaches the server any more, and no other process hears of its slots.
func (w *worker) die() {
	w.mu.Lock()
	w.dead.Store(true)
	for name, n := range w.holds {
		w.held[name] -= n
	}
	w.mu.Unlock()
	w.end()
}

// hold notes slots that come into use, and those that no longer are.
func (w *worker) hold(requests []weir.Request, sign int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range requests {
		if weir.Kit.Held(r.Rule) == nil || w.dead.Load() {
			continue
		}
		name := r.Rule.Name()
		w.holds[name] += sign * r.Cost
		if w.held[name] += sign * r.Cost; w.held[name] > weir.Describe(r.Rule.Limits()[0]).Capacity {
			w.Errorf("%d units of %v are held", w.held[name], r.Rule)
		}
	}
}

// caller waits for the same requests again and again.
type caller struct {
	*worker
	requests []weir.Request
	works    time.Duration
	flow     int
	takes    bool
	leaves   time.Duration // unless it is 0
	tells    bool          // the queue beforehand
	last     time.Time     // when it went
}

func (c *caller) run() {
	for time.Now().Before(c.stops) && !c.dead.Load() {
		if !c.once() {
			return
		}
	}
	bounded := len(c.requests) == 1 && (c.requests[0].Cost == 1 || !c.several) && c.leaves == 0
	if bounded && !c.dead.Load() && c.last.Before(c.stops.Add(-patience)) {
		c.Errorf("a caller of %v went %v before the end for the last time", c, c.stops.Sub(c.last))
	}
}

// once waits once, and reports whether to go on.
func (c *caller) once() bool {
	ctx, cancel := c.patience()
	defer cancel()
	done, err := c.acquire(ctx)
	switch {
	case err == nil:
		c.last = time.Now()
		c.hold(c.requests, 1)
		time.Sleep(c.works)
		c.hold(c.requests, -1)
		_ = done(context.Background()) // a lost one is repeated
		return true
	case c.dead.Load():
		return false
	case !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded):
		c.Errorf("a caller of %v: %v", c, err)
		return false
	case c.ctx.Err() != nil:
		c.Errorf("a caller of %v still waits %v after all others", c, patience)
		return false
	}
	time.Sleep(time.Millisecond) // it was refused at once
	return true
}

// patience returns the context of one wait.
func (c *caller) patience() (context.Context, func()) {
	switch {
	case c.leaves == 0:
		return c.ctx, func() {}
	case c.tells:
		return context.WithTimeout(c.ctx, c.leaves)
	}
	ctx, cancel := context.WithCancel(c.ctx)
	leaves := time.AfterFunc(c.leaves, cancel)
	return ctx, func() { leaves.Stop(); cancel() }
}

// acquire waits in the caller's flow. It only takes from a leaky bucket, whose delay a reservation cannot carry.
func (c *caller) acquire(ctx context.Context) (done func(context.Context) error, err error) {
	flow, err := c.queue.InFlow(flows[c.flow], int64(1+c.flow))
	if err != nil {
		return nil, err
	}
	r := c.requests[0].Rule
	if len(c.requests) == 1 && weir.Kit.Held(r) == nil && (r.Delays() || c.takes) {
		_, err = flow.Wait(ctx, c.requests...)
		return func(context.Context) error { return nil }, err
	}
	a, err := flow.Acquire(ctx, c.requests...)
	if err != nil {
		return nil, err
	}
	return a.Done, nil
}

func (c *caller) String() string {
	var texts []string
	for _, r := range c.requests {
		texts = append(texts, r.Rule.String())
	}
	return strings.Join(texts, " and ")
}
