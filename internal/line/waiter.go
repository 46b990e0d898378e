package line

import "github.com/weirflow/weir/internal/algorithm"

// Waiter is a place in a line.
type Waiter struct {
	subject  *Subject
	n        int64
	arrived  int64
	number   uint64 // in order of arrival
	in       *flow
	place    int           // in the sums of its flow, if it has any
	done     chan struct{} // closed at the release; nil for a booking
	err      error         // of the release
	promised int64         // the instant of a booking
	lease    *Lease        // of the slots that it acquires, or nil
	run      *run          // nil if it is not in line

	previous, next *Waiter // in its flow
}

// isBooking reports whether the place is a booking, without a sleeping caller.
func (w *Waiter) isBooking() bool { return w.done == nil }

// queued reports whether the waiter is in line.
func (w *Waiter) queued() bool { return w.run != nil }

// spentAt returns the instant at which the units of a booking are taken.
func (w *Waiter) spentAt(a algorithm.Algorithm) int64 {
	if algorithm.Planned(a) {
		return w.promised - 1
	}
	return w.promised
}

// wakeUps are released waiters that are still asleep, in order.
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
		close(w.done)
		w = next
	}
}
