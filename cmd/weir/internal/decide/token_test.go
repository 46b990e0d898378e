package decide

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/cmd/weir/internal/auth"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/layer"
)

var anyone = auth.Anyone("anyone", auth.All)

// reserve returns the token of a reservation.
func (h *holding) reserve(requests ...weir.Request) string {
	h.t.Helper()
	_, token, _, err := h.Reserve(Patient{Client: h.t.Context()}, requests)
	if err != nil || token == "" {
		h.t.Fatalf("reserve: token %q, %v", token, err)
	}
	return token
}

func (h *holding) settleToken(token string, costs ...int64) error {
	return h.Settle(h.t.Context(), anyone, token, false, costs...)
}

// newGuarded returns a daemon whose engine has a Guard as in weir serve with a policy.
func newGuarded(t *testing.T, engine weir.Engine, limits string, policy layer.Policy) *holding {
	t.Helper()
	guard, err := layer.Guard(engine, layer.GuardOptions{
		Deadline: 15 * time.Millisecond, OnFailure: policy, Peers: 1, Logger: slog.New(slog.DiscardHandler),
		Rules: map[string]layer.Policy{SettledRule: layer.Deny, HereRule: layer.Local},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(guard.Close)
	return newHolding(t, guard, limits)
}

// A settlement that fails while the engine is away repeats by itself, so a client that tries again must not settle it, too.
func TestUnitsOfATokenComeBackOnceAlthoughItsSettlementFailed(t *testing.T) {
	for _, limits := range kinds {
		synctest.Test(t, func(t *testing.T) {
			engine := newFailing(weir.NewMemory(weir.MemoryOptions{}))
			h := newHolding(t, engine, limits)
			if err := h.Report(t.Context(), h.asks(500)); err != nil {
				t.Fatal(err)
			}
			token := h.reserve(h.asks(200)...)
			engine.fails(func(call weir.Call) bool { return call.Op == weir.OpReturn && call.Taken != nil })
			if err := h.settleToken(token, 0); !weir.Unavailable(err) || weir.WasCounted(err) != weir.CountedUnknown {
				t.Errorf("%s: settle: %v (counted: %v), want that it may be counted", limits, err, weir.WasCounted(err))
			}
			engine.fails(nil)
			if err := h.settleToken(token, 0); err != ErrToken {
				t.Errorf("%s: settle again: %v, want ErrToken", limits, err)
			}
			time.Sleep(30 * time.Second)
			h.left(500)
		})
	}
}

// What gave units of one request back, and could not record more of another, is not done twice.
func TestATokenIsNotSettledTwiceWhenHalfOfItFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFailing(weir.NewMemory(weir.MemoryOptions{}))
		h := newHolding(t, engine, kinds[0])
		if err := h.Report(t.Context(), h.asks(500)); err != nil {
			t.Fatal(err)
		}
		token := h.reserve(h.rule.For("ann", 200), h.rule.For("bob", 200))
		engine.fails(func(call weir.Call) bool { return call.Op == weir.OpRecord })
		if err := h.settleToken(token, 100, 300); err == nil || weir.WasCounted(err) == weir.CountedNo {
			t.Errorf("settle: %v, want an error that may be counted", err)
		}
		engine.fails(nil)
		_ = h.settleToken(token, 100, 300)
		time.Sleep(30 * time.Second)
		h.left(400)
	})
}

// Two daemons are asked to settle one token while the engine is away. Neither sees what the other has settled.
func TestNoTwoDaemonsSettleATokenWhileTheEngineIsAway(t *testing.T) {
	for _, policy := range []layer.Policy{layer.Deny, layer.Local, layer.Allow} {
		synctest.Test(t, func(t *testing.T) {
			engine := newFailing(weir.NewMemory(weir.MemoryOptions{}))
			one, two := newGuarded(t, engine, kinds[0], policy), newGuarded(t, engine, kinds[0], policy)
			if err := one.Report(t.Context(), one.asks(500)); err != nil {
				t.Fatal(err)
			}
			token := one.reserve(one.asks(200)...)
			engine.fails(always)
			for _, h := range []*holding{one, two} {
				if err := h.settleToken(token, 0); !weir.Unavailable(err) || weir.WasCounted(err) != weir.CountedNo {
					t.Errorf("policy %v: settle: %v, want that it can be tried again", policy, err)
				}
			}
			engine.fails(nil)
			time.Sleep(20 * time.Second)
			two.left(300)
			if err := two.settleToken(token, 0); err != nil {
				t.Errorf("policy %v: settle after the outage: %v", policy, err)
			}
			if err := one.settleToken(token, 0); err != ErrToken {
				t.Errorf("policy %v: settle again: %v, want ErrToken", policy, err)
			}
			one.left(500)
		})
	}
}

