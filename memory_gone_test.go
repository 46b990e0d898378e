package weir_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
)

// takeUnder takes a unit of key "k" under a rule that nothing keeps.
func takeUnder(t testing.TB, m *weir.Memory, name string, limits ...weir.Limit) bool {
	t.Helper()
	d, err := m.Take(context.Background(), mustRule(t, name, limits...).For("k", 1))
	if err != nil {
		t.Error(err)
	}
	return d.Allowed
}

// TestTheTableOfARuleThatIsGoneIsFreed uses a name after the other, as a program does whose rules are renamed at each
// change. Their states are words, and cells.
func TestTheTableOfARuleThatIsGoneIsFreed(t *testing.T) {
	now := int64(1_700_000_000_123_456_789)
	m := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now }})
	kept := mustRule(t, "kept", weir.FixedWindow{Rate: weir.PerSecond(3)})
	spend(t, m, kept.For("k", 1))
	const names = 3000
	for i := range names {
		if !takeUnder(t, m, fmt.Sprint("r", i), everyLimit[0], weir.SlidingLog{Rate: weir.PerSecond(5)}) {
			t.Fatal("a take under a new rule was refused")
		}
		if i%100 == 99 {
			now += int64(time.Hour)
			runtime.GC()
			if got := len(saved(t, m)); i > 1000 && got > 100*400 {
				t.Fatalf("after %d names the snapshot has %d bytes", i, got)
			}
		}
	}
	now += int64(time.Hour)
	runtime.GC()
	s := m.Stats()
	if len(s.Rules) != 1 || s.Rules[0] != (weir.RuleStats{Rule: "kept", Decisions: 1}) || s.Keys > 1 || s.Evicted < 2*names {
		t.Errorf("got %d keys, %d evicted and the rules %+v, want those of the rule that is left", s.Keys, s.Evicted, s.Rules)
	}
	runtime.KeepAlive(kept)
}

// TestAStateInUseOutlivesItsRule has a rule come back after its name was looked at.
func TestAStateInUseOutlivesItsRule(t *testing.T) {
	now := int64(1_700_000_000_000_000_000)
	for _, limit := range everyLimit {
		if d := weir.Describe(limit); d.Burst > 1000 || limit == (weir.Limit)(weir.DenyAll{}) {
			continue
		}
		m := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now }})
		before := 0
		for takeUnder(t, m, "r", limit) {
			before++
			now++
		}
		for range 3 {
			runtime.GC()
			m.Stats()
		}
		if before == 0 || takeUnder(t, m, "r", limit) {
			t.Errorf("%s: a rule of the same name admits more than the %d before", limit, before)
		}
	}
}

// TestRulesThatComeAndGoChangeNoAnswer makes the rules of one of two engines anew for each call. Time passes, sometimes
// long enough for all states to become idle.
func TestRulesThatComeAndGoChangeNoAnswer(t *testing.T) {
	random := rand.New(rand.NewPCG(randtest.Seed(t), 0))
	now := int64(1_700_000_000_123_456_789)
	clock := func() int64 { return now }
	kept, other := weir.NewMemory(weir.MemoryOptions{Clock: clock}), weir.NewMemory(weir.MemoryOptions{Clock: clock})
	var rules []*weir.Rule
	for i := range 40 {
		rules = append(rules, mustRule(t, fmt.Sprint("r", i), everyLimit[i%len(everyLimit)]))
	}
	freed := 0
	for op := range randtest.Rounds(t, 10_000, 1000) {
		now += random.Int64N(int64(3 * time.Millisecond))
		switch random.IntN(200) {
		case 0:
			runtime.GC()
			now += []int64{0, int64(time.Second), int64(3 * time.Hour)}[random.IntN(3)]
			if len(other.Stats().Rules) < len(kept.Stats().Rules) {
				freed++
			}
		case 1:
			other = loaded(t, saved(t, other), clock)
		}
		rule := rules[random.IntN(len(rules))]
		q := rule.For(fmt.Sprint(random.IntN(5)), random.Int64N(4))
		verb, lease := []string{"take", "take", "peek", "record", "reset"}[random.IntN(5)], random.Uint64N(3)
		want := answerTo(kept, verb, lease, q)
		q.Rule = mustRule(t, rule.Name(), rule.Limits()...)
		if got := answerTo(other, verb, lease, q); got != want {
			t.Fatalf("operation %d, %s cost %d of key %s under %s at %d:\ngot  %s\nwant %s", op, verb, q.Cost, q.Key, rule, now, got, want)
		}
	}
	if freed == 0 {
		t.Error("no rule was freed")
	}
	runtime.KeepAlive(rules)
}

// TestAClockThatGoesBackFindsNoNewUnitsOfAFreedRule sets the clock back after a rule was freed: its keys count as new since
// then, so what they take is missing then.
func TestAClockThatGoesBackFindsNoNewUnitsOfAFreedRule(t *testing.T) {
	for _, limit := range []weir.Limit{weir.FixedWindow{Rate: weir.PerHour(1)}, weir.TokenBucket{Rate: weir.PerHour(1)}, weir.SlidingLog{Rate: weir.PerHour(1)}} {
		now := int64(1_700_000_000_000_000_000)
		m := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now }})
		takeUnder(t, m, "r", limit)
		now += int64(3 * time.Hour)
		for runtime.GC(); len(m.Stats().Rules) > 0; runtime.GC() {
		}
		now -= int64(2*time.Hour + 30*time.Minute)
		before := takeUnder(t, m, "r", limit)
		now += int64(2*time.Hour + 30*time.Minute)
		if after := takeUnder(t, m, "r", limit); before && after {
			t.Errorf("%s: a unit was admitted at an earlier time, and again at the instant of the eviction", limit)
		}
	}
}

// TestFreeingRulesBesideDecisionsAdmitsNothingTwice has goroutines make rules of the same names while others are freed,
// saved and counted.
func TestFreeingRulesBesideDecisionsAdmitsNothingTwice(t *testing.T) {
	const names, callers, most = 30, 4, 5
	var now atomic.Int64
	now.Store(1_700_000_000_000_000_000)
	m := weir.NewMemory(weir.MemoryOptions{Clock: now.Load})
	for range randtest.Rounds(t, 50, 5) {
		now.Add(int64(time.Hour)) // all states are idle, and most names without a rule
		var admitted [names]atomic.Int64
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for i := range names * 2 * most {
					if takeUnder(t, m, fmt.Sprint("r", i%names), weir.FixedWindow{Rate: weir.PerHour(most)}) {
						admitted[i%names].Add(1)
					}
				}
			})
		}
		all.Go(func() { runtime.GC(); m.Stats(); runtime.GC(); m.Stats() })
		all.Go(func() {
			if err := m.Save(io.Discard); err != nil {
				t.Error(err)
			}
		})
		all.Wait()
		for i := range admitted {
			if got := admitted[i].Load(); got != most {
				t.Fatalf("rule r%d: %d admitted in an hour, want %d", i, got, most)
			}
		}
	}
	var file bytes.Buffer
	if err := m.Save(&file); err != nil {
		t.Fatal(err)
	}
	loaded(t, file.Bytes(), now.Load)
}
