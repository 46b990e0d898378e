package redislimit_test

import (
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

// The newest booking is cancelled exactly: its state is what the booking found, also if another rate wrote that.
func TestABookingOverAStateOfAnotherRateIsCancelledExactly(t *testing.T) {
	now := int64(1_700_000_000_000_000) // us
	clock := func() int64 { return now * 1000 }
	redis := newEngine(t, dial(t, redistest.Start(t)), redislimit.Options{Clock: clock, Linger: time.Hour})
	memory := weir.NewMemory(weir.MemoryOptions{Clock: clock})
	for _, tt := range []struct {
		first, second weir.Limit
		booked        int64
	}{
		{weir.TokenBucket{Rate: weir.PerSecond(20), Burst: 8}, weir.TokenBucket{Rate: weir.Per(1, 30*time.Second), Burst: 8}, 8},
		{weir.TokenBucket{Rate: weir.Per(1, 7*time.Second), Burst: 8}, weir.TokenBucket{Rate: weir.PerSecond(3), Burst: 8}, 8},
		{weir.LeakyBucket{Rate: weir.PerSecond(20), Queue: 7}, weir.LeakyBucket{Rate: weir.Per(1, 30*time.Second), Queue: 7}, 4},
	} {
		first, second := newRule(t, "r", tt.first), newRule(t, "r", tt.second)
		key := tt.first.String()
		var answers [2]weir.Decision
		for i, engine := range []weir.Engine{memory, redis} {
			before := now
			if d, err := engine.Take(t.Context(), first.For(key, 3)); err != nil || !d.Allowed {
				t.Fatalf("%s: the take: %+v, %v", key, d, err)
			}
			r, err := weir.ReserveAhead(t.Context(), engine, time.Hour, second.For(key, tt.booked))
			if err != nil || !r.Decision.Allowed || r.Decision.Delay == 0 {
				t.Fatalf("%s: the booking: %+v, %v", key, r, err)
			}
			if err := r.Cancel(t.Context()); err != nil {
				t.Fatal(err)
			}
			now += 25_000
			if answers[i], err = engine.Peek(t.Context(), first.For(key, 8)); err != nil {
				t.Fatal(err)
			}
			now = before
		}
		if answers[0] != answers[1] {
			t.Errorf("%s after the cancelled booking: %+v in Redis, want %+v as in memory", key, answers[1], answers[0])
		}
	}
}

// Bookings of single units for one instant, and a larger one, are entries of one instant in the log of a gate.
func TestTheNewestBookingOfAnInstantComesBackWhole(t *testing.T) {
	now := int64(1_700_000_000_000_000) // us
	clock := func() int64 { return now * 1000 }
	redis := newEngine(t, dial(t, redistest.Start(t)), redislimit.Options{Clock: clock, Linger: time.Hour})
	gates := newRule(t, "r", weir.RateGate{Rate: weir.Per(5, 4*time.Second)}, weir.RateGate{Rate: weir.Per(5, 9*time.Second)})
	book := func(n int64) *weir.Reservation {
		t.Helper()
		r, err := weir.ReserveAhead(t.Context(), redis, time.Minute, gates.For("k", n))
		if err != nil || !r.Decision.Allowed {
			t.Fatalf("the booking of %d: %+v, %v", n, r, err)
		}
		return r
	}
	book(5)
	now += 6_000_000 // the first gate is empty again
	book(1)
	book(1)
	if err := book(3).Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := book(3); r.Decision.Delay != 3*time.Second {
		t.Errorf("after the booking of 3 came back, 3 units are booked in %v, want them in 3s as before", r.Decision.Delay)
	}
}
