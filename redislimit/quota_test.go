package redislimit

import (
	"fmt"
	"slices"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit/internal/wire"
)

const days = 24 * time.Hour

// The clock of the server decides, however far it is from that of this process. A decision costs one round trip, except after a
// move over a window.
func TestAQuotaFollowsTheClockOfTheServer(t *testing.T) {
	server := redistest.StartWithClock(t)
	engine := openFor(t, "redis://"+server.Addr, quiet)
	for _, unit := range []weir.CalendarUnit{weir.Day, weir.Week, weir.Month, weir.Quarter, weir.Year} {
		limit := weir.Quota{Count: 5, Unit: unit, Zone: "Asia/Kathmandu", At: 90 * time.Minute}
		limits := []weir.Limit{limit}
		if unit%2 == 0 {
			limits = append(limits, weir.TokenBucket{Rate: weir.PerSecond(1000)})
		}
		rule := newRuleOf(t, limit.String(), limits...)
		newest := time.Duration(0) // the latest offset of the clock
		for i, offset := range []time.Duration{0, 400 * days, 800 * days, 400 * days, 0, -400 * days, 1200 * days, 1201 * days} {
			server.SetClock(offset)
			key := fmt.Sprint("k", i/3) // the third of each has a clock that went back for the last two keys
			ask := func(n int64) (d weir.Decision, calls uint64) {
				before := engine.Stats().Calls
				d, err := engine.Take(t.Context(), rule.For(key, n))
				if err != nil {
					t.Fatalf("%s at %v: %v", limit, offset, err)
				}
				return d, engine.Stats().Calls - before
			}
			if newest = max(newest, offset); i%3 == 0 {
				newest = offset
			}
			_, calls := ask(1)
			if calls > 3 {
				t.Errorf("%s: the first take at %v took %d calls, want 3 at most", limit, offset, calls)
			}
			again := uint64(0)
			for range 5 {
				_, calls := ask(1)
				again += calls
			}
			d, calls := ask(1)
			_, end, _ := weir.Kit.CalendarWindow(limit, time.Now().Add(newest))
			want := time.Until(end) - offset
			if d.Allowed || (d.RetryAfter-want).Abs() > time.Minute {
				t.Errorf("%s at %v: got %+v, want a refusal for %v", limit, offset, d, want)
			}
			if offset == newest && again+calls != 6 {
				t.Errorf("%s at %v: 6 takes took %d calls, want one each", limit, offset, again+calls)
			}
		}
	}
}

// Decisions of one batch of which some want other boundaries are made once each, in order.
func TestABatchOverABoundaryIsCountedOnce(t *testing.T) {
	server := redistest.StartWithClock(t)
	engine := openFor(t, "redis://"+server.Addr, quiet)
	const each = 7
	var rules []*weir.Rule
	for _, limits := range [][]weir.Limit{
		{weir.TokenBucket{Rate: weir.Per(1000, 300*days)}},
		{weir.Quota{Count: 1000, Unit: weir.Day, Zone: "Europe/Paris"}},
		{weir.SlidingLog{Rate: weir.Per(1000, 300*days)}, weir.Quota{Count: 1000, Unit: weir.Month}},
		{weir.TokenBucket{Rate: weir.Per(1000, 300*days)}, weir.Quota{Count: 1000, Unit: weir.Year}, weir.Concurrency{Slots: 1000, Lease: time.Hour}},
	} {
		rules = append(rules, newRuleOf(t, fmt.Sprint("r", len(rules)), limits...))
	}
	for round, offset := range []time.Duration{0, 500 * days, 1000 * days} {
		server.SetClock(offset)
		var calls []weir.Call
		for i := range each * len(rules) {
			c := weir.Call{Op: weir.OpTake, Requests: []weir.Request{rules[i%len(rules)].For(fmt.Sprint(round), 1)}, Lease: uint64(i + 1)}
			if i%2 == 0 {
				c.Identity = fmt.Sprint("id", round, i)
			}
			calls = append(calls, c)
		}
		results := make([]weir.Result, len(calls))
		if err := engine.Each(t.Context(), calls, results); err != nil {
			t.Fatal(err)
		}
		for i, r := range results {
			if r.Err != nil || !r.Decision.Allowed {
				t.Errorf("round %d call %d: %+v, %v", round, i, r.Decision, r.Err)
			}
		}
		for _, rule := range rules {
			if d, err := engine.Peek(t.Context(), rule.For(fmt.Sprint(round), 0)); err != nil || d.Remaining != 1000-each {
				t.Errorf("round %d: %s has %d left and %v, want %d", round, rule, d.Remaining, err, 1000-each)
			}
		}
	}
}

