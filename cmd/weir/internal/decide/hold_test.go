package decide

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

const domain = "models"

// holding is a daemon that holds.
type holding struct {
	*Desk
	t    *testing.T
	rule *weir.Rule
	o    HoldOptions
}

// newHolding returns a daemon on an engine. All daemons of tests have one secret.
func newHolding(t *testing.T, engine weir.Engine, limits string) *holding {
	t.Helper()
	parsed, err := weir.ParseLimits(limits)
	if err != nil {
		t.Fatal(err)
	}
	rule, err := weir.NewRule("tokens", parsed...)
	if err != nil {
		t.Fatal(err)
	}
	secret := func(context.Context) ([]byte, error) { return []byte("secret"), nil }
	d := New(Options{Engine: engine, Rules: []*weir.Rule{rule}, Log: slog.New(slog.DiscardHandler), Secret: secret})
	return &holding{d, t, rule, HoldOptions{Life: time.Minute, Share: 50}}
}

func (h *holding) asks(cost int64) []weir.Request { return []weir.Request{h.rule.For("ann", cost)} }

// hold holds and returns the id, which is empty after a refusal.
func (h *holding) hold(cost int64) string {
	h.t.Helper()
	id, err := h.Hold(h.t.Context(), domain, h.asks(cost), h.o)
	if err != nil {
		h.t.Fatal(err)
	}
	return id
}

// commit commits, and fails unless the hold stood as wanted.
func (h *holding) commit(id string, cost int64, want bool) {
	h.t.Helper()
	if stood, err := h.Commit(h.t.Context(), domain, id, h.asks(cost)); err != nil || stood != want {
		h.t.Errorf("the commit of %d: the hold stood: %v (%v), want %v", cost, stood, err, want)
	}
}

// left fails unless this many units are left.
func (h *holding) left(want int64) {
	h.t.Helper()
	made, err := h.Do(h.t.Context(), weir.Call{Op: weir.OpPeek, Requests: h.asks(1)})
	if err != nil || made.Remaining != want {
		h.t.Errorf("%v: %d are left (%v), want %d", h.rule, made.Remaining, err, want)
	}
}

// inHolds runs a test in a bubble whose clock begins at midnight, with a daemon on a memory engine.
func inHolds(t *testing.T, limits string, test func(h *holding)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(newHolding(t, weir.NewMemory(weir.MemoryOptions{}), limits)) })
}

// kinds are limits of 1000 whose units do not come back within minutes.
var kinds = []string{
	"fixed window 1000/d", "sliding window 1000/d", "sliding log 1000/d", "rate gate 1000/d", "cycle 1000/d", "token bucket 1000/366d burst 1000",
	"quota 1000/month", "fixed window 1000/d and token bucket 5000/366d burst 5000",
}

func TestACommitOfALiveHoldSettlesToTheTrueCost(t *testing.T) {
	for _, limits := range kinds {
		for _, actual := range []int64{0, 100, 400, 700, 2000} {
			inHolds(t, limits, func(h *holding) {
				id := h.hold(400)
				h.left(600)
				h.commit(id, actual, true)
				h.left(max(0, 1000-actual))
				time.Sleep(2 * time.Minute)
				h.left(max(0, 1000-actual))
			})
		}
	}
}

func TestAHoldThatNobodyCommitsComesBackAtTheEndOfItsLife(t *testing.T) {
	for _, limits := range kinds {
		inHolds(t, limits, func(h *holding) {
			id := h.hold(400)
			time.Sleep(time.Minute - time.Nanosecond)
			h.left(600)
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			h.left(1000)
			h.commit(id, 300, false) // what came back counts whole
			h.left(700)
			h.commit(id, 300, false) // once
			h.left(700)
		})
	}
}

func TestARepeatedCommitCountsNothingForAsLongAsItIsRemembered(t *testing.T) {
	inHolds(t, kinds[0], func(h *holding) {
		id := h.hold(400)
		h.commit(id, 100, true)
		for range 2 {
			h.commit(id, 100, false)
			h.left(900)
			time.Sleep(2*time.Minute - time.Millisecond)
		}
		h.left(900)
	})
	inHolds(t, kinds[0], func(h *holding) {
		id := h.hold(400)
		h.commit(id, 100, true)
		time.Sleep(2 * time.Minute) // now it is unknown
		h.commit(id, 100, false)
		h.left(800)
	})
}

