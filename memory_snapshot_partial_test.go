package weir_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
)

// spentEngine returns an engine whose key "k" has used a unit of each limit, under the rules.
func spentEngine(t *testing.T, clock func() int64, rules []*weir.Rule) *weir.Memory {
	m := weir.NewMemory(weir.MemoryOptions{Clock: clock})
	for _, rule := range rules {
		answer(m, "take", rule.For("k", 1))
	}
	return m
}

// TestStatesThatAreNotUnderstoodAreLeftOutAndNamed loads the states of a limit that the program does not know.
func TestStatesThatAreNotUnderstoodAreLeftOutAndNamed(t *testing.T) {
	clock := func() int64 { return 1_700_000_000_123_456_789 }
	rules := []*weir.Rule{}
	for i, limit := range everyLimit {
		rules = append(rules, mustRule(t, fmt.Sprint("r", i), limit))
	}
	m := spentEngine(t, clock, rules)
	var file []byte
	t.Run("with the limit", func(t *testing.T) {
		weir.RegisterToy(t)
		for _, key := range []string{"a", "b", "c"} {
			answer(m, "take", mustRule(t, "r0", weir.Toy{Rest: time.Minute}).For(key, 1))
		}
		file = saved(t, m)
		loaded(t, file, clock)
	})
	again, err := weir.LoadMemory(bytes.NewReader(file), weir.MemoryOptions{Clock: clock})
	bad, ok := err.(*weir.SnapshotError)
	want := []string{`rule "r0", limit "toy/1m" (states: 3): "toy/1m" is not the name of a limit`}
	if !ok || again == nil || !slices.Equal(bad.LeftOut, want) {
		t.Fatalf("got engine %v and error %v, want an engine and LeftOut %q", again, err, want)
	}
	for _, rule := range rules {
		if got, want := answer(again, "peek", rule.For("k", 1)), answer(m, "peek", rule.For("k", 1)); got != want {
			t.Errorf("%s: got %s, want %s", rule, got, want)
		}
	}
	loaded(t, saved(t, again), clock) // nothing of them is left
}

// TestATruncatedSnapshotKeepsWhatIsBeforeItsEnd cuts a snapshot at every byte. Each key either has its state or is new,
// and the more of the file there is, the more have.
func TestATruncatedSnapshotKeepsWhatIsBeforeItsEnd(t *testing.T) {
	clock := func() int64 { return 1_700_000_000_123_456_789 }
	rule := mustRule(t, "r", weir.FixedWindow{Rate: weir.PerDay(1)}, weir.SlidingLog{Rate: weir.PerDay(2)})
	m := weir.NewMemory(weir.MemoryOptions{Clock: clock})
	const keys = 8
	for k := range keys {
		spend(t, m, rule.For(fmt.Sprint(k), 1))
	}
	file, before := saved(t, m), 0
	for length := 0; length < len(file); length += snapshotStep() {
		cut, err := weir.LoadMemory(bytes.NewReader(file[:length]), weir.MemoryOptions{Clock: clock})
		if !isWhole(err, false) || cut == nil {
			t.Fatalf("%d bytes: got engine %v and error %v", length, cut, err)
		}
		known := 0
		for k := range keys {
			if d, err := cut.Peek(t.Context(), rule.For(fmt.Sprint(k), 1)); err != nil {
				t.Fatal(err)
			} else if !d.Allowed {
				known++
			}
		}
		if known < before {
			t.Fatalf("%d bytes: %d keys are known, want at least the %d of fewer", length, known, before)
		}
		before = known
	}
	if snapshotStep() == 1 && before != keys {
		t.Errorf("without the last byte %d keys are known, want %d", before, keys)
	}
}

// TestACutSnapshotNeverSetsTheClockBack loads one that ends in its header, and one that ends behind it.
func TestACutSnapshotNeverSetsTheClockBack(t *testing.T) {
	rule := mustRule(t, "r", weir.TokenBucket{Rate: weir.PerMinute(1)})
	ahead := func() int64 { return time.Now().Add(time.Hour).UnixNano() } // of the wall clock that loads
	m := weir.NewMemory(weir.MemoryOptions{Clock: ahead})
	spend(t, m, rule.For("k", 1))
	file := saved(t, m)
	for _, length := range []int{50, len(file) - 1} {
		cut, err := weir.LoadMemory(bytes.NewReader(file[:length]), weir.MemoryOptions{})
		if !isWhole(err, false) {
			t.Fatal(err)
		}
		d, err := cut.Peek(t.Context(), rule.For("k", 1))
		if known := length > 60; err != nil || d.Allowed == known || d.RetryAfter > time.Minute {
			t.Errorf("%d bytes: got %+v and error %v, want a refusal %v", length, d, err, known)
		}
	}
}

