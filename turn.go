package weir

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weirflow/weir/internal/line"
)

// Turn is a request to wait for units.
type Turn struct {
	Cost  int64 // a cost of 0 does not wait
	Class int   // index into Options.Weights
	// Flow names a group of callers that go in order of arrival. Flows share the limit by weight, like classes. Callers
	// without a Flow form one for each Class. While a reservation is in line, all callers go in order of arrival.
	Flow string
	// Weight is the weight of the Flow, 1 to 1024. The first waiting caller of a flow chooses it. Default: 1.
	Weight int64
	Max    time.Duration // the maximum wait; 0 means that only the context bounds it
	// Slots, if not nil, collects the slots of a Concurrency that the turn acquires, so that the caller can release
	// exactly these. Without it, the caller releases slots with Return.
	Slots *Slots
}

// longest returns the maximum wait for t.Max.
func (t Turn) longest() time.Duration { return max(cmp.Or(t.Max, Never), 0) }

// late returns the refusal of a turn that would come after need; 0 means that it has come.
func (t Turn) late(lines *line.Lines, need int64) error {
	if need == 0 {
		return nil
	}
	lines.Ends(line.Late)
	return &WaitError{Need: time.Duration(need), Bound: t.Max}
}

// inLine converts the turn to the form of a line.
func (t Turn) inLine() line.Turn {
	flow := line.Flow{Name: t.Flow}
	if t.Flow == "" {
		flow.Class = t.Class
	}
	return line.Turn{Cost: t.Cost, Flow: flow, Weight: t.Weight, Longest: int64(t.Max), Lease: t.Slots.toAcquire()}
}

// owner holds subjects under its own lock: a Limiter, or a key of a Keyed.
type owner interface {
	// withSubject calls do with the subject and the time, under the lock.
	withSubject(do func(s *line.Subject, now int64)) error
}

// await waits for the turn of w, or returns at once if w is nil because the cost was taken. Without an error, it
// records the slots that the turn acquired.
func await[O owner](ctx context.Context, t Turn, lines *line.Lines, jitter time.Duration, o O, w *line.Waiter) error {
	if w != nil {
		if err := lines.Await(ctx, w, int64(t.Max)); err != nil {
			return refusal(opWait, err)
		}
		if err := line.Sleep(ctx, rand.N(max(jitter, 1))); err != nil {
			giveBack(o, t.Cost, t.Slots.identity())
			return refusal(opWait, err)
		}
	}
	if t.Slots != nil {
		t.Slots.keep(o, t.Cost)
	}
	return nil
}

// Slots collects the slots of a Concurrency that one caller acquires with its turns: see Turn.Slots. The zero value
// is ready for use. It is not safe for concurrent use.
type Slots struct {
	lease line.Lease
	back  []func() // release slots
}

// Held reports whether turns have acquired slots that are not yet released. Units of other limits are spent, not held.
func (s *Slots) Held() bool { return len(s.back) > 0 }

// Release releases the held slots. It never releases a slot of another caller, even if the lease of its own slots has
// expired.
func (s *Slots) Release() {
	for _, release := range s.back {
		release()
	}
	s.back = nil
}

// toAcquire returns the lease for the slots of a turn, or nil without a Slots.
func (s *Slots) toAcquire() *line.Lease {
	if s == nil {
		return nil
	}
	if s.lease.Identity == 0 {
		s.lease.Identity = Kit.NewLease()
	}
	return &s.lease
}

// identity returns the identity that holds the slots; 0 means none.
func (s *Slots) identity() uint64 {
	if s == nil {
		return 0
	}
	return s.lease.Identity
}

// keep records the slots of a granted turn of n units, if it took any.
func (s *Slots) keep(o owner, n int64) {
	if !s.lease.Acquired {
		return
	}
	s.lease.Acquired = false
	s.back = append(s.back, func() { giveBack(o, n, s.lease.Identity) })
}

// giveBack gives units back to their subject. A key whose limit has become invalid has no subject.
func giveBack(o owner, n int64, identity uint64) {
	_ = o.withSubject(func(s *line.Subject, now int64) { s.RecordFor(now, -n, identity) })
}

// booking is a reservation of a subject in this process.
type booking struct {
	Reservation
	owner   owner
	booking line.Booking
}

// newBooking takes cost n of the subject of an owner, whose lock the caller holds.
func newBooking(o owner, s *line.Subject, now, n int64, longest time.Duration) (*Reservation, error) {
	b := &booking{owner: o, booking: line.Booking{Cost: n, Identity: Kit.NewLease()}}
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
	actual, recorded := s.used(0, b.booking.Cost), true
	err := b.owner.withSubject(func(subject *line.Subject, now int64) {
		recorded = subject.Settle(&b.booking, now, actual)
	})
	if err == nil && !recorded {
		err = &RequestError{Op: opSettle, Field: "cost", Reason: fmt.Sprintf("of %d beyond the reserved one is not recorded, because the limit has too many entries above it", actual-b.booking.Cost)}
	}
	if err != nil {
		return open, err
	}
	return settled, nil
}

// WaitStats describe the waiting callers of a Limiter or of all keys of a Keyed, and count how earlier waits ended. A
// caller that took its cost without waiting is not counted.
type WaitStats struct {
	Waiting int
	Oldest  time.Duration // how long the oldest waiting caller has waited
	Granted uint64        // callers that waited and then took their cost
	// Refusals by reason, at once or after a wait.
	Late   uint64 // the turn would come after the maximum wait or the deadline, or has not come by then
	Left   uint64 // the context was cancelled
	Full   uint64 // the queue was full
	Never  uint64 // the cost is above the capacity
	Closed uint64 // the limiter was closed
}

func waitStats(s *line.Stats) WaitStats {
	return WaitStats{
		Waiting: s.Waiting, Oldest: s.Oldest, Granted: s.Ended[line.Granted], Late: s.Ended[line.Late], Left: s.Ended[line.Left],
		Full: s.Ended[line.Full], Never: s.Ended[line.TooLarge], Closed: s.Ended[line.Closed],
	}
}
