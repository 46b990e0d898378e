package redislimit

import (
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
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
	lost, release := engine.Hold(time.Now(), taken)
	defer release()
	held := engine.holds.find(&part{key: onePart(t, engine, two).key, lease: 7})
	idle := func() error { // waits for the answer to the renewal
		held.mu.Lock()
		defer held.mu.Unlock()
		if held.asking {
			return errReply
		}
		return nil
	}
	back := two
	back.Cost = -1
	renew := func(when string) {
		t.Helper()
		held.tick(time.Now())
		eventually(t, "the renewal is answered", idle)
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
	outcome, whole := engine.releasing(parts)
	if whole {
		t.Error("the release of one of two slots counts as that of all")
	}
	if _, err := engine.alone(t.Context(), decision{op: opRecord, parts: parts}); err != nil {
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
