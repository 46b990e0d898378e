package memory

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/clock"
	"github.com/weirflow/weir/internal/compiled"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/word"
)

// limitOf is a limit and the identity of its states.
type limitOf struct {
	algorithm algorithm.Algorithm
	identity  string
}

// ruleFor returns a rule named r.
func ruleFor(limits ...limitOf) *compiled.Rule {
	r := &compiled.Rule{Name: "r", Home: new(Homes)}
	for _, l := range limits {
		r.Add(l.algorithm, l.identity)
		r.Text += fmt.Sprintf(" and %s of %d, %p", l.identity, l.algorithm.Capacity(), l.algorithm)
	}
	return r
}

// randomLimit returns a limit of a kind: a bucket with any rate, a window or, rarely, no limit or a log, whose states are cells.
func randomLimit(random *rand.Rand) limitOf {
	const second = int64(time.Second)
	units := 1 + random.Int64N(30)
	period := second << random.IntN(3)
	switch random.IntN(17) {
	case 16:
		return limitOf{algorithm.NewUnlimited(), "unlimited"}
	case 0:
		return limitOf{algorithm.NewSlidingLog(units, period, 0, false), fmt.Sprintf("log/%d", period)}
	case 1, 2, 3:
		return limitOf{algorithm.NewFixedWindow(units, period), fmt.Sprintf("fixed/%d", period)}
	case 4, 5:
		return limitOf{algorithm.NewSlidingWindow(units, period), fmt.Sprintf("sliding/%d", period)}
	case 6:
		return limitOf{algorithm.NewTokenBucket(1+random.Int64N(1e6), 1e6+random.Int64N(1e12), 1+random.Int64N(1<<40)), "bucket"}
	}
	return limitOf{algorithm.NewTokenBucket(1+random.Int64N(40), 1+random.Int64N(3*second), units), "bucket"}
}

// statesModel decides by the functions of package algorithm on states that it never forgets.
type statesModel map[string]map[string]algorithm.State

func (m statesModel) parts(r *compiled.Rule, key string, cost int64) []algorithm.Part {
	if m[key] == nil {
		m[key] = map[string]algorithm.State{}
	}
	parts := make([]algorithm.Part, len(r.Parts))
	for i, p := range r.Parts {
		state, known := m[key][p.State]
		if !known {
			state = p.Algorithm.Fresh()
		}
		parts[i] = algorithm.Part{Algorithm: p.Algorithm, State: state.Clone(), Cost: cost}
	}
	return parts
}

func (m statesModel) keep(r *compiled.Rule, key string, parts []algorithm.Part) {
	for i, p := range r.Parts {
		m[key][p.State] = parts[i].State
	}
}

// ask asks both for one decision.
func (m statesModel) ask(t *testing.T, e *Engine, random *rand.Rand, r *compiled.Rule, key string, cost, now int64) (got, want algorithm.Answer) {
	t.Helper()
	parts := m.parts(r, key, cost)
	requests := []compiled.Request{{Rule: r, Key: key, Cost: cost}}
	var err error
	switch random.IntN(12) {
	case 0:
		requests[0].Cost = cost - 3
		for i := range parts {
			parts[i].Cost = cost - 3
		}
		_, got, err = e.Decide(Record, requests, 0)
		want = algorithm.Record(parts, now)
	case 1:
		got, err = decide(e, Peek, requests)
		want = algorithm.Peek(parts, now)
	default:
		if !e.TakeOne(r, key, cost, &got).Done() {
			_, got, err = e.Decide(Take, requests, 0)
		}
		want = algorithm.Take(parts, now)
	}
	if err != nil {
		t.Fatal(err)
	}
	m.keep(r, key, parts)
	want.Ordinal = uint8(want.Binding)
	got.Binding, want.Binding = 0, 0
	return got, want
}

// onWords asks the engine on the fast path.
func onWords(e *Engine, verb Verb, requests []compiled.Request, now int64, a *algorithm.Answer) (done bool) {
	var asks []word.Ask
	for i := range requests {
		ask, ok := e.Ask(requests[i].Rule, requests[i].Key, requests[i].Cost, now)
		if !ok {
			return false
		}
		asks = append(asks, ask)
	}
	return e.DecideOnWords(verb, asks, now, a)
}

