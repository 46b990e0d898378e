package line

import (
	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/fair"
)

// Waiter is a place in a line.
type Waiter struct {
	fair.Node[*Waiter]

	subject  *Subject
	arrived  int64
	done     chan struct{} // closed at the release; nil for a booking
	err      error         // of the release
	promised int64         // the instant of a booking
	lease    *Lease        // of the slots that it acquires, or nil
}

// isBooking reports whether the place is a booking, without a sleeping caller.
func (w *Waiter) isBooking() bool { return w.done == nil }

// queued reports whether the waiter is in line.
func (w *Waiter) queued() bool { return w.Queued() }

// spentAt returns the instant at which the units of a booking are taken.
func (w *Waiter) spentAt(a algorithm.Algorithm) int64 {
	if algorithm.Planned(a) {
		return w.promised - 1
	}
	return w.promised
}
