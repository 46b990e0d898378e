package redislimit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

// plan is a rule that memory holds in ns and Redis in us, so that a tick of both is the same part of a period.
type plan struct{ memory, redis *weir.Rule }

// versions makes versions of one rule: other sets of limits, in other orders, with other rates and bursts.
func versions(t *testing.T, random *rand.Rand, pool []func(weir.Rate) weir.Limit, periods []int64) plan {
	t.Helper()
	for {
		var inMemory, inRedis []weir.Limit
		for _, i := range random.Perm(len(pool))[:1+random.IntN(min(4, len(pool)))] {
			count, period := 1+random.Int64N(1<<random.IntN(16)), periods[i]
			if period == 0 {
				period = 1_000_000 + random.Int64N(1<<(20+random.IntN(11)))
			}
			inMemory = append(inMemory, pool[i](weir.Per(count, time.Duration(period))))
			inRedis = append(inRedis, pool[i](weir.Per(count, time.Duration(period)*time.Microsecond)))
		}
		memory, err := weir.NewRule("plan", inMemory...)
		if err != nil {
			continue // of limits that cannot be together
		}
		return plan{memory, newRule(t, "plan", inRedis...)}
	}
}

var (
	fixedSize = []func(weir.Rate) weir.Limit{
		func(r weir.Rate) weir.Limit { return weir.TokenBucket{Rate: r, Burst: 1 + r.Count/3} },
		func(r weir.Rate) weir.Limit { return weir.TokenBucket{Rate: r, Burst: 2 * r.Count} },
		func(r weir.Rate) weir.Limit { return weir.FixedWindow{Rate: r} },
		func(r weir.Rate) weir.Limit { return weir.FixedWindow{Rate: r} },
		func(r weir.Rate) weir.Limit { return weir.SlidingWindow{Rate: r} },
		// Redis evicts a cycle when it is fresh for its writer. Memory may keep it, and read it with a smaller limit.
		func(r weir.Rate) weir.Limit { return weir.Cycle{Rate: weir.Per(50, r.Period)} },
		func(r weir.Rate) weir.Limit { return weir.Cycle{Rate: weir.Per(900, r.Period)} },
	}
	fixedPeriods = []int64{0, 0, 3_000_000_000, 7_777_777, 3_000_000_000, 900_000_000, 31_000_000_000}

	leaky = []func(weir.Rate) weir.Limit{
		func(r weir.Rate) weir.Limit {
			return weir.LeakyBucket{Rate: r, Queue: 2 * r.Count, NoDelay: r.Count / 2}
		},
		func(r weir.Rate) weir.Limit { return weir.LeakyBucket{Rate: r, Queue: r.Count} },
	}
)

// The states of a key under one rule share a value. Versions of the rule with other limits keep each other's states in
// it, and buckets keep the units used when the rate changes.
func TestVersionsOfARuleAgreeWithMemory(t *testing.T) {
	t.Parallel()
	client := dial(t, redistest.Start(t))
	for name, pool := range map[string][]func(weir.Rate) weir.Limit{"fixed size": fixedSize, "buckets": fixedSize[:1], "two buckets": fixedSize[:2], "leaky": leaky} {
		periods := slices.Clone(fixedPeriods)
		if name == "leaky" {
			periods = []int64{0, 0}
		}
		for seed := range randtest.Seeds(t, 100, 33) {
			playVersions(t, client, name, pool, periods, seed)
		}
	}
}

