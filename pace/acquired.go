package pace

import (
	"context"
	"time"

	"github.com/weirflow/weir"
)

// Acquired is what Queue.Acquire took. Its methods Settle, Cancel and Done work like the reservation's; they also
// let the next caller of the queue ask for the slots.
type Acquired struct {
	*weir.Reservation
	queue *Queue
	keys  []string // by name
	since time.Time
}

// Done reports that the work was done: slots come back, other units stay spent.
func (a *Acquired) Done(ctx context.Context) error {
	return a.queue.settle(a, func() error { return a.Reservation.Done(ctx) })
}

// Cancel reports that the work was not done, and gives everything back.
func (a *Acquired) Cancel(ctx context.Context) error {
	return a.queue.settle(a, func() error { return a.Reservation.Cancel(ctx) })
}

// Settle reports the true cost of the work, and releases every slot.
func (a *Acquired) Settle(ctx context.Context, actual ...int64) error {
	return a.queue.settle(a, func() error { return a.Reservation.Settle(ctx, actual...) })
}

// settle settles and lets the next callers for the keys go. On the memory engine, which does not block, both are one
// step: otherwise the units of two settlements would come back before a waiting caller can use those of the first, and
// units above the capacity would be lost.
func (q *Queue) settle(a *Acquired, settle func() error) error {
	if q.exact == nil {
		held := time.Since(a.since)
		err := settle()
		q.mu.Lock()
		defer q.mu.Unlock()
		q.ask.returned(a.keys, held)
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.exact.returned(a.keys)
	return settle()
}
