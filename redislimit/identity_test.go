package redislimit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/redistest"
)

// everyLimit is one limit of each kind, with room for n units.
func everyLimit(n int64) []weir.Limit {
	ages := 300 * 24 * time.Hour
	return []weir.Limit{
		weir.TokenBucket{Rate: weir.Per(n, ages)}, weir.LeakyBucket{Rate: weir.Per(n, ages), Queue: n - 1},
		weir.FixedWindow{Rate: weir.Per(n, ages)}, weir.SlidingWindow{Rate: weir.Per(n, ages)}, weir.Cycle{Rate: weir.Per(n, ages)},
		weir.Quota{Count: n, Unit: weir.Year}, weir.FirstWindow{Rate: weir.Per(n, ages)},
		weir.SlidingLog{Rate: weir.Per(n, ages)}, weir.RateGate{Rate: weir.Per(n, ages)}, weir.Concurrency{Slots: n, Lease: ages},
	}
}

func TestADecisionWithAnIdentityIsCountedOnce(t *testing.T) {
	engine := openFor(t, "redis://"+redistest.Start(t).Addr, Options{})
	for _, limit := range everyLimit(10) {
		rule, err := weir.NewRule(limit.String(), limit)
		if err != nil {
			t.Fatal(err)
		}
		remaining := func(want int64, after string) {
			t.Helper()
			if d, err := engine.Peek(t.Context(), rule.For("k", 0)); err != nil || d.Remaining != want {
				t.Errorf("%s: after %s: %d units remain (%v), want %d", limit, after, d.Remaining, err, want)
			}
		}
		take := weir.Call{Op: weir.OpTake, Identity: "one", Requests: []weir.Request{rule.For("k", 3)}}
		answered, err := engine.Do(t.Context(), take)
		first := answered.Decision
		if err != nil || !first.Allowed {
			t.Fatalf("%s: Take: %+v, %v", limit, first, err)
		}
		if _, err := engine.Take(t.Context(), rule.For("k", 1)); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if a, err := engine.Do(t.Context(), take); err != nil || a.Decision != first {
				t.Errorf("%s: Take again: %+v, %v, want the first answer %+v", limit, a.Decision, err, first)
			}
		}
		remaining(6, "a take of 3, again and again, and one of 1")
		results := make([]weir.Result, 4)
		one := []weir.Request{rule.For("k", 1)}
		two := weir.Call{Op: weir.OpTake, Identity: "two", Requests: one}
		if err := engine.Each(t.Context(), []weir.Call{take, two, two, {Op: weir.OpTake, Requests: one}}, results); err != nil {
			t.Fatal(err)
		}
		for i, r := range results {
			if r.Err != nil || !r.Decision.Allowed || i == 0 && r.Decision != first {
				t.Errorf("%s: Each, call %d: %+v", limit, i, r)
			}
		}
		remaining(4, "two more")
		for range 2 {
			if _, err := doCall(t.Context(), engine, weir.Call{Op: weir.OpRecord, Identity: "three"}, rule.For("k", 1)); err != nil {
				t.Errorf("%s: Record: %v", limit, err)
			}
		}
		remaining(3, "a record, twice")
		for range 2 {
			if times, _, err := upToAs(t.Context(), engine, "four", 2, rule.For("k", 1)); err != nil || times != 2 {
				t.Errorf("%s: TakeUpTo 2: %d times, %v", limit, times, err)
			}
		}
		remaining(1, "two, twice")
		for range 2 { // a refusal counts nothing, so it is decided anew
			if d, err := doCall(t.Context(), engine, weir.Call{Op: weir.OpTake, Identity: "five"}, rule.For("k", 2)); err != nil || d.Allowed {
				t.Errorf("%s: Take of 2 of 1: %+v, %v", limit, d, err)
			}
		}
		if err := engine.Reset(t.Context(), rule.For("k", 0)); err != nil {
			t.Fatal(err)
		}
		if d, err := doCall(t.Context(), engine, weir.Call{Op: weir.OpTake, Identity: "five"}, rule.For("k", 2)); err != nil || !d.Allowed {
			t.Errorf("%s: Take that was refused before: %+v, %v, want it admitted", limit, d, err)
		}
	}
}

// Several limits, and an attempt that a log counts though it refuses it.
func TestAnIdentityCoversAllThatADecisionCounts(t *testing.T) {
	engine := openFor(t, "redis://"+redistest.Start(t).Addr, Options{})
	both, err := weir.NewRule("both", everyLimit(10)[2:]...)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if d, err := doCall(t.Context(), engine, weir.Call{Op: weir.OpTake, Identity: "x"}, both.For("a", 2), both.For("b", 3)); err != nil || !d.Allowed || d.Remaining != 7 {
			t.Errorf("Take of two keys: %+v, %v, want 7 left of b", d, err)
		}
	}
	if d, err := engine.Peek(t.Context(), both.For("a", 0)); err != nil || d.Remaining != 8 {
		t.Errorf("Peek: %+v, %v, want 8 left of a", d, err)
	}
	attempts := mustRule(t, "attempts=sliding log 2/10m count denied")
	for i := range 6 {
		name := fmt.Sprint("attempt ", min(i, 3)) // the last three are one
		if _, err := doCall(t.Context(), engine, weir.Call{Op: weir.OpTake, Identity: name}, attempts.For("k", 1)); err != nil {
			t.Fatal(err)
		}
	}
	one, err := doCall(t.Context(), engine, weir.Call{Op: weir.OpTake, Identity: "attempt 3"}, attempts.For("k", 1))
	two, err2 := doCall(t.Context(), engine, weir.Call{Op: weir.OpTake, Identity: "attempt 3"}, attempts.For("k", 1))
	if err != nil || err2 != nil || one != two {
		t.Errorf("a refused attempt, twice: %+v and %+v (%v, %v), want one answer", one, two, err, err2)
	}
}

