package pace

import (
	"cmp"
	"slices"
)

// Changed has all waiting callers use the rules in force: see QueueOptions.Resolve. Booked instants stay as they are.
func (q *Queue) Changed() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.exact != nil {
		q.exact.changed()
	}
	for _, k := range q.ask.keys {
		k.rouse()
	}
	q.ask.sendReady()
	if q.book != nil {
		for _, k := range q.book.keys {
			k.forgetRefusal()
			k.book()
		}
	}
}

// changed moves the callers whose rules have changed.
func (l *exact) changed() {
	var moved []*caller
	for _, line := range l.lines {
		moved = slices.AppendSeq(moved, line.callers.All)
	}
	moved = slices.DeleteFunc(moved, func(c *caller) bool {
		before := c.requests
		changed := l.queue.changes(c)
		after := c.requests
		if c.requests = before; changed { // used to remove it
			l.remove(c)
			c.requests = after
		}
		return !changed
	})
	slices.SortFunc(moved, func(a, b *caller) int { return cmp.Compare(a.Arrival, b.Arrival) })
	for _, c := range moved {
		l.queue.rejoin(c)
	}
	l.look()
}

// rejoin adds a caller that has left its strategy to that of its present requests. It keeps its age.
func (q *Queue) rejoin(c *caller) {
	c.group, c.booked, c.line = nil, nil, nil
	if err := guarded(func() error { return q.place(c) }); err != nil {
		q.end(c, err)
	}
}
