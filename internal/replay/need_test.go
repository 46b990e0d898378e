package replay

import (
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/tape"
)

// With the number that a key needs nothing of it is refused, and with one less something is.
func TestANeedIsTheSmallestNumberThatRefusesNothing(t *testing.T) {
	for seed := range randtest.Seeds(t, 60, 20) {
		random := randtest.New(seed)
		var events []Event
		for at := tape.Start; len(events) < 40; at += random.Int64N(int64(20 * time.Second)) {
			events = append(events, Event{At: at, Cost: uint32(1 + random.IntN(5))})
		}
		for _, text := range []string{"token bucket 3/m burst 4", "fixed window 9/1m", "sliding window 9/1m", "first window 9/1m", "quota 20/day"} {
			limit, err := weir.ParseLimit(text)
			if err != nil {
				t.Fatal(err)
			}
			need, ok := Need(limit, events)
			if !ok {
				t.Fatalf("seed %d: nothing is known of %s", seed, text)
			}
			of, _ := numberOf(limit)
			if n := refusals(t, of.with(need), events); n != 0 {
				t.Errorf("seed %d: %s refuses %d", seed, of.with(need), n)
			}
			if n := refusals(t, of.with(need-1), events); need > 1 && n == 0 {
				t.Errorf("seed %d: %s refuses nothing, and %d is called the smallest", seed, of.with(need-1), need)
			}
		}
	}
	if _, ok := Need(weir.Concurrency{Slots: 3}, []Event{{Cost: 1}}); ok {
		t.Error("slots have a number that a log needs, want none")
	}
	if _, ok := Need(weir.Quota{Count: 3, Unit: weir.Day}, nil); ok {
		t.Error("no events need a number, want none")
	}
}

func refusals(t *testing.T, limit weir.Limit, events []Event) (n int) {
	t.Helper()
	limits, err := tape.Of(limit)
	if err != nil {
		return len(events) // of a number below 1
	}
	for _, e := range events {
		d, err := limits.Take(e.At, "", int64(e.Cost))
		if err != nil {
			t.Fatal(err)
		}
		if !d.Allowed {
			n++
		}
	}
	return n
}

func TestHeadroomEnlargesTheProposedNumber(t *testing.T) {
	for text, want := range map[string]string{"token bucket 1/m burst 75": "token bucket 1/m burst 98", "fixed window 10/h": "fixed window 13/h", "quota 3/day": "quota 4/day"} {
		s := Suggestions{Proposed: &Proposal{Limit: text, Tight: text, Factor: 1, Why: "Why."}}
		if reasons := s.Proposed.Reasons(); len(reasons) != 2 || reasons[1] != "It is as tight as this log allows: the most that was needed × 1.0. A busier day would be refused more." {
			t.Errorf("%s: the reasons are %q", text, reasons)
		}
		if err := s.WithHeadroom(0.3); err != nil || s.Proposed.Limit != want || s.Proposed.Reasons()[0] != "It has headroom: the most that was needed × 1.3, in place of "+text+"." {
			t.Errorf("%s: got %+v, %v, want %s", text, s.Proposed, err, want)
		}
	}
}
