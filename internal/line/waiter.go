package line

import "github.com/weirflow/weir/internal/algorithm"

// Waiter is a place in a line.
type Waiter struct {
	subject  *Subject
	n        int64
	arrived  int64
	class    int
	queued   bool
	done     chan error // gets nil when the waiter is let go; nil for a booking
	promised int64      // when a booking goes
	lease    *Lease     // of the slots that it acquires; nil if nobody asks
	run      *run

	previous, next *Waiter // in its class
}

// isBooking reports whether nobody sleeps in this place.
func (w *Waiter) isBooking() bool { return w.done == nil }

// spentAt returns the instant to take the units of a booking at.
func (w *Waiter) spentAt(a algorithm.Algorithm) int64 {
	if algorithm.Planned(a) {
		return w.promised - 1
	}
	return w.promised
}

// wakeUps are waiters that were let go and are still asleep, in order.
type wakeUps struct{ first, last *Waiter }

func (u *wakeUps) add(w *Waiter) {
	if u.last == nil {
		u.first = w
	} else {
		u.last.next = w
	}
	u.last = w
}

func (u *wakeUps) wake() {
	for w := u.first; w != nil; {
		next := w.next
		w.done <- nil
		w = next
	}
}