// The engine may have taken the mark of a settlement that failed. The client tries again, and must not hear that the token was
// settled.
func TestATokenWhoseMarkIsInDoubtCanBeSettledAgain(t *testing.T) {
	const slots = "concurrency 1000 lease 1h"
	for _, limits := range append(slices.Clone(kinds), slots) {
		for _, guarded := range []bool{true, false} {
			if guarded && limits == slots {
				continue // the Guard releases them later
			}
			synctest.Test(t, func(t *testing.T) {
				engine := newFailing(weir.NewMemory(weir.MemoryOptions{}))
				engine.after = true
				h := newHolding(t, engine, limits)
				if guarded {
					h = newGuarded(t, engine, limits, layer.Deny)
				}
				token := h.reserve(h.asks(200)...)
				engine.fails(func(call weir.Call) bool { return call.Op == weir.OpTake || call.Op == weir.OpReturn })
				for range 3 {
					if err := h.settleToken(token, 0); err == nil || limits != slots && weir.WasCounted(err) != weir.CountedNo {
						t.Fatalf("%s: settle: %v, want that it can be tried again", limits, err)
					}
				}
				engine.fails(nil)
				if err := h.settleToken(token, 0); err != nil {
					t.Errorf("%s, guarded %v: settle again: %v", limits, guarded, err)
				}
				h.left(1000)
				for range 2 {
					if err := h.settleToken(token, 0); err != ErrToken {
						t.Errorf("%s, guarded %v: settle once more: %v, want ErrToken", limits, guarded, err)
					}
				}
				time.Sleep(3 * time.Hour)
				synctest.Wait()
				if h.doubts.count != 0 || len(h.doubts.marks) != 0 {
					t.Errorf("%d doubts stay", h.doubts.count)
				}
			})
		}
	}
}

// What a policy gave while the engine is away is settled by that daemon meanwhile, and by nobody afterwards.
func TestAReservationOfAPolicyIsSettledDuringTheOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFailing(weir.NewMemory(weir.MemoryOptions{}))
		one, two := newGuarded(t, engine, kinds[0], layer.Local), newGuarded(t, engine, kinds[0], layer.Local)
		engine.fails(always)
		token := one.reserve(one.asks(200)...)
		if _, _, err := one.Renew(t.Context(), anyone, token); err != nil {
			t.Errorf("renew: %v", err)
		}
		if err := one.settleToken(token, 50); err != nil {
			t.Errorf("settle: %v", err)
		}
		if err := one.settleToken(token, 50); err != ErrToken {
			t.Errorf("settle again: %v, want ErrToken", err)
		}
		engine.fails(nil)
		time.Sleep(20 * time.Second)
		for _, h := range []*holding{two, one} {
			if err := h.settleToken(token, 50); err != ErrToken {
				t.Errorf("settle after the outage: %v, want ErrToken", err)
			}
			h.left(950)
		}
	})
}

// Slots are released while the engine is away, because a second release does no harm.
func TestATokenOfSlotsIsSettledWhileTheEngineIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFailing(weir.NewMemory(weir.MemoryOptions{}))
		one, two := newGuarded(t, engine, "concurrency 1000 lease 1h", layer.Deny), newGuarded(t, engine, "concurrency 1000 lease 1h", layer.Deny)
		token := one.reserve(one.asks(200)...)
		engine.fails(always)
		for _, h := range []*holding{one, two} {
			if err := h.settleToken(token); err != nil {
				t.Errorf("settle: %v", err)
			}
		}
		engine.fails(nil)
		time.Sleep(20 * time.Second)
		one.left(1000)
	})
}

// Daemons, calls that fail before or after the engine has made them, and clients that try again: a token gives back once, and what
// it should once a settlement has succeeded.
func TestRandomSettlementsGiveBackOnce(t *testing.T) {
	for seed := range randtest.Seeds(t, 300, 100) {
		synctest.Test(t, func(t *testing.T) { settleAtRandom(t, randtest.New(seed)) })
	}
}

func settleAtRandom(t *testing.T, r *rand.Rand) {
	const used, held = 500, 200
	limits := kinds[r.IntN(len(kinds))]
	engine := newFailing(weir.NewMemory(weir.MemoryOptions{}))
	engine.after = r.IntN(3) == 0
	var daemons []*holding
	for range 2 {
		daemons = append(daemons, newGuarded(t, engine, limits, layer.Policy(r.IntN(3))))
	}
	if r.IntN(2) == 0 { // without a Guard
		daemons = []*holding{newHolding(t, engine, limits)}
	}
	first := daemons[0]
	if err := first.Report(t.Context(), first.asks(used)); err != nil {
		t.Fatal(err)
	}
	token := first.reserve(first.asks(held)...)
	actual := []int64{0, 100, 200, 300}[r.IntN(4)]
	settled, log := false, ""
	for range 1 + r.IntN(6) {
		failing := []weir.Op{weir.OpTake, weir.OpReturn, weir.OpRecord, weir.OpPeek}[r.IntN(4):]
		if r.IntN(2) == 0 {
			failing = nil
		}
		engine.fails(func(call weir.Call) bool {
			if call.Op == weir.OpEach {
				return slices.ContainsFunc(call.Each.Calls, func(c weir.Call) bool { return slices.Contains(failing, c.Op) })
			}
			return slices.Contains(failing, call.Op)
		})
		err := daemons[r.IntN(len(daemons))].settleToken(token, actual)
		settled = settled || err == nil
		log += fmt.Sprintf("\n%v fail: %v", failing, err)
		time.Sleep(time.Duration(r.IntN(5000)) * time.Millisecond)
	}
	engine.fails(nil)
	time.Sleep(30 * time.Second)
	made, err := first.Do(t.Context(), weir.Call{Op: weir.OpPeek, Requests: first.asks(1)})
	want, unsettled := int64(1000-used)-actual, int64(1000-used)-held
	alone := len(daemons) == 1 // a Guard gives back only what is certainly still outstanding
	if left := made.Remaining; err != nil || left < min(want, unsettled) || left > max(want, unsettled) || settled && alone && !engine.after && left != want {
		t.Errorf("%s, costs %d after %v (settled: %v): %d are left (%v), want %d; %s", limits, actual, engine.after, settled, left, err, want, log)
	}
}