// decide asks the engine, first on the fast path.
func decide(e *Engine, verb Verb, requests []compiled.Request) (a algorithm.Answer, err error) {
	if !onWords(e, verb, requests, e.Now(), &a) {
		_, a, err = e.Decide(verb, requests, 0)
	}
	return a, err
}

// askAll asks both for one take or peek of several keys.
func (m statesModel) askAll(t *testing.T, e *Engine, verb Verb, requests []compiled.Request, now int64) (got, want algorithm.Answer) {
	t.Helper()
	var parts []algorithm.Part
	from := []int{0} // the parts of each request
	for _, q := range requests {
		parts = append(parts, m.parts(q.Rule, q.Key, q.Cost)...)
		from = append(from, len(parts))
	}
	got, err := decide(e, verb, requests)
	if err != nil {
		t.Fatal(err)
	}
	if want = algorithm.Peek(parts, now); verb == Take {
		want = algorithm.Take(parts, now)
	}
	ordinal := want.Binding
	for i, q := range requests {
		m.keep(q.Rule, q.Key, parts[from[i]:from[i+1]])
		if from[i] <= ordinal && ordinal < from[i+1] {
			want.Binding = i
		}
	}
	want.Ordinal = uint8(ordinal - from[want.Binding])
	return got, want
}

// several returns requests for a key and up to eight others.
func several(random *rand.Rand, rules []*compiled.Rule, key string, keys int) []compiled.Request {
	requests := []compiled.Request{{Rule: rules[random.IntN(len(rules))], Key: key, Cost: random.Int64N(6)}}
	for _, other := range random.Perm(keys)[:1+random.IntN(min(8, keys-1))] {
		if name := fmt.Sprint(other); name != key {
			requests = append(requests, compiled.Request{Rule: rules[random.IntN(len(rules))], Key: name, Cost: random.Int64N(6)})
		}
	}
	return requests
}

// compareRows takes at random under rules of one name with 1 to 4 limits, beside the model.
func compareRows(t *testing.T, seed uint64, ops int) {
	random := rand.New(rand.NewPCG(seed, 21))
	now := int64(1_700_000_000_123_456_789)
	e, m := engineAt(&now, 0), statesModel{}
	var rules []*compiled.Rule
	for range 1 + random.IntN(5) {
		limits := make([]limitOf, 1+random.IntN(4))
		for i := range limits {
			limits[i] = randomLimit(random)
		}
		rules = append(rules, ruleFor(limits...))
	}
	keys, backwards := 3+random.IntN(400), len(rules) == 1
	if backwards {
		keys = 3 // so few that no state is evicted
	}
	for op := range ops {
		switch random.IntN(4) {
		case 0:
			now += random.Int64N(int64(time.Second))
		case 1:
			now += random.Int64N(int64(time.Millisecond))
		case 2:
			if backwards {
				now -= random.Int64N(int64(300 * time.Millisecond))
			}
		}
		if !backwards && random.IntN(150) == 0 {
			e = reloaded(t, e, &now)
		}
		r, key := rules[random.IntN(len(rules))], fmt.Sprint(random.IntN(keys))
		if random.IntN(3) == 0 {
			key = "hot"
		}
		got, want := algorithm.Answer{}, algorithm.Answer{}
		if random.IntN(4) == 0 {
			verb := []Verb{Take, Take, Peek}[random.IntN(3)]
			got, want = m.askAll(t, e, verb, several(random, rules, key, keys), now)
		} else {
			got, want = m.ask(t, e, random, r, key, random.Int64N(6), now)
		}
		if got != want {
			t.Fatalf("seed %d op %d: %s for key %s at %d:\ngot  %+v\nwant %+v", seed, op, r.Text, key, now, got, want)
		}
	}
}

