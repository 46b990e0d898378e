package weir_test

import (
	"errors"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

// slots is an engine with a clock that the test moves, and a rule of one concurrency limit.
type slots struct {
	*testing.T
	engine *weir.Memory
	rule   *weir.Rule
	now    time.Duration
}

func newSlots(t *testing.T, limit weir.Concurrency) *slots {
	t.Helper()
	s := &slots{T: t}
	var err error
	if s.rule, err = weir.NewRule("slots", limit); err != nil {
		t.Fatal(err)
	}
	s.engine = weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return int64(s.now) }})
	return s
}

func (s *slots) reserve(n int64) *weir.Reservation {
	s.Helper()
	r, err := s.engine.Reserve(s.Context(), s.rule.For("key", n))
	if err != nil || !r.Decision.Allowed {
		s.Fatalf("Reserve(%d) of %s: got %+v and error %v, want it allowed", n, s.rule, r.Decision, err)
	}
	return r
}

func (s *slots) cancel(r *weir.Reservation) {
	s.Helper()
	if err := r.Cancel(s.Context()); err != nil {
		s.Fatalf("Cancel: %v", err)
	}
}

func (s *slots) wantFree(when string, want int64) {
	s.Helper()
	d, err := s.engine.Peek(s.Context(), s.rule.For("key", 0))
	if err != nil || d.Remaining != want {
		s.Errorf("%s: got %d free slots and error %v, want %d", when, d.Remaining, err, want)
	}
}

func TestConcurrencyIsReleasedByItsOwnReservation(t *testing.T) {
	s := newSlots(t, weir.Concurrency{Slots: 3})
	first, second := s.reserve(1), s.reserve(2)
	s.wantFree("with all held", 0)
	s.cancel(second)
	s.wantFree("after the second of 2 was cancelled", 2)
	s.cancel(second)
	s.wantFree("after it was cancelled again", 2)
	s.cancel(first)
	s.wantFree("after both were cancelled", 3)
}

func TestConcurrencyReleasedTooLateFreesNoOtherSlot(t *testing.T) {
	s := newSlots(t, weir.Concurrency{Slots: 1, Lease: 30 * time.Second})
	late := s.reserve(1)
	s.now = 30 * time.Second
	s.wantFree("when the lease has ended", 1)
	other := s.reserve(1)
	s.cancel(late)
	s.wantFree("after the late release", 0)
	s.cancel(other)
	s.wantFree("after the holder's own", 1)
}

func TestConcurrencyReportsWhenLeasesEnd(t *testing.T) {
	s := newSlots(t, weir.Concurrency{Slots: 2, Lease: 10 * time.Second})
	s.reserve(1)
	s.now = 4 * time.Second
	s.reserve(1)
	s.now = 5 * time.Second
	for cost, want := range map[int64]time.Duration{1: 5 * time.Second, 2: 9 * time.Second, 3: weir.Never} {
		d, err := s.engine.Take(t.Context(), s.rule.For("key", cost))
		if err != nil || d.Allowed || d.RetryAfter != want {
			t.Errorf("Take(%d) with leases that end in 5s and 9s: got %+v and error %v, want a retry after %v", cost, d, err, want)
		}
	}
}

func TestConcurrencyWithoutLeaseDoesNotKnowWhen(t *testing.T) {
	s := newSlots(t, weir.Concurrency{Slots: 1})
	s.reserve(1)
	s.now = 1000 * time.Hour
	d, err := s.engine.Take(t.Context(), s.rule.For("key", 1))
	if err != nil || d.Allowed || d.RetryAfter != weir.Never || d.Limit != 1 {
		t.Errorf("Take(1) while the slot is held without end: got %+v and error %v, want refused with Never and Limit 1", d, err)
	}
}

func TestConcurrencyWithoutIdentityIsGivenBackAmongItsLike(t *testing.T) {
	s := newSlots(t, weir.Concurrency{Slots: 3, Lease: time.Minute})
	s.reserve(1)
	record := func(n int64) {
		t.Helper()
		if _, err := signed(t.Context(), s.engine, s.rule.For("key", n)); err != nil {
			t.Fatalf("Record(%d): %v", n, err)
		}
	}
	record(2)
	s.wantFree("with 1 reserved and 2 taken without identity", 0)
	record(-3)
	s.wantFree("after 3 were given back without identity", 2)
}

func TestConcurrencyJoinsOtherLimitsAllOrNothing(t *testing.T) {
	s := newSlots(t, weir.Concurrency{Slots: 2})
	rate, err := weir.NewRule("rate", weir.TokenBucket{Rate: weir.PerMinute(1)})
	if err != nil {
		t.Fatal(err)
	}
	both := []weir.Request{s.rule.For("key", 1), rate.For("key", 1)}
	if d, err := s.engine.Take(t.Context(), both...); err != nil || !d.Allowed {
		t.Fatalf("the first: got %+v and error %v, want it allowed", d, err)
	}
	if d, err := s.engine.Take(t.Context(), both...); err != nil || d.Allowed || d.Rule != "rate" {
		t.Fatalf("the second: got %+v and error %v, want it refused by rate", d, err)
	}
	s.wantFree("after a call that the other limit refused", 1)
}

func TestConcurrencyOutOfBoundsIsRefused(t *testing.T) {
	for limit, field := range map[weir.Concurrency]string{
		{Slots: 0}:                            "slots",
		{Slots: weir.MaxCount + 1}:            "slots",
		{Slots: 1, Lease: -1}:                 "lease",
		{Slots: 1, Lease: weir.MaxPeriod + 1}: "lease",
	} {
		wantLimitError(t, limit, field)
	}
}

// wantLimitError fails unless the limit is refused for exactly this field.
func wantLimitError(t *testing.T, limit weir.Limit, field string) {
	t.Helper()
	var bad *weir.LimitError
	if err := validate(limit); !errors.As(err, &bad) || bad.Field != field {
		t.Errorf("%#v: got error %v, want a *weir.LimitError about %s", limit, err, field)
	}
}