// The hold of a window ends with it: what is given back does not land in the next one, and the true cost counts there.
func TestACommitAfterTheWindowOfItsHoldCountsWholeInTheCurrentOne(t *testing.T) {
	for _, limits := range []string{"fixed window 1000/10s", "cycle 1000/10s", "quota 1000/day", "sliding log 1000/10s", "rate gate 1000/10s"} {
		inHolds(t, limits, func(h *holding) {
			h.o.Life = 2 * time.Hour
			wait := 15 * time.Second
			if strings.HasPrefix(limits, "quota") {
				time.Sleep(23*time.Hour + 30*time.Minute)
				wait = time.Hour
			}
			id, late := h.hold(400), h.hold(400)
			h.left(200)
			time.Sleep(wait)
			h.left(1000)
			h.commit(id, 100, true)
			h.left(900)
			h.commit(late, 700, true)
			h.left(200)
		})
	}
}

func TestAHoldTakesAtMostItsShareOfEachLimit(t *testing.T) {
	for _, c := range []struct {
		limits        string
		share         int64
		amount, holds int64
	}{
		{"fixed window 1000/d", 50, 4000, 500},
		{"fixed window 1000/d", 50, 500, 500},
		{"fixed window 1000/d", 50, 499, 499},
		{"fixed window 1000/d", 100, weir.MaxCount, 1000},
		{"fixed window 1000/d", 1, 4000, 10},
		{"fixed window 1/d", 50, 4000, 1},
		{"fixed window 3/d", 50, 4000, 1},
		{"fixed window 9007199254740992/366d", 50, weir.MaxCount, 1 << 52},
		{"fixed window 1000/d and fixed window 100/h", 50, 4000, 50},
	} {
		inHolds(t, c.limits, func(h *holding) {
			h.o.Share = c.share
			before, err := h.Do(t.Context(), weir.Call{Op: weir.OpPeek, Requests: h.asks(1)})
			if err != nil {
				t.Fatal(err)
			}
			h.hold(c.amount)
			h.left(before.Remaining - c.holds)
		})
	}
}

func TestAHoldOfNothingAsksForRoom(t *testing.T) {
	inHolds(t, kinds[0], func(h *holding) {
		id, err := h.HoldNone(t.Context(), domain, h.asks(1), h.o.Life)
		if err != nil || id == "" {
			t.Fatalf("got %q (%v), want an id", id, err)
		}
		h.left(1000)
		h.commit(id, 1500, true)
		h.commit(id, 1500, false)
		if id, err := h.HoldNone(t.Context(), domain, h.asks(1), h.o.Life); id != "" || err != nil {
			t.Errorf("beyond the limit: got %q (%v), want no id", id, err)
		}
		if id := h.hold(1); id != "" {
			t.Errorf("a hold beyond the limit: got %q, want no id", id)
		}
		time.Sleep(24 * time.Hour)
		h.left(1000)
	})
	inHolds(t, kinds[0], func(h *holding) {
		id, _ := h.HoldNone(t.Context(), domain, h.asks(1), h.o.Life)
		time.Sleep(time.Minute)
		h.commit(id, 10, false)
		h.left(990)
	})
}

// A commit that names no hold of these requests is a report, and the hold comes back.
func TestACommitOfSomethingElseIsAReport(t *testing.T) {
	other := func(h *holding) (string, []weir.Request) {
		rule, _ := weir.NewRule("others", weir.FixedWindow{Rate: weir.PerDay(10)})
		return domain, append(h.asks(50), rule.For("ann", 1))
	}
	for name, c := range map[string]struct {
		id   func(id string) string
		asks func(h *holding) (domain string, requests []weir.Request)
	}{
		"an empty id":    {id: func(string) string { return "" }},
		"no id":          {id: func(string) string { return "../../etc/passwd" }},
		"a changed id":   {id: func(id string) string { return id[:len(id)-2] + "AA" }},
		"a huge id":      {id: func(id string) string { return strings.Repeat(id, 10_000) }},
		"another domain": {asks: func(h *holding) (string, []weir.Request) { return "other", h.asks(50) }},
		"other limits":   {asks: other},
		"limits that were changed": {asks: func(h *holding) (string, []weir.Request) {
			rule, _ := weir.NewRule("tokens", weir.FixedWindow{Rate: weir.PerDay(1001)})
			return domain, []weir.Request{rule.For("ann", 50)}
		}},
		"another key": {asks: func(h *holding) (string, []weir.Request) {
			return domain, []weir.Request{h.rule.For("ann", 50), h.rule.For("bob", 50)}
		}},
	} {
		inHolds(t, kinds[0], func(h *holding) {
			id := h.hold(400)
			in, requests := domain, h.asks(50)
			if c.asks != nil {
				in, requests = c.asks(h)
			} else {
				id = c.id(id)
			}
			for range 2 {
				if stood, err := h.Commit(t.Context(), in, id, requests); err != nil || stood {
					t.Errorf("%s: the hold stood: %v (%v), want a report", name, stood, err)
				}
			}
			h.left(500)
			time.Sleep(time.Minute)
			synctest.Wait()
			h.left(900)
		})
	}
}

