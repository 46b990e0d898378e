package pace

import (
	"context"

	"github.com/weirflow/weir"
)

// Acquired is what Queue.Acquire took. Its methods Settle, Cancel and Done are those of the reservation; they also
// let the next caller of the queue ask for the slots.
type Acquired struct {
	*weir.Reservation
	queue *Queue
	slots []string
}

// Done reports that the work was done: slots come back, other units stay spent.
func (a *Acquired) Done(ctx context.Context) error {
	defer a.queue.released(a.slots)
	return a.Reservation.Done(ctx)
}

// Cancel reports that the work was not done, and gives everything back.
func (a *Acquired) Cancel(ctx context.Context) error {
	defer a.queue.released(a.slots)
	return a.Reservation.Cancel(ctx)
}

// Settle reports the true cost of the work.
func (a *Acquired) Settle(ctx context.Context, actual ...int64) error {
	defer a.queue.released(a.slots)
	return a.Reservation.Settle(ctx, actual...)
}
