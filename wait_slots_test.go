package weir_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

// slotLimits have one slot.
var slotLimits = []weir.Limit{weir.Concurrency{Slots: 1}, weir.Concurrency{Slots: 1, Lease: 30 * time.Second}}

// waits are the ways to wait at most 2 seconds.
var waits = map[string]func(ctx context.Context, p pacer) error{
	"deadline": func(ctx context.Context, p pacer) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		return p.WaitTurn(ctx, weir.Turn{Cost: 1})
	},
	"longest wait": func(ctx context.Context, p pacer) error {
		return p.WaitTurn(ctx, weir.Turn{Cost: 1, Max: 2 * time.Second})
	},
}

// pacer is what a Limiter and one key of a Keyed have in common.
type pacer interface {
	WaitTurn(ctx context.Context, turn weir.Turn) error
	Return(n int64) weir.Decision
}

// pacersOf are all pacers of a limit, each with a state of its own.
func pacersOf(t *testing.T, limit weir.Limit) map[string]pacer {
	return map[string]pacer{
		"Limiter":              mustNew(t, limit),
		"Keyed":                mustKeyed[string](t, limit).For("k"),
		"Limiter with classes": mustNew(t, limit, weir.Options{Weights: []int64{1, 2}}),
	}
}

func TestAWaitForASlotEndsWhenOneComesBack(t *testing.T) {
	for _, limit := range slotLimits {
		for name, wait := range waits {
			synctest.Test(t, func(t *testing.T) {
				for pacer, p := range pacersOf(t, limit) {
					if err := p.WaitTurn(t.Context(), weir.Turn{Cost: 1}); err != nil {
						t.Fatal(err)
					}
					start := time.Now()
					time.AfterFunc(50*time.Millisecond, func() { p.Return(1) })
					if err := wait(t.Context(), p); err != nil || time.Since(start) != 50*time.Millisecond {
						t.Errorf("%v, %s, %s: %v after %v, want the slot after 50ms", limit, pacer, name, err, time.Since(start))
					}
				}
			})
		}
	}
}

func TestAWaitForASlotThatDoesNotComeEndsAtItsBound(t *testing.T) {
	for _, limit := range slotLimits {
		for name, wait := range waits {
			synctest.Test(t, func(t *testing.T) {
				for pacer, p := range pacersOf(t, limit) {
					if err := p.WaitTurn(t.Context(), weir.Turn{Cost: 1}); err != nil {
						t.Fatal(err)
					}
					start := time.Now()
					err := wait(t.Context(), p)
					if time.Since(start) != 2*time.Second || errors.Is(err, context.DeadlineExceeded) != (name == "deadline") || errors.Is(err, weir.ErrWait) != (name == "longest wait") {
						t.Errorf("%v, %s, %s: %v after %v, want the bound's own error after 2s", limit, pacer, name, err, time.Since(start))
					}
					if err := p.WaitTurn(t.Context(), weir.Turn{Cost: 1, Max: -1}); !errors.Is(err, weir.ErrWait) || time.Since(start) != 2*time.Second {
						t.Errorf("%v, %s: a wait of no length: %v after %v, want a WaitError at once", limit, pacer, err, time.Since(start)-2*time.Second)
					}
					p.Return(1)
					if err := p.WaitTurn(t.Context(), weir.Turn{Cost: 1, Max: -1}); err != nil {
						t.Errorf("%v, %s: %v, want the slot that the late waiter left alone", limit, pacer, err)
					}
				}
			})
		}
	}
}

// A bound holds whatever happens after the wait has begun.
func TestALongestWaitIsKeptAlthoughTheLimitGetsSlower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1})
		lim.Allow()
		start := time.Now()
		time.AfterFunc(500*time.Millisecond, func() { _ = lim.SetLimit(weir.TokenBucket{Rate: weir.PerHour(1), Burst: 1}) })
		if err := lim.WaitMax(t.Context(), 1, 2*time.Second); !errors.Is(err, weir.ErrWait) || time.Since(start) != 2*time.Second {
			t.Errorf("WaitMax of 2s: %v after %v, want a WaitError after 2s", err, time.Since(start))
		}
	})
}

// wantFree fails unless the one slot of p is free.
func wantFree(t *testing.T, when string, p pacer) {
	t.Helper()
	if d := p.Return(0); d.Remaining != 1 {
		t.Errorf("%s: %d of 1 slots free", when, d.Remaining)
	}
}

func TestABookingThatOutlivesItsLeaseFreesNoOtherSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.Concurrency{Slots: 1, Lease: 30 * time.Second})
		late, _ := lim.Reserve(1, 0)
		time.Sleep(30 * time.Second)
		other, _ := lim.Reserve(1, 0)
		if !late.Decision.Allowed || !other.Decision.Allowed {
			t.Fatalf("got %+v, and after the lease %+v; want both allowed", late.Decision, other.Decision)
		}
		late.Cancel(t.Context())
		if lim.Allow() {
			t.Error("a late cancel freed the slot of somebody else")
		}
		other.Cancel(t.Context())
		wantFree(t, "after the holder's own cancel", lim)
	})
}

func TestReleaseFreesOnlyTheCallersOwnSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, p := range pacersOf(t, weir.Concurrency{Slots: 2, Lease: 30 * time.Second}) {
			var mine weir.Slots
			for range 2 {
				if err := p.WaitTurn(t.Context(), weir.Turn{Cost: 1, Slots: &mine}); err != nil || !mine.Held() {
					t.Fatalf("%s: %v, held %t; want a slot", name, err, mine.Held())
				}
			}
			time.Sleep(30 * time.Second)
			if err := p.WaitTurn(t.Context(), weir.Turn{Cost: 1}); err != nil {
				t.Fatal(err)
			}
			mine.Release()
			if left := p.Return(0).Remaining; left != 1 || mine.Held() {
				t.Errorf("%s: %d of 2 slots free after a late release, held %t; want 1, since another caller has the second", name, left, mine.Held())
			}
		}
	})
}

func TestSpentUnitsAreNotHeld(t *testing.T) {
	for name, p := range pacersOf(t, weir.TokenBucket{Rate: weir.PerHour(1), Burst: 1}) {
		var slots weir.Slots
		if err := p.WaitTurn(t.Context(), weir.Turn{Cost: 1, Slots: &slots}); err != nil || slots.Held() {
			t.Errorf("%s: %v, held %t; want a unit that is spent", name, err, slots.Held())
		}
		slots.Release()
		if left := p.Return(0).Remaining; left != 0 {
			t.Errorf("%s: Release gave %d units of a rate back", name, left)
		}
	}
}