func TestIdsOfHoldsAreNoTokens(t *testing.T) {
	inHolds(t, kinds[0], func(h *holding) {
		id := h.hold(400)
		if err := h.Settle(t.Context(), nil, id, false, 0); err != ErrToken {
			t.Errorf("a settlement by the id of a hold: %v, want ErrToken", err)
		}
		_, token, _, err := h.Reserve(Patient{Client: t.Context()}, h.asks(100))
		if err != nil || token == "" {
			t.Fatalf("got %q (%v), want a token", token, err)
		}
		h.commit(token, 10, false)
		h.left(490)
	})
}

func TestOpenHoldsAreBounded(t *testing.T) {
	inHolds(t, "fixed window 9007199254740992/366d", func(h *holding) {
		large := make([]weir.Request, weir.MaxRequests)
		for i := range large {
			large[i] = h.rule.For(strings.Repeat("k", 250)+string(rune('a'+i)), 1)
		}
		most, ids := mostHeld/(holdBytes+sizeOf(large)), []string{}
		for range most {
			id, err := h.Hold(t.Context(), domain, large, h.o)
			if err != nil || len(id) > 8<<10 {
				t.Fatalf("hold %d of %d: %v, and an id of %d bytes, want at most 8 KiB", len(ids), most, err, len(id))
			}
			ids = append(ids, id)
		}
		if _, err := h.Hold(t.Context(), domain, large, h.o); err != ErrHolds {
			t.Errorf("one more: %v, want ErrHolds", err)
		}
		if stood, err := h.Commit(t.Context(), domain, ids[0], large); err != nil || !stood {
			t.Errorf("a commit: %v, %v", stood, err)
		}
		if _, err := h.Hold(t.Context(), domain, large, h.o); err != nil {
			t.Errorf("after a commit: %v, want room for one", err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if h.holds.room.taken != 0 || len(h.holds.timers) != 0 {
			t.Errorf("after their life, holds keep %d bytes and %d timers, want none", h.holds.room.taken, len(h.holds.timers))
		}
	})
}

// failing is an engine that fails while it is away, before or after it has decided.
type failing struct {
	weir.Engine
	away  atomic.Pointer[func(call weir.Call) bool] // nil while it is not
	after bool
}

// fails has the engine be away for some calls, or for none.
func (f *failing) fails(away func(call weir.Call) bool) {
	if away == nil {
		f.away.Store(nil)
		return
	}
	f.away.Store(&away)
}

func always(weir.Call) bool { return true }

var errAway = errors.New("away")

// awayError says that nothing was counted, and that the call may succeed later.
type awayError struct{ error }

func (e awayError) Unwrap() error          { return e.error }
func (awayError) WasCounted() weir.Counted { return weir.CountedNo }
func (awayError) Unavailable() bool        { return true }

func newFailing(below weir.Engine) *failing {
	f := &failing{}
	f.Engine = weir.Wrap(below, func(ctx context.Context, call weir.Call, next weir.Next) (weir.Answer, error) {
		call.Identity = "" // which memory refuses
		if away := f.away.Load(); away == nil || !(*away)(call) {
			return next(ctx, call)
		}
		if f.after {
			_, _ = next(ctx, call)
			return weir.Answer{}, errAway // perhaps counted
		}
		return weir.Answer{}, awayError{errAway}
	})
	return f
}

func TestACommitThatTheEngineHasNotCountedCanBeRepeated(t *testing.T) {
	for failed := range 6 { // the mark of the commit, that of the hold, the record, for two orders of the calls
		synctest.Test(t, func(t *testing.T) {
			engine := newFailing(weir.NewMemory(weir.MemoryOptions{}))
			h := newHolding(t, engine, []string{"fixed window 1000/d", "cycle 1000/d"}[failed/3])
			failed := failed % 3
			id, calls := h.hold(400), 0
			engine.fails(func(call weir.Call) bool {
				if call.Op != weir.OpReturn {
					calls++
				}
				return call.Op != weir.OpReturn && calls > failed
			})
			if stood, err := h.Commit(t.Context(), domain, id, h.asks(100)); err == nil || stood {
				t.Errorf("after %d calls: got %v, %v, want an error", failed, stood, err)
			}
			engine.fails(nil)
			if inSteps(h.asks(1)) && failed == 2 { // the units came back, and were not counted
				h.commit(id, 100, false)
			} else {
				h.left(600)
				h.commit(id, 100, true)
			}
			h.left(900)
		})
	}
}

// An answer that was lost must not make a second count possible.
func TestACommitThatMayHaveBeenCountedIsNotCountedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newFailing(weir.NewMemory(weir.MemoryOptions{}))
		engine.after = true
		h := newHolding(t, engine, kinds[0])
		id := h.hold(400)
		engine.fails(func(call weir.Call) bool { return call.Op == weir.OpRecord })
		if _, err := h.Commit(t.Context(), domain, id, h.asks(100)); !errors.Is(err, errAway) {
			t.Errorf("got %v, want the engine's error", err)
		}
		engine.fails(nil)
		h.commit(id, 100, false)
		h.left(500) // the held units stay spent
		time.Sleep(time.Minute)
		synctest.Wait()
		h.left(500)
	})
}

