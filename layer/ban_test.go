package layer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/layer"
)

const banned = "login=2/1h and ban 10m after 3/1m"

// Each refusal is a strike until the ban begins, so a layer that repeats refusals leaves them to the engine.
func TestADenyUntilSwallowsNoStrike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "login=1/10s and ban 10m after 3/1m")
		d := denying(t, r)
		takes(t, d, 1, rule, "k")
		for i, want := range []weir.Decision{{Cause: weir.ByCount, RetryAfter: 10 * time.Second}, {Cause: weir.ByCount, RetryAfter: 10 * time.Second}, {Cause: weir.ByBan, RetryAfter: 10 * time.Minute}} {
			before := r.calls.Load()
			got, err := d.Take(t.Context(), rule.For("k", 1))
			if err != nil || got.Allowed || got.Cause != want.Cause || got.RetryAfter != want.RetryAfter || r.calls.Load() != before+1 {
				t.Errorf("refusal %d: got %+v, %v and %d calls; want %+v from the engine", i, got, err, r.calls.Load()-before, want)
			}
		}
	})
}

// The ban's own refusal writes nothing, so it is repeated, for any cost.
func TestADenyUntilRepeatsTheRefusalOfABan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule, other, second := newRemote(), mustRule(t, "login=1000/1m and ban 10m after 3/1m"), mustRule(t, "other=1/1h"), mustRule(t, "second=1/1h and ban 1h after 100/1h")
		d := denying(t, r)
		takes(t, d, 1, rule, "k")
		if _, err := d.Record(t.Context(), rule.For("k", 1500)); err != nil {
			t.Fatal(err)
		}
		ask := func(wantCause weir.Cause, wantRetry time.Duration, wantBegun bool, wantCalls int64, requests ...weir.Request) {
			t.Helper()
			before := r.calls.Load()
			got, err := d.Take(t.Context(), requests...)
			if err != nil || got.Allowed || got.Cause != wantCause || wantRetry > 0 && got.RetryAfter != wantRetry || got.BanBegun != wantBegun || r.calls.Load()-before != wantCalls {
				t.Errorf("got %+v, %v and %d calls; want cause %v, retry after %v, begun %v and %d calls", got, err, r.calls.Load()-before, wantCause, wantRetry, wantBegun, wantCalls)
			}
		}
		ask(weir.ByCount, 0, false, 1, rule.For("k", 7))
		ask(weir.ByCount, 0, false, 1, rule.For("k", 7))
		ask(weir.ByBan, 10*time.Minute, true, 1, rule.For("k", 7))
		ask(weir.ByBan, 10*time.Minute, false, 0, rule.For("k", 7))
		ask(weir.ByBan, 10*time.Minute, false, 0, rule.For("k", 1))
		time.Sleep(time.Second - 1)
		ask(weir.ByBan, 10*time.Minute-time.Second+1, false, 0, rule.For("k", 1))
		ask(weir.ByBan, 0, false, 0, other.For("k", 1), rule.For("k", 1))
		ask(weir.ByBan, 0, false, 1, second.For("k", 1), rule.For("k", 1)) // which could strike the other one
		time.Sleep(time.Second)
		ask(weir.ByBan, 10*time.Minute-2*time.Second+1, false, 1, rule.For("k", 1))
		if err := d.Reset(t.Context(), rule.For("k", 1)); err != nil || takes(t, d, 1, rule, "k") != 1 {
			t.Errorf("after a reset (%v) the key is still refused", err)
		}
	})
}

// A refusal that is known of one rule is not repeated for a call that may strike another one.
func TestADenyUntilAsksForACallThatMayStrike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule, other := newRemote(), mustRule(t, banned), mustRule(t, "other=1/10h")
		d := denying(t, r)
		takes(t, d, 2, rule, "k")
		takes(t, d, 2, other, "k")
		for i := range 3 {
			before := r.calls.Load()
			got, err := d.Take(t.Context(), other.For("k", 1), rule.For("k", 1))
			if err != nil || got.Allowed || r.calls.Load() != before+1 {
				t.Errorf("take %d: got %+v, %v and %d calls, want the engine's refusal", i, got, err, r.calls.Load()-before)
			}
		}
		if got, err := d.Peek(t.Context(), rule.For("k", 1)); err != nil || got.Cause != weir.ByCount || got.RefusedBy != 0 {
			t.Errorf("the count refuses for longer than the ban, but the peek says %+v, %v", got, err)
		}
		time.Sleep(30 * time.Minute)
		if got := takes(t, d, 1, rule, "k"); got != 1 {
			t.Error("the ban of 10 minutes has not ended after 30")
		}
	})
}

// During an outage each process bans by the refusals that it has seen. The engine hears of the units that were granted, and of no
// strike.
func TestALocalBanIsOfItsProcessAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "login=4/1m and ban 1h after 3/1m")
		g := guarded(t, r, layer.GuardOptions{OnFailure: layer.Local, Peers: 2})
		r.fails.Store(true)
		if got := takes(t, g, 2, rule, "k"); got != 2 {
			t.Fatalf("%d of 2 are admitted, want the share of one of 2 processes", got)
		}
		for i := range 4 {
			d, err := g.Take(t.Context(), rule.For("k", 1))
			wantCause := map[bool]weir.Cause{true: weir.ByBan, false: weir.ByCount}[i >= 2] // N is not divided
			if err != nil || d.Allowed || d.Cause != wantCause || d.BanBegun != (i == 2) {
				t.Errorf("refusal %d: got %+v and %v, want the cause %v", i, d, err, wantCause)
			}
		}
		r.fails.Store(false)
		time.Sleep(10 * time.Second) // the engine is asked again, and hears of what was granted
		if d, err := r.memory.Peek(t.Context(), rule.For("k", 1)); err != nil || !d.Allowed || d.Remaining != 2 {
			t.Errorf("the engine: got %+v and %v, want 2 of 4 left and no ban", d, err)
		}
		if d, err := g.Take(t.Context(), rule.For("k", 1)); err != nil || !d.Allowed {
			t.Errorf("after the outage: got %+v and %v, want the engine's admission", d, err)
		}
		r.fails.Store(true)
		if d, err := g.Take(t.Context(), rule.For("k", 1)); err != nil || d.Cause != weir.ByBan {
			t.Errorf("in the next outage: got %+v and %v, want the ban that the process knows", d, err)
		}
	})
}

func TestARuleWithABanIsNotTakenAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, rule := newRemote(), mustRule(t, "login=1000/1h and ban 1m after 3/1m")
		p := prefetched(t, r)
		before := r.calls.Load()
		takes(t, p, 30, rule, "k")
		if calls := r.calls.Load() - before; calls != 30 {
			t.Errorf("30 takes cost %d calls of the engine, want 30", calls)
		}
	})
}
