package weir_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
)

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
