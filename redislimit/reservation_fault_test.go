package redislimit

import (
	"context"
	"errors"
	"testing"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
)

// The server has the units; only the replies are lost.
func TestFaultSlotsAreReleasedThoughRepliesAreLost(t *testing.T) {
	server := redistest.Start(t)
	proxy := startProxy(t, server.Addr)
	engine, beside := openFor(t, "redis://"+proxy.addr, Options{}), openFor(t, "redis://"+server.Addr, Options{})
	slots, err := weir.NewRule("slots", weir.Concurrency{Slots: 3})
	if err != nil {
		t.Fatal(err)
	}
	rate, err := weir.NewRule("rate", weir.FixedWindow{Rate: weir.PerDay(9)})
	if err != nil {
		t.Fatal(err)
	}
	left := func(rule *weir.Rule) int64 {
		t.Helper()
		d, err := beside.Peek(t.Context(), rule.For("k", 0))
		if err != nil {
			t.Fatal(err)
		}
		return d.Remaining
	}
	wantLost := func(what string, err error) {
		t.Helper()
		var failed *Error
		if !errors.As(err, &failed) || failed.Reason != Lost || failed.Counted == weir.CountedNo {
			t.Errorf("%s while the reply is lost: got %v, want an Error that says it may have been counted", what, err)
		}
	}
	proxy.cut.Store(true)
	unknown, err := engine.Reserve(t.Context(), slots.For("k", 1), rate.For("k", 1))
	wantLost("Reserve", err)
	held, err := engine.Reserve(t.Context(), slots.For("k", 1), rate.For("k", 1))
	if err != nil {
		t.Fatal(err)
	}
	proxy.cut.Store(true)
	wantLost("Cancel", held.Cancel(t.Context()))
	before := left(rate)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, r := range []*weir.Reservation{unknown, held, unknown, held} {
		if err := r.Cancel(ended); err != nil {
			t.Errorf("Cancel again: %v", err)
		}
	}
	if slots, rate := left(slots), left(rate); slots != 3 || rate != before {
		t.Errorf("%d slots and %d of the rate are left, want 3 and %d: slots are released again, and the rate is not given back twice", slots, rate, before)
	}
}
