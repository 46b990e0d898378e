package weir

import (
	"context"
	"fmt"
	"time"
)

// Reservation is a cost that was taken before the work was done, or before its instant. Engine.Reserve,
// Limiter.Reserve and Keyed.Reserve return it. One of Settle, Cancel and Done settles it: the first that succeeds
// wins, and later ones do nothing. All methods work on a nil Reservation, and do nothing on a refused one. The units
// of a reservation that is never settled stay spent.
//
// On an engine, a failed settlement can be tried again if it was certainly not counted ([WasCounted]). If that is
// unknown, only the slots of a [Concurrency] can still be settled, since their identity makes a repeated release
// safe. Other units stay as they are.
//
// Settle and Cancel undo the reservation's own take. A window, a cycle, a log or a gate gets units back only while they
// still count there, so a late settlement adds nothing to another window. A bucket gets all of them back, up to full, however
// late. If estimates come back after the bucket has refilled, up to one burst more passes at once.
//
// In process, a reservation may be for a later instant. Until that instant, only the newest reservation of the
// subject can be undone, and exactly, also after SetLimit. An older one gives nothing back, because release times are never
// changed.
type Reservation struct {
	// Decision is the answer to the reservation. If it is allowed, the caller goes ahead after Decision.Delay.
	Decision Decision

	handle handle          // nil if there is nothing to settle
	lease  uint64          // that holds its slots
	taken  []int64         // when the units of each request were taken; nil if nobody knows
	lost   <-chan struct{} // nil if no lease can be lost before its time
}

// handle settles the units of a reservation.
type handle interface {
	// requests returns the number of requests.
	requests() int
	// settle settles once.
	settle(ctx context.Context, s settlement) (outcome, error)
}

// outcome is the state after a settlement.
type outcome uint8

const (
	open    outcome = iota // the rest can be settled later
	settled                // nothing is left
	lost                   // failed, and some units can no longer be settled
)

// settlement is the true cost of the work: one number for each request, one for all, or none if the reserved costs were
// right. It releases all slots, whatever numbers it has for them.
type settlement struct{ actual []int64 }

// used returns the true cost of the i-th request.
func (s settlement) used(i int, reserved int64) int64 {
	if len(s.actual) == 0 {
		return reserved
	}
	return s.actual[min(i, len(s.actual)-1)]
}

// Settle reports the true cost of the work. It gives back the part of the difference that still counts, or records the
// difference in addition. One number holds for every request of the reservation; otherwise there is one for each. Every
// slot of a [Concurrency] is released, and a number given for slots is ignored. If a log has no space for a cost, that
// is an error.
//
// The work may outlive its context: if ctx has ended, or ends meanwhile, Settle continues for at most a second.
func (r *Reservation) Settle(ctx context.Context, actual ...int64) error {
	if r == nil || r.handle == nil {
		return nil
	}
	if n := r.handle.requests(); len(actual) != 1 && len(actual) != n {
		return &RequestError{Op: opSettle, Field: "cost", Reason: fmt.Sprintf("has %d values for %d requests", len(actual), n)}
	}
	for _, a := range actual {
		if a < 0 {
			return &RequestError{Op: opSettle, Field: "cost", Reason: fmt.Sprintf("%d is negative", a)}
		}
	}
	return r.settle(ctx, settlement{actual: actual})
}

// Cancel reports that the work was not done, and gives back all that still counts, like Settle(ctx, 0). A caller may defer
// it right after Reserve, even if Reserve fails or the context ends before.
//
// Settle the reservation, or call Done, once the work is done: Cancel would give a bucket the units of that work back. In
// x/time/rate a late Cancel does nothing.
func (r *Reservation) Cancel(ctx context.Context) error { return r.Settle(ctx, 0) }

// Done reports that the work was done: it releases the slots of a [Concurrency], and all other units stay spent. A
// caller may defer it like Cancel.
func (r *Reservation) Done(ctx context.Context) error {
	if r == nil || r.handle == nil {
		return nil
	}
	return r.settle(ctx, settlement{})
}

// settle continues after ctx has ended.
func (r *Reservation) settle(ctx context.Context, s settlement) error {
	left, err := r.handle.settle(ctx, s)
	if err != nil && ctx.Err() != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWithin)
		defer cancel()
		if _, again := r.handle.settle(ctx, s); again != nil || left != lost {
			err = again
		}
	}
	return err
}

// settleWithin bounds a settlement whose context has ended.
const settleWithin = time.Second

// Lost returns a channel that is closed if a slot of the reservation is lost before its settlement, so that the work
// should stop. It closes only on an engine that renews slots (a [SlotKeeper], such as Redis). Elsewhere a lease ends at its
// time, and the channel never closes.
func (r *Reservation) Lost() <-chan struct{} {
	if r == nil {
		return nil
	}
	return r.lost
}
