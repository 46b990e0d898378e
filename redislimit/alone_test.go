package redislimit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
	"github.com/weirflow/weir/internal/randtest"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/redislimit"
)

// asked is an engine that is asked in one of the ways in which decisions share calls, and the prefix of its keys.
type asked struct {
	prefix string
	engine *redislimit.Engine
	take   func(ctx context.Context, e *redislimit.Engine, rule *weir.Rule, keys []string, cost int64) []weir.Result
}

// oneByOne makes a call for each key.
func oneByOne(ctx context.Context, e *redislimit.Engine, rule *weir.Rule, keys []string, cost int64) (results []weir.Result) {
	for _, key := range keys {
		d, err := e.Take(ctx, rule.For(key, cost))
		results = append(results, weir.Result{Decision: d, Err: err})
	}
	return results
}

// together makes one call for all keys.
func together(ctx context.Context, e *redislimit.Engine, rule *weir.Rule, keys []string, cost int64) []weir.Result {
	return each(ctx, e, rule, keys, cost)[:len(keys)]
}

// besideAnother makes one call for all keys and for another decision.
func besideAnother(ctx context.Context, e *redislimit.Engine, rule *weir.Rule, keys []string, cost int64) []weir.Result {
	return each(ctx, e, rule, keys, cost, rule.For("other", 0))[:len(keys)]
}

func each(ctx context.Context, e *redislimit.Engine, rule *weir.Rule, keys []string, cost int64, more ...weir.Request) []weir.Result {
	var requests []weir.Request
	for _, key := range keys {
		requests = append(requests, rule.For(key, cost))
	}
	requests = append(requests, more...)
	results := make([]weir.Result, len(requests))
	if err := e.Each(ctx, enginekit.Calls(weir.OpTake, requests...), results); err != nil {
		results[0].Err = err
	}
	return results
}

// A decision gives the same answer and the same value in a call of its own, repeated for other keys, and beside another one.
func TestASingleOrRepeatedDecisionIsMadeAndStoredLikeAnyOther(t *testing.T) {
	t.Parallel()
	const steps = 60
	rounds := randtest.Rounds(t, 25, 10)
	server := redistest.Start(t)
	client := dial(t, server)
	random := rand.New(rand.NewPCG(randtest.Seed(t), 0))
	admitted, refused := 0, 0
	for round := range rounds {
		now := 1_700_000_000_000_000 + random.Int64N(1e15)
		ways := []asked{{take: besideAnother}, {take: oneByOne}, {take: together}}
		for i := range ways {
			ways[i].prefix = fmt.Sprint("way", i, ".", round)
			ways[i].engine = clockedBy(t, client, ways[i].prefix, &now)
		}
		pool, periods := fixedSize, fixedPeriods
		if round%5 == 0 {
			pool, periods = leaky, make([]int64, len(leaky))
		}
		rules := []plan{versions(t, random, pool, periods), versions(t, random, pool, periods)}
		for range steps {
			now += random.Int64N(1 << random.IntN(36))
			rule, cost := rules[min(random.IntN(8), 1)].redis, 1+random.Int64N(1<<random.IntN(10))
			keys := []string{"alice", "bob", "carol", "dave"}[:1+random.IntN(4)]
			random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
			want := ways[0].take(t.Context(), ways[0].engine, rule, keys, cost)
			for _, w := range ways[1:] {
				got := w.take(t.Context(), w.engine, rule, keys, cost)
				for i, key := range keys {
					if got[i].Decision != want[i].Decision || got[i].Err != nil {
						t.Fatalf("%s, %v of %s at %d us: got %+v, want %+v", w.prefix, cost, key, now, got[i], want[i])
					}
					sameValue(t, server, key, w.prefix, ways[0].prefix)
				}
			}
			for _, r := range want {
				if r.Decision.Allowed {
					admitted++
				} else {
					refused++
				}
			}
		}
	}
	if all := rounds * steps; admitted < all/10 || refused < all/10 {
		t.Errorf("%d decisions admitted and %d refused: it proves little", admitted, refused)
	}
}

// clockedBy returns an engine whose clock is a number of us.
func clockedBy(t *testing.T, client rueidis.Client, prefix string, now *int64) *redislimit.Engine {
	return newEngine(t, client, redislimit.Options{Prefix: prefix, Clock: func() int64 { return *now * 1000 }, Linger: time.Hour})
}

// sameValue compares the values of a key under two prefixes, and how long they live on the server's own clock.
func sameValue(t *testing.T, server *redistest.Server, key, prefix, other string) {
	t.Helper()
	const read = `local v = redis.call('KEYS', ARGV[1])
if #v == 0 then return {'', 0} end
return {redis.call('GET', v[1]), redis.call('PTTL', v[1])}`
	got, _ := server.Do("EVAL", read, "0", prefix+":*:"+key).([]any)
	want, _ := server.Do("EVAL", read, "0", other+":*:"+key).([]any)
	lives, wanted := got[1].(int64), want[1].(int64)
	if got[0] != want[0] || max(lives, wanted)-min(lives, wanted) > time.Minute.Milliseconds() {
		t.Fatalf("%s, %s: stored %x for %d ms, want %x for %d ms", prefix, key, got[0], lives, want[0], wanted)
	}
}

// Two versions of a rule, as programs of two releases or a rule whose limits change have them, may meet in one call.
func TestVersionsOfARuleMeetInOneCall(t *testing.T) {
	const rounds, steps = 40, 20
	server := redistest.Start(t)
	client := dial(t, server)
	random := rand.New(rand.NewPCG(randtest.Seed(t), 0))
	for round := range rounds {
		now := 1_700_000_000_000_000 + random.Int64N(1e15)
		var engines [2]*redislimit.Engine
		for i := range engines {
			engines[i] = clockedBy(t, client, fmt.Sprint("engine", i, ".", round), &now)
		}
		rules := []*weir.Rule{versions(t, random, fixedSize, fixedPeriods).redis, versions(t, random, fixedSize, fixedPeriods).redis}
		for range steps {
			now += random.Int64N(1 << random.IntN(36))
			var requests []weir.Request
			for range 2 + random.IntN(3) {
				requests = append(requests, rules[random.IntN(2)].For("alice", 1+random.Int64N(1<<random.IntN(6))))
			}
			results := make([]weir.Result, len(requests))
			if err := engines[0].Each(t.Context(), enginekit.Calls(weir.OpTake, requests...), results); err != nil {
				t.Fatal(err)
			}
			for i, q := range requests {
				want, err := engines[1].Take(t.Context(), q)
				if got := results[i]; got.Decision != want || got.Err != nil || err != nil {
					t.Fatalf("request %d of %v: got %+v, want %+v, %v", i, requests, got, want, err)
				}
			}
			sameValue(t, server, "alice", fmt.Sprint("engine0.", round), fmt.Sprint("engine1.", round))
		}
	}
}
