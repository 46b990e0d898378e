package weir_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/weirflow/weir"
)

func TestABanIsReadAndPrinted(t *testing.T) {
	for text, want := range map[string]weir.Ban{
		"ban 1m up to 24h after 5/10m": {After: 5, Within: 10 * time.Minute, For: time.Minute, UpTo: 24 * time.Hour},
		"ban 90s after 1/h":            {After: 1, Within: time.Hour, For: 90 * time.Second},
	} {
		got, err := weir.ParseLimit(text)
		if err != nil || got != weir.Limit(want) {
			t.Errorf("%s: got %#v and %v, want %#v", text, got, err, want)
			continue
		}
		if again, err := weir.ParseLimit(got.String()); err != nil || again != got {
			t.Errorf("%s prints %q, which reads %#v and %v", text, got, again, err)
		}
	}
	rule, err := weir.ParseRule("login=5/m and ban 1m up to 24h after 5/10m and 100/h")
	if err != nil || rule.String() != "login=token bucket 5/m and ban 1m up to 1d after 5/10m and token bucket 100/h" {
		t.Errorf("got %v and %v", rule, err)
	}
}

func TestABanStandsBesideOtherLimitsOnce(t *testing.T) {
	ban := weir.Ban{After: 5, Within: time.Minute, For: time.Minute}
	bucket := weir.TokenBucket{Rate: weir.PerMinute(5)}
	wantBan := func(what string, err error) {
		t.Helper()
		var limit *weir.LimitError
		if !errors.As(err, &limit) || limit.Code != weir.CodeBan {
			t.Errorf("%s: got %v, want a LimitError with CodeBan", what, err)
		}
	}
	_, alone := weir.NewRule("r", ban)
	wantBan("alone", alone)
	_, two := weir.NewRule("r", bucket, ban, weir.Ban{After: 1, Within: time.Hour, For: time.Hour})
	wantBan("two", two)
	_, limiter := weir.New(ban)
	wantBan("a Limiter", limiter)
	_, keyed := weir.NewKeyed[string](ban)
	wantBan("a Keyed", keyed)
	_, after := mustRule(t, "r", bucket, ban).ChargeAfter()
	wantBan("charged after", after)
	if _, err := weir.NewRule("r", weir.LeakyBucket{Rate: weir.PerMinute(5)}, ban); err == nil {
		t.Error("a leaky bucket, which stands alone, was accepted beside a ban")
	}
	if r := mustRule(t, "r", bucket, ban); r.Bookable() {
		t.Error("a rule with a ban is bookable")
	}
}

func TestABanGoesWithWhatIsSpentOrElseHeld(t *testing.T) {
	ban, slots, bucket := weir.Ban{After: 5, Within: time.Minute, For: time.Minute}, weir.Concurrency{Slots: 2, Lease: time.Minute}, weir.TokenBucket{Rate: weir.PerMinute(5)}
	both := mustRule(t, "r", ban, slots, bucket)
	if held, spent := weir.Kit.Held(both).Limits(), weir.Kit.Spent(both).Limits(); fmt.Sprint(held) != fmt.Sprint([]weir.Limit{slots}) || fmt.Sprint(spent) != fmt.Sprint([]weir.Limit{ban, bucket}) {
		t.Errorf("got %v held and %v spent", held, spent)
	}
	only := mustRule(t, "r", slots, ban)
	if weir.Kit.Held(only) != only || weir.Kit.Spent(only) != nil {
		t.Errorf("slots and a ban: got %v held and %v spent, want both held", weir.Kit.Held(only), weir.Kit.Spent(only))
	}
}

// banned takes once, and says why it was refused and for how long.
func banned(t *testing.T, e weir.Engine, q ...weir.Request) string {
	t.Helper()
	d, err := e.Take(context.Background(), q...)
	switch {
	case err != nil:
		t.Fatal(err)
	case d.Allowed:
		return "admitted"
	}
	return fmt.Sprintf("%s %v", d.Cause, d.RetryAfter)
}

func TestARefusalByABanNamesItAndTheOtherLimits(t *testing.T) {
	now := int64(1_700_000_000_000_000_000)
	m := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now }})
	rule := mustRule(t, "login", weir.FixedWindow{Rate: weir.PerDay(9)}, weir.Ban{After: 2, Within: 10 * time.Minute, For: 2 * time.Minute, UpTo: time.Hour}, weir.TokenBucket{Rate: weir.PerMinute(1)})
	q := rule.For("alice", 1)
	for i, want := range []string{"admitted", "count 1m0s", "ban 2m0s", "ban 2m0s"} {
		if got := banned(t, m, q); got != want {
			t.Errorf("take %d: got %s, want %s", i, got, want)
		}
	}
	now += int64(time.Minute)
	d, err := m.Take(context.Background(), q)
	want := weir.Decision{Rule: "login", Key: "alice", LimitIndex: 2, RefusedBy: 1, Cause: weir.ByBan, Limit: 1, RetryAfter: time.Minute, ResetAfter: 105*time.Minute + 40*time.Second}
	if err != nil || d != want {
		t.Errorf("got  %+v and %v\nwant %+v", d, err, want)
	}
	if stats := m.Stats().Rules[0]; stats.Bans != 1 || stats.Unnoted != 0 {
		t.Errorf("got %+v, want 1 ban", stats)
	}
	if err := m.Reset(context.Background(), q); err != nil || banned(t, m, q) != "admitted" {
		t.Errorf("a reset does not lift the ban (%v)", err)
	}
}