func playVersions(t *testing.T, client rueidis.Client, name string, pool []func(weir.Rate) weir.Limit, periods []int64, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	now := 1_700_000_000_000 + random.Int64N(1e15)
	memory := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now }})
	redis := newEngine(t, client, redislimit.Options{Prefix: fresh(), Clock: func() int64 { return now * 1000 }, Linger: time.Hour})
	plans := make([]plan, 4)
	for i := range plans {
		plans[i] = versions(t, random, pool, periods)
	}
	var history strings.Builder
	for range 80 {
		p, most := plans[random.IntN(len(plans))], int64(1)<<random.IntN(21)
		cost := random.Int64N(most)
		verb := oneOf(random, "take", "take", "take", "peek", "record", "up to")
		if verb == "record" {
			cost = cost%2000 - 1000 // a debt beyond 71 years is cut
		}
		ask := func(e weir.Engine, r *weir.Rule) (times int64, d weir.Decision, err error) {
			switch q := r.For("k", cost); verb {
			case "take":
				d, err = e.Take(t.Context(), q)
			case "peek":
				d, err = e.Peek(t.Context(), q)
			case "record":
				d, err = doCall(t.Context(), e, weir.Call{Op: weir.OpRecord}, q)
			case "up to":
				times, d, err = weir.TakeUpTo(t.Context(), e, most, q)
			}
			return times, d, err
		}
		wantTimes, want, wantErr := ask(memory, p.memory)
		gotTimes, got, err := ask(redis, p.redis)
		fmt.Fprintf(&history, "%d %s %d of %v:\n\t%d %+v\n", now, verb, cost, p.memory, wantTimes, want)
		for _, d := range []*time.Duration{&got.RetryAfter, &got.ResetAfter, &got.LimitReset, &got.Delay} {
			if *d != weir.Never {
				*d /= 1000
			}
		}
		if got != want || gotTimes != wantTimes || (err == nil) != (wantErr == nil) {
			t.Fatalf("%s, seed %d:\n%sgot %d, %+v (%v), want it as above (%v)", name, seed, history.String(), gotTimes, got, err, wantErr)
		}
		retry, reset := int64(min(want.RetryAfter, 1e13)), int64(min(want.ResetAfter, 1e13))
		now += oneOf(random, 0, 0, 1, retry, max(retry-1, 0), reset, reset/2, reset/100, 1_000_000)
	}
}

// Two processes that hold different limits of one rule, as in a rolling deployment, together admit at most the largest
// burst and what comes back at the largest rate.
func TestProcessesWithDifferentLimitsStayWithinTheLargest(t *testing.T) {
	server := redistest.Start(t)
	limits := []weir.Limit{
		weir.TokenBucket{Rate: weir.PerSecond(333), Burst: 10}, weir.TokenBucket{Rate: weir.PerMinute(700), Burst: 60},
		weir.TokenBucket{Rate: weir.PerSecond(100), Burst: 1},
	}
	const burst, perSecond = 60, 333
	var engines [2]*redislimit.Engine
	for i := range engines {
		engines[i] = newEngine(t, dial(t, server), redislimit.Options{Prefix: "shared"})
	}
	var admitted atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for caller := range 8 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(caller), 1))
			for time.Since(began) < 2*time.Second {
				rule := newRule(t, "plan", limits[random.IntN(len(limits))])
				n := 1 + random.Int64N(3)
				d, err := engines[caller%2].Take(context.Background(), rule.For("tenant", n))
				if err != nil {
					t.Errorf("Take: %v", err)
					return
				}
				if d.Allowed {
					admitted.Add(n)
				}
			}
		})
	}
	all.Wait()
	most := burst + int64(time.Since(began).Seconds()*perSecond) + 1
	if got := admitted.Load(); got > most || got < burst/2 {
		t.Errorf("admitted %d units, want at most %d, and half a burst at least", got, most)
	}
}

