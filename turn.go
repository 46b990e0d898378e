package weir

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/weirflow/weir/internal/line"
)

// Turn asks for a turn in line.
type Turn struct {
	Cost  int64         // 0 passes at once
	Class int           // index into Options.Weights
	Max   time.Duration // the longest wait; 0 is no bound but the context's
	// Slots, unless it is nil, collects the slots of a Concurrency that the turn
	// acquires, so that the caller can release these and nobody else's. A caller
	// without it releases slots with Record and a negative cost.
	Slots *Slots
}

// longest is the longest wait that t.Max stands for.
func (t Turn) longest() time.Duration {
	if t.Max == 0 {
		return Never
	}
	return max(t.Max, 0)
}

// inLine is the turn as a line knows it.
func (t Turn) inLine() line.Turn {
	return line.Turn{Cost: t.Cost, Class: t.Class, Longest: int64(t.Max), Lease: t.Slots.toAcquire()}
}

// owner holds subjects under a lock of its own: a Limiter, or the key of a Keyed.
type owner interface {
	// withSubject calls do with the subject and the time, under the lock.
	withSubject(do func(s *line.Subject, now int64)) error
}

// await waits for the place w in line, which is nil if the turn was taken at
// once. If there is no error, it notes the slots that the turn acquired for o.
func (t Turn) await(ctx context.Context, lines *line.Lines, jitter time.Duration, o owner, w *line.Waiter) error {
	if w != nil {
		if err := lines.Await(ctx, w, int64(t.Max)); err != nil {
			return refusal(opWait, err)
		}
		if err := holdBack(ctx, jitter); err != nil {
			giveBack(o, t.Cost, t.Slots.identity())
			return err
		}
	}
	t.Slots.keep(o, t.Cost)
	return nil
}

// holdBack sleeps for a random time below jitter.
func holdBack(ctx context.Context, jitter time.Duration) error {
	if jitter <= 0 {
		return nil
	}
	timer := time.NewTimer(rand.N(jitter))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return refusal(opWait, ctx.Err())
	}
}

// Slots collect the slots of a Concurrency that one caller acquires by its
// turns: see Turn.Slots. The zero value is ready for use. It is not safe for
// concurrent use.
type Slots struct {
	lease line.Lease
	back  []func() // release slots
}

// Held reports whether turns have acquired slots that are not yet released.
// Units of any other limit are spent, and are not held.
func (s *Slots) Held() bool { return len(s.back) > 0 }

// Release releases the slots that are held. It never releases a slot of another
// caller, even if the lease of these slots has expired meanwhile.
func (s *Slots) Release() {
	for _, release := range s.back {
		release()
	}
	s.back = nil
}

// toAcquire is the lease for the slots of a turn; nil if nobody collects them.
func (s *Slots) toAcquire() *line.Lease {
	if s == nil {
		return nil
	}
	if s.lease.Identity == 0 {
		s.lease.Identity = newIdentity()
	}
	return &s.lease
}

// identity is the one that the slots are held by; 0 is none.
func (s *Slots) identity() uint64 {
	if s == nil {
		return 0
	}
	return s.lease.Identity
}

// keep notes the slots of a turn of n units that was granted, if it took any.
func (s *Slots) keep(o owner, n int64) {
	if s == nil || !s.lease.Acquired {
		return
	}
	s.lease.Acquired = false
	s.back = append(s.back, func() { giveBack(o, n, s.lease.Identity) })
}

// giveBack gives units back to their subject. A key whose limit has become
// invalid has none.
func giveBack(o owner, n int64, identity uint64) {
	_ = o.withSubject(func(s *line.Subject, now int64) { s.RecordFor(now, -n, identity) })
}

// booking is a reservation of a subject in this process.
type booking struct {
	Reservation
	owner   owner
	booking line.Booking
}

// newBooking takes cost n of the subject of an owner, whose lock is held.
func newBooking(o owner, s *line.Subject, now, n int64, longest time.Duration) (*Reservation, error) {
	b := &booking{owner: o, booking: line.Booking{Cost: n, Identity: newIdentity()}}
	b.handle = b
	answer, err := s.Book(&b.booking, now, int64(max(longest, 0)))
	if err != nil {
		return &b.Reservation, refusal(opReserve, err)
	}
	b.Decision = decision(answer)
	return &b.Reservation, nil
}

func (b *booking) requests() int { return 1 }

func (b *booking) settle(_ context.Context, s settlement) (outcome, error) {
	err := b.owner.withSubject(func(subject *line.Subject, now int64) {
		if s.done {
			subject.Finish(&b.booking, now)
		} else {
			subject.Settle(&b.booking, now, s.used(0))
		}
	})
	if err != nil {
		return open, err
	}
	return settled, nil
}
