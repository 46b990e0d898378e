package weir_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/algorithm"
)

// changed is a limiter with keys whose limits change, as one function for each verb. It takes for a caller that sees
// the index of the limit.
type changed interface {
	decide(verb string, key, limit int, cost int64) weir.Decision
}

// changedBy are the limiters, on a clock.
var changedBy = map[string]func(t *testing.T, limits []weir.Limit, clock func() int64) changed{
	"Memory": func(t *testing.T, limits []weir.Limit, clock func() int64) changed {
		m := &changedMemory{t: t, engine: weir.NewMemory(weir.MemoryOptions{Clock: clock})}
		for _, limit := range limits {
			m.rules = append(m.rules, mustRule(t, "changed", limit))
		}
		return m
	},
	"Keyed": func(t *testing.T, limits []weir.Limit, clock func() int64) changed {
		k := &changedKeyed{limits: limits}
		var err error
		k.keyed, err = weir.NewKeyedFunc(func(int) weir.Limit { return k.limits[k.current] }, weir.Options{Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		return k
	},
}

type changedMemory struct {
	t      *testing.T
	engine *weir.Memory
	rules  []*weir.Rule
}

func (m *changedMemory) decide(verb string, key, limit int, cost int64) (d weir.Decision) {
	q := m.rules[limit].For(fmt.Sprint(key), cost)
	var err error
	switch verb {
	case "take":
		d, err = m.engine.Take(m.t.Context(), q)
	case "peek":
		d, err = m.engine.Peek(m.t.Context(), q)
	case "record":
		d, err = signed(m.t.Context(), m.engine, q)
	case "upto":
		q.Cost = 1
		_, d, err = weir.TakeUpTo(m.t.Context(), m.engine, cost, q)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	d.Rule, d.Key = "", ""
	return d
}

type changedKeyed struct {
	keyed   *weir.Keyed[int]
	limits  []weir.Limit
	current int
}

func (k *changedKeyed) decide(verb string, key, limit int, cost int64) (d weir.Decision) {
	k.current = limit
	switch verb {
	case "take":
		return k.keyed.Take(key, cost)
	case "peek":
		return k.keyed.Peek(key, cost)
	case "record":
		if cost < 0 {
			return k.keyed.Return(key, -cost)
		}
		return k.keyed.Record(key, cost)
	}
	_, d = k.keyed.TakeUpTo(key, cost)
	return d
}

// bareStates decide by the functions of package algorithm, which the rational model proves.
type bareStates struct {
	limits []algorithm.Algorithm
	states map[int]algorithm.State
}

func (b *bareStates) decide(now int64, verb string, key, limit int, cost int64) weir.Decision {
	state, ok := b.states[key]
	if !ok {
		state = b.limits[limit].Fresh()
	}
	parts := []algorithm.Part{{Algorithm: b.limits[limit], State: state, Cost: cost}}
	var a algorithm.Answer
	switch verb {
	case "take":
		a = algorithm.Take(parts, now)
	case "peek":
		a = algorithm.Peek(parts, now)
	case "record":
		a = algorithm.Record(parts, now)
	case "upto":
		parts[0].Cost = 1
		_, a = algorithm.TakeUpTo(parts, now, cost)
	}
	b.states[key] = parts[0].State
	return weir.Decision{
		Allowed: a.Allowed, Limit: a.Limit, Remaining: a.Remaining,
		RetryAfter: time.Duration(a.RetryAfter), ResetAfter: time.Duration(a.ResetAfter), Delay: time.Duration(a.Delay),
	}
}

// anyBuckets draws limits of one kind with rates from all that are allowed. Some differ in their burst alone.
func anyBuckets(r *rand.Rand) (limits []weir.Limit, bare []algorithm.Algorithm) {
	leaky := r.IntN(3) == 0
	var rate weir.Rate
	for i := range 2 + r.IntN(4) {
		if i == 0 || r.IntN(3) > 0 {
			period := 1 + r.Int64N(1<<(1+r.IntN(54)))
			rate = weir.Per(1+r.Int64N(min(period, 1<<(1+r.IntN(52)))), time.Duration(min(period, int64(weir.MaxPeriod))))
		}
		burst := 1 + r.Int64N(1<<(1+r.IntN(40)))
		if leaky {
			limit := weir.LeakyBucket{Rate: rate, Queue: burst - 1, NoDelay: r.Int64N(burst)}
			limits = append(limits, limit)
			bare = append(bare, algorithm.NewLeakyBucket(rate.Count, int64(rate.Period), limit.Queue, limit.NoDelay))
		} else {
			limits = append(limits, weir.TokenBucket{Rate: rate, Burst: burst})
			bare = append(bare, algorithm.NewTokenBucket(rate.Count, int64(rate.Period), burst))
		}
	}
	return limits, bare
}

// Words and cells of buckets whose limits change answer like the bare states.
func TestChangedLimitsDecideLikeTheFunctions(t *testing.T) {
	for name, limiter := range changedBy {
		for seed := range uint64(400) {
			r := rand.New(rand.NewPCG(seed, 11))
			limits, bare := anyBuckets(r)
			now := int64(1_700_000_000_123_456_789)
			subject := limiter(t, limits, func() int64 { return now })
			want := &bareStates{limits: bare, states: map[int]algorithm.State{}}
			var last weir.Decision
			limit, past := 0, []string(nil)
			for range 150 {
				if r.IntN(4) == 0 {
					limit = r.IntN(len(limits))
				}
				key := r.IntN(3)
				verb := []string{"take", "take", "take", "peek", "record", "record", "upto"}[r.IntN(7)]
				capacity := bare[limit].Capacity()
				cost := []int64{0, 1, 1, 2, last.Remaining, last.Remaining + 1, capacity, capacity + 1, 1 + r.Int64N(capacity)}[r.IntN(9)]
				if verb == "record" && r.IntN(2) == 0 {
					cost = -cost
				}
				past = append(past, fmt.Sprintf("%d %s %d of %d under %d", now, verb, cost, key, limit))
				got, expected := subject.decide(verb, key, limit, cost), want.decide(now, verb, key, limit, cost)
				if got != expected {
					t.Fatalf("%s seed %d, %v: after %q:\ngot  %+v\nwant %+v", name, seed, limits, past, got, expected)
				}
				last = got
				step := []int64{0, 0, 1, int64(last.RetryAfter), int64(last.RetryAfter) - 1, int64(last.ResetAfter) - 1, int64(last.ResetAfter),
					r.Int64N(1 << (1 + r.IntN(45)))}[r.IntN(8)]
				now += max(0, min(step, int64(24*time.Hour)))
			}
		}
	}
}

// signed records a cost, or returns it if it is negative.
func signed(ctx context.Context, e weir.Engine, q weir.Request) (weir.Decision, error) {
	if q.Cost < 0 {
		q.Cost = -q.Cost
		return e.Return(ctx, q)
	}
	return e.Record(ctx, q)
}

// signedAt records a cost, or returns it if it is negative.
func signedAt(l *weir.Limiter, at time.Time, n int64) weir.Decision {
	if n < 0 {
		return l.ReturnAt(at, -n)
	}
	return l.RecordAt(at, n)
}
