package redislimit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

// stored returns the keys of a server.
func stored(t *testing.T, client rueidis.Client) []string {
	t.Helper()
	keys, err := client.Do(context.Background(), client.B().Keys().Pattern("*").Build()).AsStrSlice()
	if err != nil {
		t.Fatalf("KEYS: %v", err)
	}
	return keys
}

func TestAKeyEndsWhenItsStateIsAsGoodAsFresh(t *testing.T) {
	client := dial(t, redistest.Start(t))
	const now = 1_700_000_000_123_457 // us: inside every window
	engine := newEngine(t, client, redislimit.Options{Clock: func() int64 { return now * 1000 }, Linger: time.Nanosecond})
	for _, limit := range []weir.Limit{
		weir.TokenBucket{Rate: weir.PerHour(7)}, weir.LeakyBucket{Rate: weir.PerHour(7), Queue: 3},
		weir.FixedWindow{Rate: weir.PerHour(7)}, weir.SlidingWindow{Rate: weir.PerHour(7)},
		weir.SlidingLog{Rate: weir.PerHour(7)}, weir.RateGate{Rate: weir.PerHour(7)},
		weir.Cycle{Rate: weir.PerHour(7)}, weir.Concurrency{Slots: 7, Lease: time.Hour},
	} {
		rule := newRule(t, limit.String(), limit)
		d, err := engine.Take(t.Context(), rule.For("k", 3))
		if err != nil || !d.Allowed {
			t.Fatalf("%s: Take: %+v, %v", rule, d, err)
		}
		keys := stored(t, client)
		if len(keys) != 1 {
			t.Fatalf("%s: got keys %q, want one", rule, keys)
		}
		// EXPIRETIME would be exact but needs Redis 7. Little time has passed since the call.
		ms, err := client.Do(t.Context(), client.B().Pttl().Key(keys[0]).Build()).AsInt64()
		want := int64((d.ResetAfter + time.Millisecond - 1) / time.Millisecond)
		if d.ResetAfter == weir.Never {
			want = -1
		}
		if err != nil || ms > want || ms < want-2000 {
			t.Errorf("%s: got %d ms to live and error %v, want %d, that is ResetAfter %v rounded up", rule, ms, err, want, d.ResetAfter)
		}
		if err := engine.Reset(t.Context(), rule.For("k", 0)); err != nil {
			t.Fatalf("%s: Reset: %v", rule, err)
		}
		if keys := stored(t, client); len(keys) != 0 {
			t.Errorf("%s: after a reset: got keys %q, want none", rule, keys)
		}
	}
}

// The expiry of a key does not move with each write. A key that is written again lives up to half as long again as
// its state matters.
func TestAKeyWrittenAgainOutlivesItsStateByHalfAtMost(t *testing.T) {
	client := dial(t, redistest.Start(t))
	engine := newEngine(t, client, redislimit.Options{})
	for _, limit := range []weir.Limit{
		weir.TokenBucket{Rate: weir.PerHour(100)}, weir.LeakyBucket{Rate: weir.PerHour(100), Queue: 100},
		weir.FixedWindow{Rate: weir.Per(100, 300*24*time.Hour)}, weir.SlidingWindow{Rate: weir.Per(100, 300*24*time.Hour)},
		weir.SlidingLog{Rate: weir.PerHour(100)}, weir.SlidingLog{Rate: weir.PerHour(10), CountDenied: true}, weir.RateGate{Rate: weir.PerHour(100)},
		weir.Cycle{Rate: weir.Per(100, 300*24*time.Hour)}, weir.Concurrency{Slots: 100, Lease: time.Hour},
	} {
		rule := newRule(t, limit.String(), limit)
		for i := range 60 {
			begin := time.Now()
			write, cost := engine.Record, int64(1)
			if i%7 == 6 {
				write, cost = engine.Return, 2
			}
			d, err := write(t.Context(), rule.For("k", cost))
			if err != nil {
				t.Fatalf("%s: write %d: %v", rule, i, err)
			}
			keys := stored(t, client)
			if len(keys) != 1 {
				t.Fatalf("%s: got keys %q, want one", rule, keys)
			}
			ms, err := client.Do(t.Context(), client.B().Pttl().Key(keys[0]).Build()).AsInt64()
			lives := time.Duration(ms) * time.Millisecond
			if err != nil || lives < d.ResetAfter-time.Since(begin)-time.Millisecond || lives > d.ResetAfter*3/2+time.Hour/10 {
				t.Errorf("%s: write %d: got %v to live and error %v, want %v to half as much again", rule, i, lives, err, d.ResetAfter)
			}
		}
		if err := engine.Reset(t.Context(), rule.For("k", 0)); err != nil {
			t.Fatalf("%s: Reset: %v", rule, err)
		}
	}
}

func TestARefusalAndAPeekWriteNothing(t *testing.T) {
	client := dial(t, redistest.Start(t))
	engine := newEngine(t, client, redislimit.Options{})
	both := newRule(t, "both", weir.TokenBucket{Rate: weir.PerHour(5)}, weir.SlidingLog{Rate: weir.PerHour(3)},
		weir.Concurrency{Slots: 9, Lease: time.Hour}, weir.RateGate{Rate: weir.PerHour(9)}, weir.Cycle{Rate: weir.PerHour(9)}, weir.SlidingWindow{Rate: weir.PerHour(9)})
	if d, err := engine.Take(t.Context(), both.For("k", 4)); err != nil || d.Allowed {
		t.Errorf("Take of 4 of 3: got %+v and %v, want a refusal", d, err)
	}
	if d, err := engine.Peek(t.Context(), both.For("k", 3)); err != nil || !d.Allowed {
		t.Errorf("Peek of 3 of 3: got %+v and %v, want it allowed", d, err)
	}
	if keys := stored(t, client); len(keys) != 0 {
		t.Errorf("got keys %q, want none", keys)
	}
}

