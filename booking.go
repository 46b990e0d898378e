package weir

import (
	"fmt"
	"time"

	"github.com/weirflow/weir/internal/clock"
	"github.com/weirflow/weir/internal/line"
)

// Booking is a cost that was taken in this process for an instant told to the
// caller: Decision.Delay after the call. If Decision.Allowed is false nothing
// was taken. Settle and Cancel come to the same as for a Reservation, with one
// rule more: while an instant told to anyone lies ahead, only the newest booking
// can be undone, and exactly; from any other nothing comes back, because nobody
// may overtake an instant already told.
type Booking struct {
	Decision Decision

	owner   owner // nil if there is nothing to settle
	booking line.Booking
	timer   *time.Timer
}

// book decides b and takes it.
func (b *Booking) book(s *line.Subject, now int64, longest time.Duration) error {
	b.booking.Identity = newIdentity()
	answer, err := s.Book(&b.booking, now, int64(max(longest, 0)))
	if err != nil {
		return refusal(opReserve, err)
	}
	b.Decision = decision(answer)
	return nil
}

// Cancel gives everything back that can come back: Settle(0). It does nothing
// on a booking that was refused or settled, and may be called on nil.
func (b *Booking) Cancel() { _ = b.Settle(0) }

// Settle says what the work really cost: the difference comes back or is
// recorded on top. The first call wins, later ones do nothing. After an error,
// as of a key whose limit has become invalid, it can be tried again.
func (b *Booking) Settle(actual int64) error {
	switch {
	case b == nil || b.owner == nil:
		return nil
	case actual < 0:
		return &RequestError{Op: opSettle, Field: "cost", Reason: fmt.Sprintf("%d is negative", actual)}
	}
	return b.owner.withSubject(func(s *line.Subject, now int64) {
		if b.timer != nil {
			b.timer.Stop()
		}
		s.Settle(&b.booking, now, actual)
	})
}

// CancelAfter gives the booking a lifetime: if it is not settled within d, it is
// cancelled. It does nothing on a booking that was refused or settled, and may be
// called on nil.
func (b *Booking) CancelAfter(d time.Duration) {
	if b == nil || b.owner == nil {
		return
	}
	_ = b.owner.withSubject(func(*line.Subject, int64) {
		if !b.booking.Open {
			return
		}
		if b.timer != nil {
			b.timer.Stop()
		}
		b.timer = time.AfterFunc(d, func() { b.expire(clock.Retry) })
	})
}

// expire cancels a booking whose lifetime has ended. If the limit of its key is
// invalid, or the function that tells it panics, expire tries again for some
// hours.
func (b *Booking) expire(again time.Duration) {
	cancelled := false
	defer func() {
		_ = recover()
		if !cancelled && again < time.Hour {
			time.AfterFunc(again, func() { b.expire(2 * again) })
		}
	}()
	cancelled = b.Settle(0) == nil
}