func TestTheCallThatBeginsABanSaysSo(t *testing.T) {
	m := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return 0 }})
	q := mustRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(1)}, weir.Ban{After: 2, Within: time.Hour, For: 100 * time.Hour}).For("k", 1)
	for i, want := range []bool{false, false, true, false} {
		if d, err := m.Take(context.Background(), q); err != nil || d.BanBegun != want {
			t.Errorf("take %d: got %+v and %v, want BanBegun %t", i, d, err, want)
		}
	}
}

func TestBansOutliveASnapshotAndAChangeOfNumbers(t *testing.T) {
	now := int64(1_700_000_000_000_000_000)
	clock := func() int64 { return now }
	m := weir.NewMemory(weir.MemoryOptions{Clock: clock})
	window := weir.FixedWindow{Rate: weir.Per(1, 2*time.Second)}
	rule := mustRule(t, "r", window, weir.Ban{After: 3, Within: time.Hour, For: time.Minute, UpTo: time.Hour})
	for range 3 {
		banned(t, m, rule.For("struck", 1)) // twice
	}
	for range 4 {
		banned(t, m, rule.For("banned", 1))
	}
	banned(t, m, rule.For("fine", 1))
	again := loaded(t, saved(t, m), clock)
	changed := mustRule(t, "r", weir.Ban{After: 3, Within: time.Hour, For: 5 * time.Minute, UpTo: 2 * time.Hour}, window)
	for key, want := range map[string]string{"fine": "count 2s", "struck": "count 2s", "banned": "ban 1m0s"} {
		d, err := again.Peek(context.Background(), changed.For(key, 1))
		if got := fmt.Sprintf("%s %v", d.Cause, d.RetryAfter); err != nil || got != want {
			t.Errorf("%s: got %s and %v, want %s", key, got, err, want)
		}
	}
	if got := banned(t, again, changed.For("struck", 1)); got != "ban 5m0s" {
		t.Errorf("the third strike: got %s, want ban 5m0s", got)
	}
	now += int64(time.Minute)
	for i, want := range []string{"admitted", "count 2s", "count 2s", "ban 10m0s"} {
		if got := banned(t, again, changed.For("banned", 1)); got != want {
			t.Errorf("take %d after the ban: got %s, want %s", i, got, want)
		}
	}
}

// TestBanStatesAreSmall holds a ban to 200 bytes without its key, and strikes to 8 more each.
func TestBanStatesAreSmall(t *testing.T) {
	const keys = 1500
	hour := weir.Ban{After: 100, Within: time.Hour, For: time.Hour}
	for _, strikes := range []int{1, 33, 97, 99, 100} {
		m := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return 0 }})
		rule := mustRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(1)}, hour)
		alone := mustRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(1)})
		for key := range keys { // the state of the window is not that of the ban
			banned(t, m, alone.For(fmt.Sprint(key), 1))
		}
		before := heap()
		for range strikes {
			for key := range keys {
				banned(t, m, rule.For(fmt.Sprint(key), 1))
			}
		}
		bytes := float64(heap()-before) / keys
		most := float64(200 + 8*(strikes%100))
		if t.Logf("%d strikes: %.0f bytes, at most %.0f", strikes, bytes, most); bytes > most || bytes < 50 {
			t.Errorf("%d strikes take %.0f bytes, want at most %.0f", strikes, bytes, most)
		}
		runtime.KeepAlive(m)
	}
}

func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestAFloodOfNewKeysNeitherLiftsABanNorBeginsOne has more keys refused than there is room for.
func TestAFloodOfNewKeysNeitherLiftsABanNorBeginsOne(t *testing.T) {
	now := int64(1_700_000_000_000_000_000)
	m := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now }, MaxKeys: 2000})
	rule := mustRule(t, "r", weir.SlidingLog{Rate: weir.Per(1, time.Second)}, weir.Ban{After: 3, Within: time.Minute, For: time.Hour})
	for range 4 {
		banned(t, m, rule.For("early", 1))
	}
	begun := m.Stats().Rules[0].Bans
	for i := range 100_000 {
		now += int64(10 * time.Microsecond)
		banned(t, m, rule.For(fmt.Sprint(i), 1))
	}
	if stats := m.Stats().Rules[0]; stats.Bans != begun || stats.Unnoted == 0 {
		t.Errorf("got %+v, want %d bans, because no key was refused three times, and refusals that were not noted", stats, begun)
	}
	if got := banned(t, m, rule.For("early", 1)); got[:3] != "ban" {
		t.Errorf("after a flood, the banned key got %s", got)
	}
}
