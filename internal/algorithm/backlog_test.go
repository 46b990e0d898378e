package algorithm_test

import (
	"math/rand/v2"
	"testing"

	"github.com/weirflow/weir/internal/algorithm"
)

// booked returns a limit after random bookings, without a bound.
func booked(a algorithm.Algorithm, random *rand.Rand) (s algorithm.State, now int64) {
	s = a.Fresh()
	for range 30 {
		now += random.Int64N(2)
		if n := 1 + random.Int64N(a.Capacity()); a.Backlog(s, now, n) == 0 {
			s = algorithm.Book(a, s, now, n)
		}
	}
	return s, now
}

func TestBacklogEndsExactlyWhenItSays(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		a := algorithm.NewRateGate(1+random.Int64N(5), 1+random.Int64N(20))
		s, now := booked(a, random)
		for n := int64(1); n <= a.Capacity(); n++ {
			backlog := a.Backlog(s, now, n)
			if backlog == 0 {
				continue
			}
			if left := a.Backlog(s, now+backlog-1, n); left != 1 {
				t.Errorf("limit %d: a backlog of %d for %d: 1 ns earlier got %d, want 1", a.Capacity(), backlog, n, left)
			}
			if left := a.Backlog(s, now+backlog, n); left != 0 {
				t.Errorf("limit %d: a backlog of %d for %d: after it got %d, want 0", a.Capacity(), backlog, n, left)
			}
		}
	}
}

func TestBacklogOfACycleIsADebtOf2To53(t *testing.T) {
	a := algorithm.NewCycle(maxCount, 10, 0)
	s := a.Fresh()
	for range 2 {
		if backlog := a.Backlog(s, 0, maxCount); backlog != 0 {
			t.Fatalf("with room in the debt: got a backlog of %d, want 0", backlog)
		}
		s = algorithm.Book(a, s, 0, maxCount)
	}
	if backlog := a.Backlog(s, 3, 1); backlog != 7 {
		t.Errorf("one more at 3: got a backlog of %d, want 7, until the next cycle", backlog)
	}
}

// A gate without bookings holds as few entries as a log.
func TestRateGateKeepsNoMoreEntriesThanItNeeds(t *testing.T) {
	const limit, period = 16, 1000
	a := algorithm.NewRateGate(limit, period)
	s := a.Fresh()
	for now := range int64(20 * period) {
		if a.Wait(s, now, 1) == 0 {
			s = a.Take(s, now, 1)
		}
	}
	if got := s.Size() / 2; got > 2*limit { // a log grows to twice its entries
		t.Errorf("taken whenever it fits: room for %d entries, want at most %d", got, 2*limit)
	}
	for now := range int64(20 * period) {
		s = a.Take(s, 20*period+now, 1)
	}
	if got := s.Size() / 2; got > 2*period {
		t.Errorf("recorded without end: room for %d entries, want those of a period, and at most half of it to grow", got)
	}
}
