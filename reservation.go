package weir

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weirflow/weir/internal/clock"
)

// Reservation is a cost that was taken before the work was done, or before its
// instant. Engine.Reserve, Limiter.Reserve and Keyed.Reserve return it. One of
// Settle, Cancel and Done settles it: the first that succeeds wins, and later ones
// do nothing. All methods may be called on a nil Reservation, and do nothing on a
// refused one. If a reservation is forgotten, its units stay spent.
//
// On an engine, a settlement that failed can be tried again if it was certainly
// not counted ([MayHaveCounted]). If nobody knows, only the slots of a
// [Concurrency] are still open, since their identity makes it safe to release them
// again. Other units stay as they are.
//
// In process, a reservation may be for an instant to come. While a promised
// instant lies ahead, only the newest reservation of the subject can be undone, and
// exactly. Nothing comes back from an older one, because nobody may overtake a
// promised instant.
type Reservation struct {
	// Decision is the answer to the reservation itself. If it is allowed, the
	// caller goes ahead after Decision.Delay.
	Decision Decision

	handle handle // nil if there is nothing to settle

	mu     sync.Mutex
	ended  bool        // nothing is left to settle
	expiry *time.Timer // nil without a lifetime
}

// handle is where the units of a reservation are.
type handle interface {
	// requests is how many there are.
	requests() int
	// settle settles once.
	settle(ctx context.Context, s settlement) (outcome, error)
}

// outcome says what is left to settle.
type outcome uint8

const (
	open    outcome = iota // what was not settled can be tried again
	settled                // nothing is left
	lost                   // after an error: nobody can try again for some units
)

// settlement says what the work cost: one number for each request, or one for all.
type settlement struct {
	actual []int64
	done   bool // the cost is what was reserved, and slots are released
}

// used is the cost of the i-th request.
func (s *settlement) used(i int) int64 { return s.actual[min(i, len(s.actual)-1)] }

// Settle says what the work really cost: the difference is given back, or recorded
// on top. One number holds for every request of the reservation; otherwise there
// is one for each, in their order.
//
// The work may have outlived its context: if ctx has ended, or ends meanwhile,
// Settle goes on for at most a second.
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

// Cancel says that the work was not done: everything is given back, as by
// Settle(ctx, 0). It may be deferred right after Reserve, also where that failed,
// and with a context that has ended by then.
func (r *Reservation) Cancel(ctx context.Context) error { return r.Settle(ctx, 0) }

// Done says that the work was done: the slots of a [Concurrency] are released, and
// all other units stay spent. It may be deferred like Cancel.
func (r *Reservation) Done(ctx context.Context) error {
	if r == nil || r.handle == nil {
		return nil
	}
	return r.settle(ctx, settlement{actual: []int64{0}, done: true})
}

// settle settles also after ctx has ended.
func (r *Reservation) settle(ctx context.Context, s settlement) error {
	left, err := r.handle.settle(ctx, s)
	if err != nil && ctx.Err() != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWithin)
		defer cancel()
		now, again := r.handle.settle(ctx, s)
		if again != nil || left != lost {
			err = again
		}
		left = now
	}
	if left == settled {
		r.endLifetime()
	}
	return err
}

// settleWithin bounds a settlement whose context has ended.
const settleWithin = time.Second

// CancelAfter gives the reservation a lifetime: if it is not settled within d, it
// is cancelled. It does nothing on a settled one. A cancellation that fails is
// tried again for some hours.
func (r *Reservation) CancelAfter(d time.Duration) {
	if r == nil || r.handle == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	if r.expiry != nil {
		r.expiry.Stop()
	}
	r.expiry = time.AfterFunc(d, func() { r.expire(clock.Retry) })
}

func (r *Reservation) endLifetime() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	if r.expiry != nil {
		r.expiry.Stop()
	}
}

// expire cancels a reservation whose lifetime has ended, and tries again later if
// that fails or a function of the caller panics.
func (r *Reservation) expire(retryAfter time.Duration) {
	cancelled := false
	defer func() {
		_ = recover()
		if !cancelled && retryAfter < time.Hour {
			time.AfterFunc(retryAfter, func() { r.expire(2 * retryAfter) })
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), settleWithin)
	defer cancel()
	cancelled = r.Cancel(ctx) == nil
}

// Lost is closed when a lease of the reservation was lost before it was settled,
// so that the work should stop. It is never closed where leases cannot be lost,
// as on a Limiter, a Keyed, a Memory and Redis: there a lease ends at its time.
func (r *Reservation) Lost() <-chan struct{} { return nil }
