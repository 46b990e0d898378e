package redislimit_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

// everyValue are rules that together have each kind of value.
func everyValue(t *testing.T) []*weir.Rule {
	return []*weir.Rule{
		newRule(t, "bucket", weir.TokenBucket{Rate: weir.PerHour(5)}), newRule(t, "leaky", weir.LeakyBucket{Rate: weir.PerHour(5), Queue: 4}),
		newRule(t, "window", weir.SlidingWindow{Rate: weir.PerHour(5)}), newRule(t, "cycle", weir.Cycle{Rate: weir.PerHour(5)}),
		newRule(t, "two", weir.TokenBucket{Rate: weir.PerHour(5)}, weir.FixedWindow{Rate: weir.PerDay(9)}),
		newRule(t, "four", weir.TokenBucket{Rate: weir.PerHour(5)}, weir.TokenBucket{Rate: weir.PerDay(9)}, weir.FixedWindow{Rate: weir.PerDay(9)}, weir.Cycle{Rate: weir.PerDay(9)}),
		newRule(t, "log", weir.SlidingLog{Rate: weir.PerHour(5)}), newRule(t, "long log", weir.SlidingLog{Rate: weir.PerHour(30000)}),
		newRule(t, "gate", weir.RateGate{Rate: weir.PerHour(5)}), newRule(t, "slots", weir.Concurrency{Slots: 5, Lease: time.Hour}),
	}
}

// wantBroken fails unless err is an Error with reason Damaged that has counted nothing and names a key.
func wantBroken(t *testing.T, what string, err error, key string) {
	t.Helper()
	var failed *redislimit.Error
	if !errors.As(err, &failed) || failed.Reason != redislimit.Damaged || failed.Counted != weir.CountedNo || !strings.Contains(err.Error(), key) || strings.Contains(err.Error(), "user_script") {
		t.Errorf("%s: got error %v, want one of a damaged value that names %s and has counted nothing", what, err, key)
	}
}

// A value that the engine cannot read is an error of those who ask for it, and stays as it is.
func TestAnUnreadableValueIsAnErrorThatNamesItsKeyAndStays(t *testing.T) {
	client := dial(t, redistest.Start(t))
	engine := newEngine(t, client, redislimit.Options{})
	for _, rule := range everyValue(t) {
		for what, overwrite := range map[string]func(key string){
			"a list":            func(key string) { do(t, client, "DEL", key); do(t, client, "RPUSH", key, "job 1") },
			"empty":             func(key string) { do(t, client, "SET", key, "") },
			"a number":          func(key string) { do(t, client, "SET", key, "1") },
			"another format":    func(key string) { do(t, client, "SETRANGE", key, "0", "\x31") },
			"another program's": func(key string) { do(t, client, "SET", key, strings.Repeat("not a state ", 1000)) },
			"cut short":         func(key string) { do(t, client, "SET", key, get(t, client, key)[:13]) },
			"too long":          func(key string) { do(t, client, "APPEND", key, "xyz") },
		} {
			do(t, client, "FLUSHALL")
			what = rule.Name() + ", " + what
			if _, err := engine.Take(t.Context(), rule.For("bad", 1)); err != nil {
				t.Fatalf("%s: Take: %v", what, err)
			}
			key := stored(t, client)[0]
			overwrite(key)
			before := replyTo(t, client, "DUMP", key)
			_, err := engine.Take(t.Context(), rule.For("bad", 1))
			wantBroken(t, what+": Take", err, key)
			_, err = engine.Record(t.Context(), rule.For("bad", 1))
			wantBroken(t, what+": Record", err, key)
			results := make([]weir.Result, 3)
			if err := engine.Each(t.Context(), enginekit.Calls(weir.OpTake, rule.For("a", 1), rule.For("bad", 1), rule.For("b", 1)), results); err != nil {
				t.Fatal(err)
			}
			wantBroken(t, what+": Each", results[1].Err, key)
			for _, beside := range []int{0, 2} {
				if r := results[beside]; r.Err != nil || !r.Decision.Allowed || r.Decision.ResetAfter == 0 {
					t.Errorf("%s: the request beside it: %+v, want it admitted", what, r)
				}
			}
			if rule.Name() != "leaky" {
				_, err = engine.Reserve(t.Context(), rule.For("bad", 1))
				wantBroken(t, what+": Reserve", err, key)
				_, err = engine.Take(t.Context(), rule.For("c", 1), rule.For("bad", 1))
				wantBroken(t, what+": Take of several", err, key)
			}
			if after := replyTo(t, client, "DUMP", key); after != before {
				t.Errorf("%s: the value is %q, and was %q", what, after, before)
			}
			for name, want := range map[string]int64{"a": 1, "b": 1, "c": 0} {
				d, err := engine.Peek(t.Context(), rule.For(name, 0))
				if err != nil || d.Limit-d.Remaining != want {
					t.Errorf("%s: key %s has spent %d of %d (%v), want %d", what, name, d.Limit-d.Remaining, d.Limit, err, want)
				}
			}
		}
	}
}