func TestKeysNameALaneAndARule(t *testing.T) {
	client := dial(t, redistest.Start(t))
	engine := newEngine(t, client, redislimit.Options{Prefix: "app"})
	rule := newRule(t, "login", weir.TokenBucket{Rate: weir.PerHour(5)}, weir.TokenBucket{Rate: weir.PerDay(9)}, weir.RateGate{Rate: weir.PerDay(9)})
	for i := range 300 {
		if _, err := engine.Take(t.Context(), rule.For(fmt.Sprint("user ", i), 1), rule.For(fmt.Sprint("friend ", i), 1).Colocate(fmt.Sprint("user ", i))); err != nil {
			t.Fatalf("Take: %v", err)
		}
	}
	lanes := map[string][]string{}
	for _, key := range stored(t, client) {
		rest, ok := strings.CutPrefix(key, "app:{")
		lane, name, closed := strings.Cut(rest, "}:login:")
		if !ok || !closed {
			t.Fatalf("got key %q, want app:{LANE}:login:…", key)
		}
		_, who, _ := strings.Cut(name, ":")
		lanes[lane] = append(lanes[lane], who)
	}
	if len(lanes) < 100 || len(lanes) > 128 {
		t.Errorf("300 places are on %d lanes, want most of 128", len(lanes))
	}
	for lane, names := range lanes {
		counts := map[string]int{}
		for _, name := range names {
			_, number, _ := strings.Cut(name, "%20")
			counts[number]++
		}
		for number, n := range counts {
			if n != 4 {
				t.Errorf("lane %s has %d values of user and friend %s, want all 4: they share a place", lane, n, number)
			}
		}
	}
}

func TestADamagedStateIsAnErrorOfItsCallerAlone(t *testing.T) {
	client := dial(t, redistest.Start(t))
	engine := newEngine(t, client, redislimit.Options{})
	for _, limit := range []weir.Limit{
		weir.TokenBucket{Rate: weir.PerHour(5)}, weir.FixedWindow{Rate: weir.PerHour(5)}, weir.Cycle{Rate: weir.PerHour(5)},
		weir.SlidingLog{Rate: weir.PerHour(5)}, weir.Concurrency{Slots: 5, Lease: time.Hour},
	} {
		rule := newRule(t, limit.String(), limit)
		if _, err := engine.Take(t.Context(), rule.For("bad", 1)); err != nil {
			t.Fatalf("%s: Take: %v", rule, err)
		}
		for _, key := range stored(t, client) {
			if err := client.Do(t.Context(), client.B().Set().Key(key).Value("not a state").Build()).Error(); err != nil {
				t.Fatalf("SET: %v", err)
			}
		}
		results := make([]weir.Result, 3)
		if err := engine.Each(t.Context(), enginekit.Calls(weir.OpTake, rule.For("a", 1), rule.For("bad", 1), rule.For("b", 1)), results); err != nil {
			t.Fatalf("%s: Each: %v", rule, err)
		}
		if results[0].Err != nil || !results[0].Decision.Allowed || results[2].Err != nil || !results[2].Decision.Allowed {
			t.Errorf("%s: beside a damaged state: got %+v and %+v, want both admitted", rule, results[0], results[2])
		}
		if failed, ok := results[1].Err.(*redislimit.Error); !ok || failed.Reason != redislimit.Damaged || failed.Counted != weir.CountedNo || results[1].Decision.Allowed {
			t.Errorf("%s: of a damaged state: got %+v, want an Error with reason damaged", rule, results[1])
		}
		if err := engine.Reset(t.Context(), rule.For("bad", 0), rule.For("a", 0), rule.For("b", 0)); err != nil {
			t.Fatalf("%s: Reset: %v", rule, err)
		}
	}
}

// A record may put a cycle into debt for longer than Redis can tell in an expiry, and for longer than the script can
// count in microseconds.
func TestACycleInDebtForAgesIsAnsweredLikeAnyOther(t *testing.T) {
	client := dial(t, redistest.Start(t))
	engine := newEngine(t, client, redislimit.Options{})
	day := 24 * time.Hour
	yearly, daily := newRule(t, "yearly", weir.Cycle{Rate: weir.Per(1, 366*day)}), newRule(t, "daily", weir.FixedWindow{Rate: weir.Per(9, 300*day)})
	for _, debt := range []int64{3, 400, 1 << 40, 1 << 52} {
		key := fmt.Sprint("owes ", debt)
		if d, err := engine.Record(t.Context(), daily.For(key, 2), yearly.For(key, debt)); err != nil || d.Allowed {
			t.Errorf("Record of %d a year: got %+v and %v, want it counted beyond the limit", debt, d, err)
		}
		if d, err := engine.Peek(t.Context(), daily.For(key, 0)); err != nil || d.Remaining != 7 {
			t.Errorf("Record of %d a year: %d units of the other limit remain (%v), want 7 of 9", debt, d.Remaining, err)
		}
		if d, err := engine.Take(t.Context(), yearly.For(key, 1)); err != nil || d.Allowed || d.RetryAfter < 366*day {
			t.Errorf("Take with a debt of %d years: got %+v and %v, want a refusal for more than a year", debt, d, err)
		}
		if r, err := weir.ReserveAhead(t.Context(), engine, day, yearly.For(key, 1)); err != nil || r.Decision.Allowed || r.Decision.RetryAfter < 366*day {
			t.Errorf("Book with a debt of %d years: got %+v and %v, want a refusal for more than a year", debt, r, err)
		}
	}
}