func TestAHoldComesBackOnceTheEngineIsBack(t *testing.T) {
	for away, want := range map[time.Duration]int64{30 * time.Second: 1000, 2 * time.Minute: 600} {
		synctest.Test(t, func(t *testing.T) {
			engine := newFailing(weir.NewMemory(weir.MemoryOptions{}))
			h := newHolding(t, engine, kinds[0])
			h.hold(400)
			engine.fails(always)
			time.Sleep(time.Minute + away)
			synctest.Wait()
			engine.fails(nil)
			time.Sleep(time.Minute)
			synctest.Wait()
			h.left(want)
			if len(h.holds.timers) != 0 {
				t.Errorf("%d holds are remembered, want none", len(h.holds.timers))
			}
		})
	}
}

// What cannot be given back is tried again, but never given back twice.
func TestTheUnitsOfAHoldComeBackOnce(t *testing.T) {
	for _, limits := range []string{"fixed window 1000/d", "cycle 1000/d"} {
		for _, committed := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				engine := newFailing(weir.NewMemory(weir.MemoryOptions{}))
				h := newHolding(t, engine, limits)
				if err := h.Report(t.Context(), h.asks(500)); err != nil {
					t.Fatal(err)
				}
				id, want := h.hold(200), int64(500)
				engine.fails(func(call weir.Call) bool { return call.Op == weir.OpReturn && call.Taken != nil })
				if committed {
					want = 400
					h.commit(id, 100, false)
					h.commit(id, 100, false)
				} else {
					time.Sleep(time.Minute)
				}
				time.Sleep(5 * time.Second)
				engine.fails(nil)
				time.Sleep(time.Minute)
				h.left(want)
				time.Sleep(time.Hour)
				h.left(want)
			})
		}
	}
}

// A Report of work that was done is counted when the engine is back, whatever the policy.
func TestAReportDuringAnOutageIsKept(t *testing.T) {
	for _, policy := range []layer.Policy{layer.Deny, layer.Allow, layer.Local} {
		synctest.Test(t, func(t *testing.T) {
			engine := newFailing(weir.NewMemory(weir.MemoryOptions{}))
			guard, err := layer.Guard(engine, layer.GuardOptions{Deadline: 15 * time.Millisecond, OnFailure: policy, Peers: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer guard.Close()
			h := newHolding(t, guard, kinds[0])
			engine.fails(always)
			if err := h.Report(t.Context(), h.asks(1500)); err != nil {
				t.Errorf("policy %v: %v", policy, err)
			}
			time.Sleep(10 * time.Second)
			engine.fails(nil)
			time.Sleep(30 * time.Second)
			synctest.Wait()
			h.left(0)
		})
	}
}
