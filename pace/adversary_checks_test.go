package pace_test

import (
	"context"
	"slices"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

// watch fails when the engine would admit a caller, and no earlier caller is before it, for longer than the slack.
func (a *adversary) watch() {
	now := time.Now()
	for _, c := range a.callers {
		a.mu.Lock()
		first := c.waiting && !a.behind(c)
		a.mu.Unlock()
		if !first {
			c.free = time.Time{}
			continue
		}
		if d, err := a.engine.Peek(context.Background(), c.requests...); err != nil || !d.Allowed {
			c.free = time.Time{}
			continue
		}
		if c.free.IsZero() {
			c.free = now
		}
		if late := now.Sub(c.free); late > a.slack+100*time.Millisecond {
			a.Errorf("caller %d of queue %d, in flow %q, acquires %v, asks for %v since %v: the engine has admitted it for %v", c.number, c.queue, c.flow, c.acquires, texts(c.requests), c.came.Sub(a.start), late)
			a.end()
			return
		}
	}
}

// behind reports whether a caller shares a key with c and may go before it: one of its queue, or an older one of any queue
// if the engine keeps lines. The caller holds the lock.
func (a *adversary) behind(c *hunted) bool {
	return slices.ContainsFunc(a.callers, func(e *hunted) bool {
		before := e.number < c.number && (e.queue == c.queue || a.name == "books") || e.queue == c.queue && e.flow != c.flow
		if e == c || !e.waiting || !before {
			return false
		}
		return slices.ContainsFunc(c.requests, func(q weir.Request) bool { return slices.ContainsFunc(e.requests, sameKey(q)) })
	})
}

func sameKey(q weir.Request) func(o weir.Request) bool {
	return func(o weir.Request) bool { return o.Rule == q.Rule && o.Key == q.Key }
}

// checkCounts compares the statistics of the queues with what became of the callers.
func (a *adversary) checkCounts() {
	var all pace.QueueCounts
	for _, q := range a.queues {
		if err := q.Flush(context.Background()); err != nil {
			a.Error(err)
		}
		s := q.Stats()
		all.Granted += s.Granted
		all.Fault += s.Late + s.Left + s.Full + s.Never + s.Fault
		if s.Waiting != 0 || q.Waiting() != 0 {
			a.Errorf("%d or %d callers wait at the end", s.Waiting, q.Waiting())
		}
	}
	went := uint64(0)
	for _, c := range a.callers {
		if c.went >= 0 {
			went++
		}
	}
	if all.Granted != went || all.Granted+all.Fault != uint64(len(a.callers)) {
		a.Errorf("the queues count %d granted and %d other callers; %d of %d went", all.Granted, all.Fault, went, len(a.callers))
	}
}

// checkSlots looks whether all slots are back.
func (a *adversary) checkSlots() {
	for _, r := range a.rules {
		slots, is := r.Limits()[0].(weir.Concurrency)
		if !is || len(r.Limits()) > 1 {
			continue
		}
		for _, key := range []string{"0", "1"} {
			if d, err := a.engine.Peek(context.Background(), r.For(key, slots.Slots)); err != nil || !d.Allowed {
				a.Errorf("%v of key %s at the end: %+v, %v", r, key, d, err)
			}
		}
	}
}

// checkOrder looks whether callers of a queue with the same requests went in order of arrival.
func (a *adversary) checkOrder() {
	for i, c := range a.callers {
		for _, e := range a.callers[:i] {
			alike := c.queue == e.queue && c.acquires == e.acquires && slices.Equal(c.requests, e.requests)
			if alike && c.flow == "" && e.flow == "" && c.went >= 0 && c.went < e.went {
				a.Errorf("caller %d went at %v, before caller %d, at %v, with the same requests %v", c.number, c.went, e.number, e.went, texts(c.requests))
			}
		}
	}
}