// TestChangedBytesUnderAGoodChecksumNeverBreakAnEngine changes bytes at random. An engine that could read some of the
// states must answer, and its own snapshot must be complete.
func TestChangedBytesUnderAGoodChecksumNeverBreakAnEngine(t *testing.T) {
	random, file := rand.New(rand.NewPCG(randtest.Seed(t), 0)), sample(t)
	clock := func() int64 { return 1_700_000_000_123_456_789 }
	whole := 0
	for range randtest.Rounds(t, 2000, 200) {
		changed := bytes.Clone(file)
		for range 1 + random.IntN(3) {
			changed[random.IntN(len(file)-4)] ^= byte(1 + random.IntN(255))
		}
		m, err := weir.LoadMemory(bytes.NewReader(sealed(changed)), weir.MemoryOptions{Clock: clock})
		if isWhole(err, true) {
			whole++
		}
		if m == nil {
			continue
		}
		for i, limit := range everyLimit {
			for _, verb := range []string{"peek", "take", "record"} {
				answer(m, verb, mustRule(t, fmt.Sprint("r", i), limit).For("key0", 1))
			}
		}
		loaded(t, saved(t, m), clock)
	}
	if whole == 0 {
		t.Error("no change left states out")
	}
}

// TestSnapshotsAreTestedWithEveryLimit holds everyLimit, which the tests of snapshots share, to the registry.
func TestSnapshotsAreTestedWithEveryLimit(t *testing.T) {
	var tested []string
	for _, limit := range everyLimit {
		tested = append(tested, weir.NameOfKind(limit))
	}
	for _, name := range weir.NamesOfKindsInRules() {
		if name == "ban" { // it never stands alone: see ban_snapshot_test.go
			continue
		}
		if !slices.Contains(tested, name) {
			t.Errorf("everyLimit has no %s", name)
		}
	}
}

// TestSnapshotsHoldEveryLimitBesideEveryOther takes from one key under two limits of one rule name, as overrides and
// plans do.
func TestSnapshotsHoldEveryLimitBesideEveryOther(t *testing.T) {
	clock := func() int64 { return 1_700_000_000_123_456_789 }
	for _, first := range everyLimit {
		for _, second := range everyLimit {
			m := weir.NewMemory(weir.MemoryOptions{Clock: clock})
			both := []weir.Request{mustRule(t, "r", first).For("k", 1), mustRule(t, "r", second).For("k", 1)}
			for _, q := range both {
				answer(m, "take", q)
			}
			again := loaded(t, saved(t, m), clock)
			for _, q := range both {
				if got, want := answer(again, "peek", q), answer(m, "peek", q); got != want {
					t.Errorf("%s beside %s: a loaded engine answers %s\nto %s, want %s", first, second, got, q.Rule, want)
				}
			}
		}
	}
}

// TestSnapshotsOfManyLimitsUnderOneNameChangeNoAnswer runs random operations on two engines, under random rules of one
// name. It saves and loads one of them again and again.
func TestSnapshotsOfManyLimitsUnderOneNameChangeNoAnswer(t *testing.T) {
	for seed := range randtest.Seeds(t, 200, 20) {
		random := rand.New(rand.NewPCG(seed, 0))
		now := int64(1_700_000_000_123_456_789)
		clock := func() int64 { return now }
		rules := mixedRules(t, random)
		kept, other := weir.NewMemory(weir.MemoryOptions{Clock: clock}), weir.NewMemory(weir.MemoryOptions{Clock: clock})
		for op := range 200 {
			now += random.Int64N(int64(100 * time.Millisecond))
			if random.IntN(20) == 0 {
				other = loaded(t, saved(t, other), clock)
			}
			rule := rules[random.IntN(len(rules))]
			q := rule.For(fmt.Sprint(random.IntN(4)), random.Int64N(4))
			verb, lease := []string{"take", "take", "take", "peek", "record", "reset"}[random.IntN(6)], random.Uint64N(3)
			if got, want := answerTo(other, verb, lease, q), answerTo(kept, verb, lease, q); got != want {
				t.Fatalf("seed %d, operation %d, %s cost %d of key %s under %s at %d:\ngot  %s\nwant %s", seed, op, verb, q.Cost, q.Key, rule, now, got, want)
			}
		}
	}
}

// mixedRules returns rules of one name, of one limit or of up to four.
func mixedRules(t *testing.T, random *rand.Rand) (rules []*weir.Rule) {
	for range 2 + random.IntN(8) {
		limits := []weir.Limit{everyLimit[random.IntN(len(everyLimit))]}
		for range random.IntN(4) {
			limits = append(limits, everyLimit[random.IntN(len(everyLimit))])
		}
		rule, err := weir.NewRule("r", limits...)
		if err != nil { // one of them stands alone
			rule = mustRule(t, "r", limits[0])
		}
		rules = append(rules, rule)
	}
	return rules
}
