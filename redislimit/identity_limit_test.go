package redislimit

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
)

// everyRule returns a rule of each limit with room for n units, and with one name for each.
func everyRule(t *testing.T, n int64) (rules []*weir.Rule) {
	t.Helper()
	for i, limit := range everyLimit(n) {
		rule, err := weir.NewRule(fmt.Sprint("r", i), limit)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, rule)
	}
	return rules
}

// A take was counted, and then its limit becomes smaller than its cost. Asked again, it is the same take.
func TestARepeatedTakeAboveASmallerLimitIsStillAdmitted(t *testing.T) {
	engine := openFor(t, "redis://"+redistest.Start(t).Addr, Options{})
	small := everyRule(t, 2)
	for i, large := range everyRule(t, 20) {
		limit := large.Limits()[0]
		ask := func(rule *weir.Rule, want, most int64) {
			t.Helper()
			for range 2 {
				if d, err := doCall(t.Context(), engine, weir.Call{Op: weir.OpTake, Identity: "take"}, rule.For("k", 8)); err != nil || !d.Allowed || d.Limit != most {
					t.Errorf("%s, of which there are %d: Take of 8: %+v, %v, want it admitted", limit, most, d, err)
				}
				results := make([]weir.Result, 1)
				if err := engine.Each(t.Context(), []weir.Call{{Op: weir.OpTake, Identity: "take", Requests: []weir.Request{rule.For("k", 8)}}}, results); err != nil || results[0].Err != nil || !results[0].Decision.Allowed {
					t.Errorf("%s, of which there are %d: Each of 8: %+v, %v, want it admitted", limit, most, results[0], err)
				}
				if times, d, err := upToAs(t.Context(), engine, "up to", 2, rule.For("k", 4)); err != nil || !d.Allowed || times != 2 {
					t.Errorf("%s, of which there are %d: TakeUpTo of 4, twice: %d times, %+v, %v, want 2", limit, most, times, d, err)
				}
			}
			if err := wantRemaining(engine, rule.For("k", 0), want); err != nil {
				t.Errorf("%s, of which there are %d: %v", limit, most, err)
			}
		}
		ask(large, 4, 20)
		ask(small[i], 0, 2)
		ask(large, 4, 20)
		if d, err := doCall(t.Context(), engine, weir.Call{Op: weir.OpTake, Identity: "new"}, small[i].For("k", 8)); err != nil || d.Allowed || d.RetryAfter != weir.Never {
			t.Errorf("%s: Take of 8 of 2 with a new identity: %+v, %v, want it refused for good", limit, d, err)
		}
	}
}

// A take up to a number fitted once, and then the limit becomes larger. Asked again, it is the same take.
func TestARepeatedTakeUpToUnderALargerLimitIsCountedOnce(t *testing.T) {
	engine := openFor(t, "redis://"+redistest.Start(t).Addr, Options{})
	large := everyRule(t, 20)
	for i, small := range everyRule(t, 5) {
		for _, rule := range []*weir.Rule{small, large[i], small} {
			if times, d, err := upToAs(t.Context(), engine, "x", 10, rule.For("k", 4)); err != nil || !d.Allowed || times != 1 {
				t.Errorf("TakeUpTo of 4 of %s: %d times, %+v, %v, want once", rule, times, d, err)
			}
		}
		if err := wantRemaining(engine, small.For("k", 0), 1); err != nil {
			t.Errorf("%s: %v", small, err)
		}
	}
}

// The answer to a repeated Reserve says that the caller has the slots from now on for a lease.
func TestARepeatedReserveHasItsSlotsForAWholeLease(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	engine := openFor(t, "redis://"+redistest.Start(t).Addr, Options{Clock: func() int64 { return now.UnixNano() }})
	for _, text := range []string{"a=concurrency 1 lease 30s", "b=concurrency 1 lease 30s and token bucket 5/300d"} {
		rule := mustRule(t, text)
		once := leased(weir.Call{Identity: "once", Requests: []weir.Request{rule.For("k", 1)}})
		for range 4 {
			if a, err := engine.Do(t.Context(), once); err != nil || !a.Decision.Allowed {
				t.Fatalf("%s: Take: %+v, %v", text, a.Decision, err)
			}
			now = now.Add(20 * time.Second)
			if d, err := engine.Peek(t.Context(), rule.For("k", 1)); err != nil || d.Allowed {
				t.Errorf("%s: 20s after an answer that gave the slot for 30s, another caller gets %+v (%v), want a refusal", text, d, err)
			}
		}
		now = now.Add(10 * time.Second)
		if d, err := engine.Peek(t.Context(), rule.For("k", 1)); err != nil || !d.Allowed {
			t.Errorf("%s: after the lease: %+v, %v, want the slot free", text, d, err)
		}
	}
}

// An identity is used again after its minute. The release of its slots is not taken for the first one, which is known for
// longer.
func TestTheSlotsOfAnIdentityThatIsUsedAgainAreReleased(t *testing.T) {
	engine := openFor(t, "redis://"+redistest.Start(t).Addr, Options{})
	rule := mustRule(t, "r=concurrency 3 lease 1h and token bucket 9/300d")
	once := rule.For("k", 2)
	identities := func() (keys []string) {
		keys, err := engine.client.Known().Do(t.Context(), engine.client.Known().B().Keys().Pattern("*:once").Build()).AsStrSlice()
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	for range 3 {
		before := identities()
		r, err := reserveAs(t.Context(), engine, "once", once)
		if err != nil || !r.Decision.Allowed {
			t.Fatalf("Reserve: %+v, %v", r, err)
		}
		taken := identities()
		if len(taken) != len(before)+1 {
			t.Fatalf("the identities are %q, and were %q before Reserve", taken, before)
		}
		if err := r.Done(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, key := range taken { // its minute ends
			if err := engine.client.Known().Do(t.Context(), engine.client.Known().B().Del().Key(key).Build()).Error(); err != nil {
				t.Fatal(err)
			}
		}
		if d, err := engine.Peek(t.Context(), rule.For("k", 3)); err != nil || !d.Allowed {
			t.Errorf("after Done: %+v, %v, want all slots free", d, err)
		}
	}
}

// A cost above the capacity only peeks, but it may be that of a take that was counted before.
func TestALostRepetitionAboveASmallerLimitMayHaveBeenCounted(t *testing.T) {
	server := redistest.Start(t)
	proxy := startProxy(t, server.Addr)
	engine := openFor(t, "redis://"+proxy.addr, Options{})
	warmUp(t, engine)
	proxy.cut.Store(true)
	rule := mustRule(t, "r=token bucket 2/h")
	_, err := doCall(t.Context(), engine, weir.Call{Op: weir.OpTake, Identity: "x"}, rule.For("k", 8))
	if failed, ok := errors.AsType[*Error](err); !ok || failed.Counted == weir.CountedNo {
		t.Errorf("Take of 8 of 2 with an identity, whose reply is lost: %v, want an error that may have counted", err)
	}
}
