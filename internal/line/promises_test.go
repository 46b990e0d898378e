package line

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/randtest"
)

// Waiters and bookings come and go among each other, records delay them, and the limit and its rate change: an answer is that
// of a plan made from the start, whether the tree tells it or not.
func TestTheEndOfALineWithBookingsIsThatOfAPlanMadeFromTheStart(t *testing.T) {
	told, yielding, walked := 0, 0, 0
	for seed := range randtest.Seeds(t, 600, 100) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 13))
			c := &crowd{late: newLate(t, drawBookable(r, seed%5 == 0))}
			c.subject.Record(c.now, min(c.subject.algorithm.Capacity(), 50))
			var bookings []*Booking
			for range 50 + r.IntN(400) {
				bookings = c.anythingBeside(r, bookings)
				l := c.subject.line
				if l == nil || len(l.bookings) == 0 || r.IntN(3) == 0 {
					continue
				}
				switch from, ok := l.summable(); {
				case !ok:
					walked++
				case l.promises().late || l.promises().delayed(c.subject.algorithm, c.subject.State, from, 0):
					yielding++
				default:
					told++
				}
				n := 1 + r.Int64N(9)
				if got, want := l.refusal(c.now, n), c.fresh(n); got != want {
					t.Fatalf("seed %d, %d waiters and %d bookings: got %+v, want %+v", seed, l.queue.Len(), len(l.bookings), got, want)
				}
			}
			c.subject.Close(c.now)
		})
		if t.Failed() {
			return
		}
	}
	if t.Logf("%d ends were told, %d while waiters yield, and %d not", told, yielding, walked); told == 0 || yielding == 0 || walked == 0 {
		t.Errorf("%d ends were told, %d while waiters yield, and %d not", told, yielding, walked)
	}
}

// No clock shows an instant after the year 2262, so none is promised.
func TestABookingBeyondAllInstantsIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, algorithm.NewTokenBucket(1, 366*day, 1))
		c.now = 50 * 366 * day
		for range 250 {
			c.join(1, 0)
		}
		b := &Booking{Cost: 1, Identity: 1}
		if answer, err := c.subject.Book(b, c.now, algorithm.Never); err != nil || answer.Allowed || b.Open {
			t.Errorf("a booking 250 years after 2020: %+v, %v", answer, err)
		}
		c.subject.Close(c.now)
	})
}

// drawBookable returns a limit behind whose waiters a booking is given an instant.
func drawBookable(r *rand.Rand, leaky bool) algorithm.Algorithm {
	period := []int64{second, hour, 366 * day, 3, 7}[r.IntN(5)]
	rate := min(1+r.Int64N(7), period)
	if leaky {
		return algorithm.NewLeakyBucket(rate, period, 300+r.Int64N(300), r.Int64N(9))
	}
	return algorithm.NewTokenBucket(rate, period, 1+r.Int64N(20))
}

// anythingBeside is one random event of a line with bookings.
func (c *crowd) anythingBeside(r *rand.Rand, bookings []*Booking) []*Booking {
	s := &c.subject
	costs := min(s.algorithm.Capacity(), 9)
	switch pick := r.IntN(40); {
	case pick < 14:
		c.join(1+r.Int64N(costs), 0)
	case pick < 22:
		b := &Booking{Cost: 1 + r.Int64N(costs), Identity: r.Uint64() | 1}
		if _, err := s.Book(b, c.now, algorithm.Never); err == nil && b.inLine {
			bookings = append(bookings, b)
		}
	case pick < 30 && len(c.waiters) > 0:
		c.withdraw([]int{0, len(c.waiters) - 1, r.IntN(len(c.waiters))}[r.IntN(3)])
	case pick < 34 && len(bookings) > 0:
		last := len(bookings) - 1
		s.Settle(bookings[last], c.now, max(0, r.Int64N(2*bookings[last].Cost+1)-bookings[last].Cost))
		bookings = bookings[:last]
	case pick < 37 && s.line != nil && s.line.length() > 0:
		_, _, at := s.line.next(c.now)
		c.now = max(c.now, at-1+r.Int64N(3))
		s.advance(c.now)
	case pick == 37 && r.IntN(2) == 0:
		s.Record(c.now, r.Int64N(19)-9)
	case pick == 37 && r.IntN(8) == 0:
		c.now -= r.Int64N(second) // the line does not know yet
	case pick == 38 && r.IntN(8) == 0:
		s.SetAlgorithm(c.now, drawBookable(r, algorithm.Delays(s.algorithm)), true)
	case pick == 39 && r.IntN(8) == 0:
		s.UseAlgorithm(c.now, drawBookable(r, algorithm.Delays(s.algorithm)))
	}
	return bookings
}