// reloaded returns an engine with what the other saved.
func reloaded(t *testing.T, e *Engine, now *int64) *Engine {
	t.Helper()
	var file bytes.Buffer
	if err := e.Save(&file); err != nil {
		t.Fatal(err)
	}
	again, err := Load(&file, Options{Clock: clock.New(func() int64 { return *now })}, func(identity string, capacity int64) (algorithm.Algorithm, error) {
		kind, window, _ := strings.Cut(identity, "/")
		period, _ := strconv.ParseInt(window, 10, 64)
		switch kind {
		case "fixed":
			return algorithm.NewFixedWindow(capacity, period), nil
		case "sliding":
			return algorithm.NewSlidingWindow(capacity, period), nil
		case "log":
			return algorithm.NewSlidingLog(capacity, period, 0, false), nil
		case "unlimited":
			return algorithm.NewUnlimited(), nil
		}
		return algorithm.NewTokenBucket(1, int64(time.Second), capacity), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func TestRulesOfSeveralLimitsDecideLikeTheirStates(t *testing.T) {
	for seed := range randtest.Seeds(t, 60, 60) {
		compareRows(t, seed, 600)
	}
}

func FuzzRulesOfSeveralLimitsDecideLikeTheirStates(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { compareRows(t, seed, 500) })
}

// rowRules are rules of one name whose keys admit most units in all while the clock stands.
func rowRules(most int64) map[string][]*compiled.Rule {
	const day = int64(24 * time.Hour)
	bucket := func(rate, burst int64) limitOf {
		return limitOf{algorithm.NewTokenBucket(rate, day, burst), "bucket"}
	}
	fixed := limitOf{algorithm.NewFixedWindow(most, day), "fixed"}
	sliding := limitOf{algorithm.NewSlidingWindow(3*most, day), "sliding"}
	slow := limitOf{algorithm.NewSlidingLog(4*most, day, 0, false), "log"}
	return map[string][]*compiled.Rule{
		"one fine bucket":            {ruleFor(bucket(999_983, most))},
		"a bucket and a window":      {ruleFor(bucket(7, 2*most), fixed)},
		"a fine bucket and a window": {ruleFor(bucket(999_983, 2*most), fixed)},
		"four limits":                {ruleFor(bucket(11, 2*most), fixed, sliding, bucket(13, 2*most))},
		"a rule that gets limits":    {ruleFor(fixed), ruleFor(fixed, sliding), ruleFor(bucket(11, 2*most), fixed), ruleFor(sliding, fixed, bucket(11, 5*most))},
		"with states that are cells": {ruleFor(fixed, bucket(11, 2*most)), ruleFor(fixed, slow), ruleFor(slow, bucket(11, 2*most), fixed)},
	}
}

// TestConcurrentCallersOfSeveralLimitsGetExactlyTheUnits hammers few keys until every rule refuses them, while other
// keys let the table grow. A standing clock makes the number of units exact.
func TestConcurrentCallersOfSeveralLimitsGetExactlyTheUnits(t *testing.T) {
	const callers, keys, most = 8, 3, 500
	for name, rules := range rowRules(most) {
		t.Run(name, func(t *testing.T) {
			now := int64(1_700_000_000_000_000_000)
			e := engineAt(&now, 0)
			var admitted [keys]atomic.Int64
			var wg sync.WaitGroup
			for c := range callers {
				wg.Go(func() {
					random := rand.New(rand.NewPCG(uint64(c), 5))
					for i := range most * keys * 3 {
						r, k := rules[i*len(rules)/(most*keys*3)], random.IntN(keys)
						if random.IntN(4) == 0 {
							r = rules[random.IntN(len(rules))]
						}
						if other := random.IntN(keys); other != k && random.IntN(3) == 0 {
							n := takeOfBoth(e, random, []compiled.Request{{Rule: r, Key: fmt.Sprint(k)}, {Rule: rules[random.IntN(len(rules))], Key: fmt.Sprint(other)}})
							admitted[k].Add(n)
							admitted[other].Add(n)
							continue
						}
						admitted[k].Add(takeUnits(e, random, r, fmt.Sprint(k)))
						if i%3 == 0 {
							takeUnits(e, random, r, fmt.Sprintf("%d of %d", i, c))
						}
					}
				})
			}
			wg.Wait()
			for k := range admitted {
				for range 3 { // the rest of a key that random costs have not quite filled
					var a algorithm.Answer
					if !e.TakeOne(rules[0], fmt.Sprint(k), 1, &a).Done() {
						_, a, _ = e.Decide(Take, []compiled.Request{{Rule: rules[0], Key: fmt.Sprint(k), Cost: 1}}, 0)
					}
					if a.Allowed {
						admitted[k].Add(1)
					}
				}
				if got := admitted[k].Load(); got != most {
					t.Errorf("key %d was admitted %d units, want %d", k, got, most)
				}
			}
		})
	}
}

// takeUnits takes 1 to 3 units on the fast or the slow path, and returns the units admitted.
func takeUnits(e *Engine, random *rand.Rand, r *compiled.Rule, key string) int64 {
	var a algorithm.Answer
	n := 1 + random.Int64N(3)
	if random.IntN(8) == 0 || !e.TakeOne(r, key, n, &a).Done() {
		_, a, _ = e.Decide(Take, []compiled.Request{{Rule: r, Key: key, Cost: n}}, 0)
	}
	if random.IntN(16) == 0 {
		_, _, _ = e.Decide(Peek, []compiled.Request{{Rule: r, Key: key, Cost: n}}, 0)
	}
	if !a.Allowed {
		return 0
	}
	return n
}

// takeOfBoth takes 1 to 3 units of two keys at once, and returns the units admitted of each.
func takeOfBoth(e *Engine, random *rand.Rand, requests []compiled.Request) int64 {
	n := 1 + random.Int64N(3)
	requests[0].Cost, requests[1].Cost = n, n
	if a, _ := decide(e, Take, requests); !a.Allowed {
		return 0
	}
	return n
}

// TestRulesOfSeveralLimitsTakeOneEntry holds that a decision on several limits, of one key or two, needs no lock of a shard: one
// that is locked does not delay it.
func TestRulesOfSeveralLimitsTakeOneEntry(t *testing.T) {
	now := int64(1_700_000_000_000_000_000)
	for name, rules := range rowRules(5) {
		if name == "with states that are cells" {
			continue
		}
		e := engineAt(&now, 0)
		for i := range e.shards {
			e.shards[i].mu.Lock()
		}
		for _, r := range rules {
			var a algorithm.Answer
			if !e.TakeOne(r, "k", 1, &a).Done() || !a.Allowed {
				t.Errorf("%s: a new key of %s was not decided without a lock: %+v", name, r.Text, a)
			}
			var both algorithm.Answer
			if requests := []compiled.Request{{Rule: r, Key: "l", Cost: 1}, {Rule: r, Key: "m", Cost: 1}}; len(r.Parts) <= 2 && (!onWords(e, Take, requests, now, &both) || !both.Allowed) {
				t.Errorf("%s: two new keys of %s were not decided without a lock: %+v", name, r.Text, both)
			}
		}
		for i := range e.shards {
			e.shards[i].mu.Unlock()
		}
		tables := 0
		for range e.tables.Range {
			tables++
		}
		if stats := e.Stats(); tables != 1 || stats.Bytes == 0 {
			t.Errorf("%s: %d tables of %d bytes, want one", name, tables, stats.Bytes)
		}
	}
}

// TestMoreLimitsThanAnEntryHoldsStillDecide makes rules of one name with more identities than an entry has words.
func TestMoreLimitsThanAnEntryHoldsStillDecide(t *testing.T) {
	now := int64(1_700_000_000_000_000_000)
	e := engineAt(&now, 0)
	var limits []limitOf
	for i := range compiled.MaxLimits {
		limits = append(limits, limitOf{algorithm.NewTokenBucket(11+int64(i), 1e9, 20), "bucket"})
	}
	r := ruleFor(limits...)
	for i := range 21 {
		_, a, err := e.Decide(Take, []compiled.Request{{Rule: r, Key: "k", Cost: 1}}, 0)
		if err != nil || a.Allowed != (i < 20) {
			t.Fatalf("take %d of 20: %+v and %v", i, a, err)
		}
	}
}

func TestATableRemembersManyRatesWithoutCells(t *testing.T) {
	now := int64(1_700_000_000_000_000_000)
	e, m := engineAt(&now, 0), statesModel{}
	var rules []*compiled.Rule
	for i := range int64(1000) {
		rules = append(rules, ruleFor(limitOf{algorithm.NewTokenBucket(1+i, int64(time.Minute)+i%7, 3), "bucket"}))
	}
	for round := range 5 {
		for i, r := range rules {
			key := fmt.Sprint(i)
			var got algorithm.Answer
			if !e.TakeOne(r, key, 1, &got).Done() && round > 0 {
				t.Fatalf("round %d: limit %d needs the slow path", round, i)
			}
			parts := m.parts(r, key, 1)
			if want := algorithm.Take(parts, now); got != want {
				t.Fatalf("round %d of limit %d: got %+v, want %+v", round, i, got, want)
			}
			m.keep(r, key, parts)
		}
		now += int64(10 * time.Millisecond)
	}
	if n := usedCells(e); n > 0 {
		t.Errorf("%d states are cells", n)
	}
}

// A log, a gate or slots is decided as it stands, once the key is known.
func TestAKnownKeyOfALogIsDecidedInItsCell(t *testing.T) {
	now := int64(1_700_000_000_000_000_000)
	for name, limit := range map[string]algorithm.Algorithm{
		"log": algorithm.NewSlidingLog(2, int64(time.Second), 0, false), "log of refusals": algorithm.NewSlidingLog(2, int64(time.Second), 0, true),
		"gate": algorithm.NewRateGate(2, int64(time.Second)), "slots": algorithm.NewConcurrency(2, int64(time.Second)),
	} {
		e, m, r := engineAt(&now, 0), statesModel{}, ruleFor(limitOf{limit, name})
		for op, pause := range []time.Duration{0, 0, time.Millisecond, 0, time.Second, 0, 0} {
			now += int64(pause)
			var got algorithm.Answer
			known := e.TakeOne(r, "k", 1, &got).Done()
			if known != (op > 0) {
				t.Errorf("%s: take %d was decided on the fast path: %t", name, op+1, known)
			}
			if !known {
				_, got, _ = e.Decide(Take, []compiled.Request{{Rule: r, Key: "k", Cost: 1}}, 0)
			}
			parts := m.parts(r, "k", 1)
			if want := algorithm.Take(parts, now); got != want {
				t.Errorf("%s, take %d: got %+v, want %+v", name, op+1, got, want)
			}
			m.keep(r, "k", parts)
		}
	}
}

func usedCells(e *Engine) (n int) {
	for i := range e.shards {
		for _, c := range e.shards[i].cells {
			n += len(c.places)
		}
	}
	return n
}

func TestAStateBeyondItsWordsIsACellAndComesBack(t *testing.T) {
	now := int64(1_700_000_000_000_000_000)
	e, m := engineAt(&now, 0), statesModel{}
	year := int64(366 * 24 * time.Hour)
	r := ruleFor(limitOf{algorithm.NewTokenBucket(1, year, 20), "bucket"}, limitOf{algorithm.NewFixedWindow(15, int64(time.Hour)), "fixed"},
		limitOf{algorithm.NewTokenBucket(11, int64(time.Second), 20), "bucket"})
	for i, tt := range []struct{ cost, cells int64 }{{2, 0}, {10, 1}, {1, 1}, {-11, 0}, {1, 0}, {9, 1}, {-10, 0}} {
		parts := m.parts(r, "k", tt.cost)
		_, got, err := e.Decide(Record, []compiled.Request{{Rule: r, Key: "k", Cost: tt.cost}}, 0)
		if want := algorithm.Record(parts, now); err != nil || got.Remaining != want.Remaining || got.ResetAfter != want.ResetAfter {
			t.Fatalf("record %d: got %+v and %v, want %+v", i, got, err, want)
		}
		m.keep(r, "k", parts)
		if n := usedCells(e); int64(n) != tt.cells {
			t.Errorf("after record %d, %d states are cells, want %d", i, n, tt.cells)
		}
		for range 2 { // the fast path agrees, or leaves the decision to the lock
			parts := m.parts(r, "k", 0)
			var a algorithm.Answer
			want := algorithm.Take(parts, now)
			if done := e.TakeOne(r, "k", 0, &a).Done(); done && (a.Remaining != want.Remaining || a.ResetAfter != want.ResetAfter) {
				t.Errorf("after record %d: got %+v, want %+v", i, a, want)
			}
		}
	}
}
