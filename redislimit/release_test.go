package redislimit

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

// A reservation gives one of its two slots back. A renewal of two that Redis reads behind that loses nothing.
func TestARenewalDuringAPartialSettlementLosesNothing(t *testing.T) {
	engine := openFor(t, "redis://"+redistest.Start(t).Addr, Options{})
	slots := mustRule(t, "r=concurrency 3 lease 1h")
	two := slots.For("k", 2)
	taken := weir.Call{Lease: 7, Requests: []weir.Request{two}}
	if err := allowed(doCall(t.Context(), engine, taken, two)); err != nil {
		t.Fatal(err)
	}
	lost, release := engine.KeepSlots(time.Now(), taken)
	defer release()
	back := two
	back.Cost = -1
	renew := func(when string) {
		t.Helper()
		before := engine.Stats().Calls
		engine.keeper.RenewAll(func(int) bool { return true })
		eventually(t, "the renewal is answered", func() error {
			if s := engine.Stats(); s.Calls == before || s.InFlight > 0 {
				return fmt.Errorf("%d calls since then, %d in flight", s.Calls-before, s.InFlight)
			}
			return nil
		})
		select {
		case <-lost:
			t.Fatalf("%s: Lost is closed though the reservation holds a slot", when)
		default:
		}
	}
	parts, _, err := engine.parts(nil, []weir.Request{back}, 7)
	if err != nil {
		t.Fatal(err)
	}
	outcome, whole := engine.keeper.Releasing(parts)
	if whole {
		t.Error("the release of one of two slots counts as that of all")
	}
	if _, err := engine.alone(t.Context(), wire.Decision{Op: wire.OpRecord, Parts: parts}); err != nil {
		t.Fatal(err)
	}
	renew("before the answer to the release")
	outcome(true)
	renew("after it")
	if err := wantRemaining(engine, slots.For("k", 0), 2); err != nil {
		t.Error(err)
	}
}

// One of the reservations of a repeated decision is done, which releases the slot of both.
func TestTheOtherHolderOfAReleasedSlotIsTold(t *testing.T) {
	engine := openFor(t, "redis://"+redistest.Start(t).Addr, Options{})
	slot := mustRule(t, "r=concurrency 1 lease 1h").For("k", 1)
	var both [2]*weir.Reservation
	for i := range both {
		r, err := reserveAs(t.Context(), engine, "once", slot)
		if err != nil || !r.Decision.Allowed {
			t.Fatalf("Reserve: %+v, %v", r, err)
		}
		both[i] = r
	}
	if err := both[0].Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantLost(t, both[1])
	select {
	case <-both[0].Lost():
		t.Error("the reservation that is done says that its slot is lost")
	default:
	}
}