// An undo by identity that first wants other boundaries still undoes the take: it is not taken for one that came before it.
func TestAnUndoOverABoundaryFindsItsTake(t *testing.T) {
	server := redistest.StartWithClock(t)
	engine := openFor(t, "redis://"+server.Addr, quiet)
	rule := newRuleOf(t, "r", weir.Quota{Count: 10, Unit: weir.Year})
	server.SetClock(1000 * days)
	if _, err := engine.Do(t.Context(), weir.Call{Op: weir.OpTake, Identity: "one", Requests: []weir.Request{rule.For("k", 4)}}); err != nil {
		t.Fatal(err)
	}
	stranger := openFor(t, "redis://"+server.Addr, quiet) // which does not know the clock of the server
	parts, at, err := stranger.parts(nil, []weir.Request{rule.For("k", 4)}, 0)
	if err != nil {
		t.Fatal(err)
	}
	take := asking(wire.OpTake, 1, parts, at)
	take.Identify(&stranger.keys, "one")
	if _, err := stranger.alone(t.Context(), take.UndoOf(1)); err != nil {
		t.Fatal(err)
	}
	if d, err := engine.Peek(t.Context(), rule.For("k", 0)); err != nil || d.Remaining != 10 {
		t.Errorf("after the undo: %+v, %v, want all 10", d, err)
	}
}

// Versions without quotas read the state of one as that of a window with a period of its own, and keep it.
func TestTheStateOfAQuotaIsAWindowToOtherVersions(t *testing.T) {
	server := redistest.Start(t)
	engine := openFor(t, "redis://"+server.Addr, quiet)
	quota, bucket := weir.Quota{Count: 9, Unit: weir.Month}, weir.TokenBucket{Rate: weir.Per(9, 300*days)}
	window := weir.FixedWindow{Rate: weir.Per(9, weir.Describe(quota).Reset)} // whose period is that of the state
	both, without := newRuleOf(t, "r", bucket, quota), newRuleOf(t, "r", bucket, window)
	for _, rule := range []*weir.Rule{both, without, both, without} {
		if d, err := engine.Take(t.Context(), rule.For("k", 1)); err != nil || !d.Allowed {
			t.Fatalf("%s: %+v, %v", rule, d, err)
		}
	}
	for rule, want := range map[*weir.Rule]int64{newRuleOf(t, "r", quota): 7, newRuleOf(t, "r", window): 7, newRuleOf(t, "r", bucket): 5} {
		if d, err := engine.Peek(t.Context(), rule.For("k", 0)); err != nil || d.Remaining != want {
			t.Errorf("%s: %d left and %v, want %d", rule, d.Remaining, err, want)
		}
	}
	if keys, _ := server.Do("KEYS", "*").([]any); len(keys) != 1 {
		t.Errorf("stored are %q, want one value", keys)
	}
}

// A key outlives every window of the unit that may hold its state, because another zone may ask for it next.
func TestAQuotaOutlivesItsWindow(t *testing.T) {
	server := redistest.Start(t)
	engine := openFor(t, "redis://"+server.Addr, quiet)
	if _, err := engine.Take(t.Context(), newRuleOf(t, "r", weir.Quota{Count: 9, Unit: weir.Day, Zone: "Asia/Tokyo"}).For("k", 1)); err != nil {
		t.Fatal(err)
	}
	keys, _ := server.Do("KEYS", "*").([]any)
	if len(keys) != 1 {
		t.Fatalf("stored are %q, want one value", keys)
	}
	left, _ := server.Do("PTTL", fmt.Sprint(keys[0])).(int64)
	if got := time.Duration(left) * time.Millisecond; got < 2*days || got > 51*time.Hour {
		t.Errorf("the key expires in %v, want more than two days: the longest day of any zone", got)
	}
}

func newRuleOf(t *testing.T, name string, limits ...weir.Limit) *weir.Rule {
	t.Helper()
	rule, err := weir.NewRule(name, slices.Clone(limits)...)
	if err != nil {
		t.Fatal(err)
	}
	return rule
}
