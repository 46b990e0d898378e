package pace_test

import (
	"context"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

// hunted is a caller of an adversary.
type hunted struct {
	queue    int
	number   int
	requests []weir.Request
	acquires bool
	flow     string
	came     time.Time
	deadline time.Time // zero means none
	waiting  bool
	went     time.Duration // -1 if it was not granted
	free     time.Time     // since when the engine would admit it, zero if it does not
}

// caller waits, and holds what it acquired.
func (a *adversary) caller(c *hunted) {
	time.Sleep(time.Until(c.came))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if !c.deadline.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, c.deadline)
		defer cancel()
	}
	end := a.start.Add(time.Hour)
	if a.n(4) == 0 && !a.patient {
		end = time.Now().Add(a.time(8 * time.Second))
	}
	time.AfterFunc(time.Until(end), cancel)
	if !c.deadline.IsZero() && c.deadline.Before(end) {
		end = c.deadline
	}
	wait, acquire := a.queues[c.queue].Wait, a.queues[c.queue].Acquire
	if c.flow != "" {
		f := mustFlow(a.T, a.queues[c.queue], c.flow, 1+int64(len(c.flow)))
		wait, acquire = f.Wait, f.Acquire
	}
	a.mu.Lock()
	c.waiting = true
	a.mu.Unlock()
	var acquired *pace.Acquired
	var err error
	if c.acquires {
		acquired, err = acquire(ctx, c.requests...)
	} else {
		_, err = wait(ctx, c.requests...)
	}
	a.mu.Lock()
	c.waiting = false
	if err == nil {
		c.went = time.Since(a.start)
	}
	a.mu.Unlock()
	if now := time.Now(); now.After(end) {
		a.Errorf("caller %d: ends %v after its end: %v", c.number, now.Sub(end), err)
	}
	if acquired != nil {
		time.Sleep(a.time(3 * time.Second))
		done := acquired.Done
		if a.n(3) == 0 && a.name == "memory" && len(a.queues) == 1 {
			done = acquired.Cancel
		}
		for done(context.Background()) != nil {
			time.Sleep(time.Millisecond)
		}
	}
}

func (a *adversary) makeUpCallers() {
	flows := a.n(3) == 0
	var shapes [][]weir.Request
	for range 1 + a.n(5) {
		shapes = append(shapes, a.requests())
	}
	came := a.start
	for i := range 2 + a.n(40) {
		came = came.Add(1 + a.time(500*time.Millisecond))
		c := &hunted{queue: a.n(len(a.queues)), number: i, requests: shapes[a.n(len(shapes))], went: -1, came: came}
		c.acquires = hasSlots(c.requests) || a.n(5) == 0
		if flows {
			c.flow = a.one("", "a", "b")
		}
		if a.n(3) == 0 && !a.patient {
			c.deadline = c.came.Add(a.time(10 * time.Second))
		}
		a.callers = append(a.callers, c)
	}
}