// The same for the value of an identity.
func TestAnUnreadableIdentityIsAnError(t *testing.T) {
	client := dial(t, redistest.Start(t))
	engine := newEngine(t, client, redislimit.Options{})
	q := newRule(t, "r", weir.TokenBucket{Rate: weir.PerHour(5)}).For("k", 1)
	for _, value := range []string{"", "x", strings.Repeat("x", 100)} {
		if _, err := doCall(t.Context(), engine, weir.Call{Identity: "once"}, q); err != nil {
			t.Fatal(err)
		}
		key := slices.IndexFunc(stored(t, client), func(key string) bool { return strings.HasSuffix(key, ":once") })
		name := stored(t, client)[key]
		do(t, client, "SET", name, value)
		_, err := doCall(t.Context(), engine, weir.Call{Identity: "once"}, q)
		wantBroken(t, "Take", err, name)
		do(t, client, "FLUSHALL")
	}
}

// Whatever a value holds, its caller gets an answer or an error of this package, and the server goes on.
func TestNoDamageIsAnErrorOfTheScript(t *testing.T) {
	t.Parallel()
	client := dial(t, redistest.Start(t, "lua-time-limit 5000"))
	engine := newEngine(t, client, redislimit.Options{})
	random, rules := rand.New(rand.NewPCG(randtest.Seed(t), 0)), everyValue(t)
	expired, rounds := 0, randtest.Rounds(t, 2000, 666)
	for range rounds {
		do(t, client, "FLUSHALL")
		rule := rules[random.IntN(len(rules))]
		for range 1 + random.IntN(4) {
			if _, err := engine.Take(t.Context(), rule.For("k", 1)); err != nil {
				t.Fatal(err)
			}
		}
		keys := stored(t, client)
		if len(keys) == 0 {
			expired++
			continue
		}
		key := keys[0]
		value := []byte(get(t, client, key))
		damage(random, value)
		do(t, client, "SET", key, string(value))
		for _, ask := range []func() error{
			func() error { _, err := engine.Peek(t.Context(), rule.For("k", 1)); return err },
			func() error { _, err := engine.Take(t.Context(), rule.For("k", 1)); return err },
			func() error { _, err := engine.Record(t.Context(), rule.For("k", 2)); return err },
			func() error { _, err := engine.Return(t.Context(), rule.For("k", 1)); return err },
		} {
			if err := ask(); err != nil && !strings.Contains(err.Error(), key) {
				t.Fatalf("%s: a value of %x: %v", rule, value, err)
			}
		}
	}
	if expired > rounds/10 {
		t.Errorf("%d of %d values had expired before they were damaged", expired, rounds)
	}
}

// damage changes bytes of a value behind its first, or whole numbers of it.
func damage(random *rand.Rand, value []byte) {
	for range 1 + random.IntN(3) {
		if at := 1 + random.IntN(len(value)-1); random.IntN(2) == 0 || at+8 > len(value) {
			value[at] = byte(random.Uint32())
		} else {
			number := oneOf(random, "\x00\x00\x00\x00\x00\x00\xf0\x7f", "\x00\x00\x00\x00\x00\x00\xf0\xff", "\x00\x00\x00\x00\x00\x00\xf8\x7f", "\x00\x00\x00\x00\x00\x00\x00\x00", "\x00\x00\x00\x00\x00\x00\xf0\xbf", "\xff\xff\xff\xff\xff\xff\xef\x7f")
			copy(value[at:], number)
		}
	}
}

func get(t *testing.T, client rueidis.Client, key string) string {
	t.Helper()
	return replyTo(t, client, "GET", key)
}

// replyTo returns the answer to a command.
func replyTo(t *testing.T, client rueidis.Client, words ...string) string {
	t.Helper()
	text, err := client.Do(t.Context(), client.B().Arbitrary(words...).Build()).ToString()
	if err != nil {
		t.Fatalf("%q: %v", words, err)
	}
	return text
}