// A slower plan that is refused all the time does not delay a faster one on the same key.
func TestASlowerPlanDoesNotStarveAFasterOne(t *testing.T) {
	now := int64(1_700_000_000_000_000_000)
	engine := newEngine(t, dial(t, redistest.Start(t)), redislimit.Options{Clock: func() int64 { return now }})
	fast := newRule(t, "plan", weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 10})
	slow := newRule(t, "plan", weir.TokenBucket{Rate: weir.PerMinute(1), Burst: 1})
	var got int
	for range 15_000 { // a quarter of a minute
		now += int64(time.Millisecond)
		results := make([]weir.Result, 3)
		if err := engine.Each(t.Context(), enginekit.Calls(weir.OpTake, slow.For("k", 1), fast.For("k", 1), slow.For("k", 1)), results); err != nil {
			t.Fatalf("Each: %v", err)
		}
		for i, r := range results {
			if r.Err != nil {
				t.Fatalf("Each: %v", r.Err)
			}
			if r.Decision.Allowed && i == 1 {
				got++
			}
		}
	}
	if got < 150 || got > 160 {
		t.Errorf("the faster plan got %d units in 15 s, want 150 and at most its burst more", got)
	}
}

// A rule's states of fixed size have one key, and logs, gates and slots one each.
func TestStatesOfFixedSizeShareAKey(t *testing.T) {
	client := dial(t, redistest.Start(t))
	engine := newEngine(t, client, redislimit.Options{})
	rule := newRule(t, "many", weir.TokenBucket{Rate: weir.PerHour(9)}, weir.SlidingLog{Rate: weir.PerHour(9)}, weir.TokenBucket{Rate: weir.PerDay(99)},
		weir.FixedWindow{Rate: weir.PerDay(9)}, weir.Concurrency{Slots: 3, Lease: time.Hour}, weir.SlidingWindow{Rate: weir.PerDay(9)}, weir.Cycle{Rate: weir.PerDay(9)})
	for want := int64(2); want >= 0; want-- {
		if d, err := engine.Take(t.Context(), rule.For("k", 1)); err != nil || !d.Allowed || d.Remaining != want {
			t.Errorf("Take: got %+v and %v, want it allowed and %d remaining", d, err, want)
		}
	}
	keys := stored(t, client)
	slices.Sort(keys)
	if len(keys) != 3 || !strings.HasSuffix(keys[0], ":many::k") {
		t.Errorf("got keys %q, want one for the states of fixed size, one for the log and one for the slots", keys)
	}
	if err := engine.Reset(t.Context(), rule.For("k", 0)); err != nil {
		t.Fatalf("Reset: %v", err)
	}
	if keys := stored(t, client); len(keys) != 0 {
		t.Errorf("after a reset: got keys %q, want none", keys)
	}
}

// States of limits that a version of a rule does not have stay until they expire, and no longer.
func TestUnknownStatesLeaveWhenTheyExpire(t *testing.T) {
	now := int64(1_700_000_000_000_000_000)
	client := dial(t, redistest.Start(t))
	engine := newEngine(t, client, redislimit.Options{Clock: func() int64 { return now }})
	length := func() int {
		t.Helper()
		n := 0
		for _, key := range stored(t, client) {
			value, err := client.Do(t.Context(), client.B().Get().Key(key).Build()).ToString()
			if err != nil {
				t.Fatalf("GET: %v", err)
			}
			n += len(value)
		}
		return n
	}
	take := func(limits ...weir.Limit) {
		t.Helper()
		if d, err := engine.Take(t.Context(), newRule(t, "r", limits...).For("k", 1)); err != nil || !d.Allowed {
			t.Fatalf("Take: got %+v and %v, want it allowed", d, err)
		}
	}
	bucket := weir.TokenBucket{Rate: weir.PerDay(1000)}
	take(bucket)
	alone := length()
	for i := range 100 { // each period is another state
		take(bucket, weir.FixedWindow{Rate: weir.Per(5, time.Hour+time.Duration(i)*time.Second)})
	}
	if n := length(); n > alone+17*40 {
		t.Errorf("after 100 periods of a window the value has %d bytes, want at most 16 unknown states", n)
	}
	now += int64(3 * time.Hour)
	take(bucket)
	if n := length(); n != alone {
		t.Errorf("after the windows ended the value has %d bytes, want the %d of the bucket alone", n, alone)
	}
}