// The reply to a take is lost. Asking again tells whether it was admitted.
func TestFaultATakeWhoseReplyWasLostCanBeAskedAgain(t *testing.T) {
	server := redistest.Start(t)
	proxy := startProxy(t, server.Addr)
	engine, rule := openFor(t, "redis://"+proxy.addr, Options{}), mustRule(t, "r=fixed window 100/300d")
	lost := 0
	for i := range 50 {
		proxy.cut.Store(i%2 == 0)
		for {
			d, err := doCall(t.Context(), engine, weir.Call{Identity: fmt.Sprint("decision ", i)}, rule.For("k", 1))
			if err == nil {
				if !d.Allowed || d.Remaining != int64(99-i) {
					t.Fatalf("decision %d: %+v, want it admitted and %d left", i, d, 99-i)
				}
				break
			}
			lost++
		}
	}
	if lost < 10 {
		t.Errorf("%d replies were lost, want at least 10", lost)
	}
}

// Many callers with one identity are one decision.
func TestConcurrentCallersWithOneIdentityAreOneDecision(t *testing.T) {
	server := redistest.Start(t)
	rule := mustRule(t, "r=token bucket 5/300d")
	engines := []*Engine{openFor(t, "redis://"+server.Addr, Options{}), openFor(t, "redis://"+server.Addr, Options{})}
	var callers sync.WaitGroup
	var admitted atomic.Int64
	for i := range 200 {
		callers.Go(func() {
			if d, err := doCall(t.Context(), engines[i%2], weir.Call{Op: weir.OpTake, Identity: fmt.Sprint(i % 10)}, rule.For("k", 1)); err == nil && d.Allowed {
				admitted.Add(1)
			}
		})
	}
	callers.Wait()
	if d, err := engines[0].Peek(t.Context(), rule.For("k", 0)); err != nil || d.Remaining != 0 || admitted.Load() != 5*20 {
		t.Errorf("200 callers with 10 identities: %d were admitted and %d units are left (%v), want 20 callers of each of 5", admitted.Load(), d.Remaining, err)
	}
}

func TestAnIdentityLivesAMinuteAndTakesLittleRoom(t *testing.T) {
	engine := openFor(t, "redis://"+redistest.Start(t).Addr, Options{})
	rule := mustRule(t, "r=token bucket 5/300d")
	if _, err := doCall(t.Context(), engine, weir.Call{Op: weir.OpTake, Identity: "0123456789abcdef0123456789abcdef"}, rule.For("k", 1)); err != nil {
		t.Fatal(err)
	}
	keys, err := engine.client.Known().Do(t.Context(), engine.client.Known().B().Keys().Pattern("*abcdef").Build()).AsStrSlice()
	if err != nil || len(keys) != 1 {
		t.Fatalf("the keys of identities are %q (%v), want one", keys, err)
	}
	ms, err := engine.client.Known().Do(t.Context(), engine.client.Known().B().Pttl().Key(keys[0]).Build()).AsInt64()
	if err != nil || ms > 60_000 || ms < 50_000 {
		t.Errorf("it lives for %d ms (%v), want a minute", ms, err)
	}
	size, err := engine.client.Known().Do(t.Context(), engine.client.Known().B().MemoryUsage().Key(keys[0]).Build()).AsInt64()
	t.Logf("%d bytes, of which the key is %d", size, len(keys[0]))
	if err != nil || size > 300 {
		t.Errorf("an identity takes %d bytes (%v), want at most 300", size, err)
	}
}

func TestIdentitiesThatMakeNoSenseAreRefused(t *testing.T) {
	redis := openFor(t, "redis://"+redistest.Start(t).Addr, Options{})
	rule := mustRule(t, "r=token bucket 5/h")
	for _, op := range []weir.Op{weir.OpTake, weir.OpTakeUpTo, weir.OpReserve, weir.OpRecord} {
		_, err := redis.Do(t.Context(), weir.Call{Op: op, Identity: strings.Repeat("x", enginekit.MaxIdentity+1), Requests: []weir.Request{rule.For("a", 1)}})
		if refused, ok := errors.AsType[*weir.RequestError](err); !ok || refused.Field != "identity" {
			t.Errorf("%s: got %v, want a RequestError about the identity", op, err)
		}
	}
}

// doCall makes a call on requests.
func doCall(ctx context.Context, e weir.Engine, c weir.Call, requests ...weir.Request) (weir.Decision, error) {
	if c.Op == weir.OpRecord && requests[0].Cost < 0 { // all are
		c.Op, requests = weir.OpReturn, slices.Clone(requests)
		for i := range requests {
			requests[i].Cost *= -1
		}
	}
	c.Requests = requests
	a, err := e.Do(ctx, c)
	return a.Decision, err
}

// upToAs takes up to a number of times, with an identity.
func upToAs(ctx context.Context, e weir.Engine, identity string, most int64, requests ...weir.Request) (times int64, d weir.Decision, err error) {
	a, err := e.Do(ctx, weir.Call{Op: weir.OpTakeUpTo, Most: most, Identity: identity, Requests: requests})
	return a.Times, a.Decision, err
}

// reserveAs reserves with an identity.
// leased gives a take the lease that a reservation with its identity has.
func leased(c weir.Call) weir.Call {
	c.Lease = weir.Kit.LeaseOf(c)
	return c
}

func reserveAs(ctx context.Context, e weir.Engine, identity string, requests ...weir.Request) (*weir.Reservation, error) {
	a, err := e.Do(ctx, weir.Call{Op: weir.OpReserve, Identity: identity, Requests: requests})
	return a.Reservation, err
}