// A value of another version of the stored format is an error that names the key, and stays.
func TestAnotherStoredFormatIsAnErrorThatNamesTheKey(t *testing.T) {
	client := dial(t, redistest.Start(t))
	engine := newEngine(t, client, redislimit.Options{})
	for _, limit := range []weir.Limit{weir.TokenBucket{Rate: weir.PerHour(9)}, weir.SlidingLog{Rate: weir.PerHour(9)}, weir.Concurrency{Slots: 9, Lease: time.Hour}} {
		rule := newRule(t, "r", limit)
		if _, err := engine.Take(t.Context(), rule.For("alice", 1)); err != nil {
			t.Fatalf("Take: %v", err)
		}
		key := stored(t, client)[0]
		value, err := client.Do(t.Context(), client.B().Get().Key(key).Build()).ToString()
		if err != nil || value[0]>>4 != 1 {
			t.Fatalf("got a value that begins with %#02x and error %v, want format 1", value[0], err)
		}
		old := "\x20" + value[1:]
		do(t, client, "SET", key, old)
		for name, ask := range map[string]func() error{
			"take":   func() error { _, err := engine.Take(t.Context(), rule.For("alice", 1)); return err },
			"record": func() error { _, err := engine.Record(t.Context(), rule.For("alice", 1)); return err },
			"together": func() error {
				other := newRule(t, "other", limit)
				_, err := engine.Take(t.Context(), other.For("bob", 1), rule.For("alice", 1))
				return err
			},
		} {
			err := ask()
			failed, ok := err.(*redislimit.Error)
			if !ok || failed.Reason != redislimit.Damaged || failed.Counted != weir.CountedNo || !strings.Contains(err.Error(), fmt.Sprintf("%q", key)) || !strings.Contains(err.Error(), "format 2") {
				t.Errorf("%s, %s: got error %v, want one that names the key and format 2", limit, name, err)
			}
		}
		if got, err := client.Do(t.Context(), client.B().Get().Key(key).Build()).ToString(); err != nil || got != old {
			t.Errorf("%s: the value is now %q (%v), want it unchanged", limit, got, err)
		}
		do(t, client, "FLUSHALL")
	}
}

// Bookings across a change: none comes before a booked instant, and the newest is undone exactly.
func TestBookingsKeepTheirInstantsAcrossAChange(t *testing.T) {
	engine := newEngine(t, dial(t, redistest.Start(t)), redislimit.Options{Clock: func() int64 { return 1_700_000_000_000_000_000 }})
	slow := newRule(t, "plan", weir.TokenBucket{Rate: weir.PerMinute(1), Burst: 2})
	fast := newRule(t, "plan", weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 100})
	book := func(rule *weir.Rule, n int64, want time.Duration) *weir.Reservation {
		t.Helper()
		r, err := weir.ReserveAhead(t.Context(), engine, weir.Never, rule.For("k", n))
		if err != nil || r.Decision.Delay != want {
			t.Fatalf("%d units of %v: booked %+v, error %v, want them in %v", n, rule, r, err, want)
		}
		return r
	}
	book(slow, 2, 0)
	book(slow, 1, time.Minute)
	// At the booked instant 2 units are used, of a tenth of a second from now on.
	want := weir.Decision{Cause: weir.ByCount, Limit: 100, RetryAfter: time.Minute, ResetAfter: time.Minute + 200*time.Millisecond, LimitReset: time.Minute + 200*time.Millisecond, Rule: "plan", Key: "k"}
	if d, err := engine.Peek(t.Context(), fast.For("k", 1)); err != nil || d != want {
		t.Errorf("ahead of the booking: %+v, error %v, want %+v", d, err, want)
	}
	if err := book(fast, 99, time.Minute+100*time.Millisecond).Cancel(t.Context()); err != nil {
		t.Errorf("Cancel: %v", err)
	}
	book(fast, 99, time.Minute+100*time.Millisecond)
}
