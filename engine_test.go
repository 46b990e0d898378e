package weir_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/algorithm"
	"github.com/weirflow/weir/internal/randtest"
)

// The claims of docs/from/x-time-rate.md about that library, one each.

func TestCostZeroIsAdmittedInDebtAndNegativeCostNeverIs(t *testing.T) {
	at := time.Unix(1700000000, 0)
	lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 10})
	lim.RecordAt(at, 11)
	if !lim.AllowAt(at, 0) {
		t.Error("AllowAt(0) of a limiter in debt is false, want true")
	}
	if lim.AllowAt(at, -5) || lim.AllowAt(at, 1) {
		t.Error("a negative cost was admitted or added tokens")
	}
}

func TestTimeThatRunsBackMintsNothing(t *testing.T) {
	at := time.Unix(1700000000, 0)
	lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 10})
	lim.AllowAt(at, 10)
	for range 5 {
		lim.AllowAt(at.Add(-10*time.Second), 0)
		if lim.AllowAt(at, 1) {
			t.Fatal("a decision ten seconds back gave tokens at the instant where there were none")
		}
	}
}

func TestSetLimitReschedulesWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1})
		lim.Allow()
		start := time.Now()
		time.AfterFunc(500*time.Millisecond, func() {
			_ = lim.SetLimit(weir.TokenBucket{Rate: weir.PerSecond(100), Burst: 1})
		})
		if err := lim.Wait(t.Context()); err != nil || time.Since(start) != 505*time.Millisecond {
			t.Errorf("released after %v, %v; want 505ms: half a unit was missing at the change", time.Since(start), err)
		}
	})
}

// Uber's limiter keeps up to slack (10 by default) unspent turns: a burst of slack + 1 after idleness, none at the
// start, and a steady pace under load.
func TestBucketSpentAtTheStartIsUbersLimiterWithSlack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 11})
		lim.AllowN(10)
		start := time.Now()
		var got []time.Duration
		take := func(n int) {
			for range n {
				if err := lim.Wait(t.Context()); err != nil {
					t.Error(err)
				}
				got = append(got, time.Since(start)/time.Millisecond)
			}
		}
		take(3)
		time.Sleep(5 * time.Second)
		take(13)
		want := []time.Duration{0, 100, 200, 5200, 5200, 5200, 5200, 5200, 5200, 5200, 5200, 5200, 5200, 5200, 5300, 5400}
		if !slices.Equal(got, want) {
			t.Errorf("turns at %d ms, want %d", got, want)
		}
	})
}

// Guava's "the next one pays": a cost of any size is admitted at once, and the next caller waits for it.
func TestBurstyLetsTheNextOnePay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.Bursty{Rate: weir.PerSecond(1), Over: time.Second})
		start := time.Now()
		if err := lim.WaitN(t.Context(), 100); err != nil || time.Since(start) != 0 {
			t.Errorf("a cost of 100: %v after %v, want at once", err, time.Since(start))
		}
		if err := lim.WaitMax(t.Context(), 1, 99*time.Second); !errors.Is(err, weir.ErrWait) || time.Since(start) != 0 {
			t.Errorf("tryAcquire of 99s: %v after %v, want ErrWait at once", err, time.Since(start))
		}
		if err := lim.Wait(context.Background()); err != nil || time.Since(start) != 100*time.Second {
			t.Errorf("the next: %v after %v, want 100s", err, time.Since(start))
		}
	})
}

// A leaky bucket without a queue is not a limiter that makes callers wait.
func TestLeakyBucketWithoutAQueueRefusesWhereABucketOfOneWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leaky := mustNew(t, weir.LeakyBucket{Rate: weir.PerSecond(10)})
		bucket := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 1})
		start := time.Now()
		if err := leaky.Wait(t.Context()); err != nil {
			t.Errorf("leaky bucket, first: %v, want it admitted", err)
		}
		if err := leaky.Wait(t.Context()); !errors.Is(err, weir.ErrQueueFull) || time.Since(start) != 0 {
			t.Errorf("leaky bucket, second: %v after %v, want ErrQueueFull at once", err, time.Since(start))
		}
		for range 2 {
			if err := bucket.Wait(t.Context()); err != nil {
				t.Errorf("token bucket: %v, want it admitted", err)
			}
		}
		if time.Since(start) != 100*time.Millisecond {
			t.Errorf("token bucket: two after %v, want 100ms", time.Since(start))
		}
	})
}

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
	d := weir.Decision{
		Allowed: a.Allowed, Limit: a.Limit, Remaining: a.Remaining,
		RetryAfter: time.Duration(a.RetryAfter), ResetAfter: time.Duration(a.ResetAfter), LimitReset: time.Duration(a.LimitReset), Delay: time.Duration(a.Delay),
	}
	if !d.Allowed {
		d.Cause = weir.ByCount
	}
	return d
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
		for seed := range randtest.Seeds(t, 400, 100) {
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

// refuser is one subject of a Limiter, or one key of a Keyed.
type refuser struct {
	allow    func() bool
	reserve  func() (*weir.Reservation, error)
	giveBack func(n int64) weir.Decision
	reset    func()
	setLimit func(weir.Limit) error
}

func refusers(t *testing.T, limit weir.Limit, clock func() int64) map[string]refuser {
	t.Helper()
	l, err := weir.NewWith(limit, weir.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	k, err := weir.NewKeyedWith[string](limit, weir.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]refuser{
		"Limiter": {l.Allow, func() (*weir.Reservation, error) { return l.Reserve(1, 0) }, l.Return, l.Reset, l.SetLimit},
		"Keyed": {
			func() bool { return k.Allow("key") },
			func() (*weir.Reservation, error) { return k.Reserve("key", 1, 0) },
			func(n int64) weir.Decision { return k.Return("key", n) }, func() { k.Reset("key") }, k.SetLimit,
		},
	}
}

// Whatever gives units back, or the passing of time, ends the refusals of a list at once.
func TestAnExhaustedListAdmitsAsSoonAsAUnitComesBack(t *testing.T) {
	for name, of := range map[string]func(n int64) weir.Limit{
		"sliding log": func(n int64) weir.Limit { return weir.SlidingLog{Rate: weir.PerHour(n)} },
		"rate gate":   func(n int64) weir.Limit { return weir.RateGate{Rate: weir.PerHour(n)} },
		"concurrency": func(n int64) weir.Limit { return weir.Concurrency{Slots: n, Lease: time.Hour} },
	} {
		now := int64(1_700_000_000_000_000_000)
		for kind, r := range refusers(t, of(3), func() int64 { return now }) {
			for step, comesBack := range map[string]func(){
				"a unit given back": func() { r.giveBack(1) },
				"a reset":           func() { r.reset() },
				"a larger limit": func() {
					if err := r.setLimit(of(4)); err != nil {
						t.Fatal(err)
					}
				},
				"an hour": func() { now += int64(time.Hour) },
			} {
				r.reset()
				if err := r.setLimit(of(3)); err != nil {
					t.Fatal(err)
				}
				for i := range 10 {
					if got, want := r.allow(), i < 3; got != want {
						t.Fatalf("%s, %s: unit %d: allowed %v, want %v", kind, name, i, got, want)
					}
				}
				comesBack()
				if !r.allow() {
					t.Errorf("%s, %s: refused after %s", kind, name, step)
				}
			}
		}
	}
}

// The release of a reservation ends what is remembered, too.
func TestAReleasedSlotIsFreeForACallerWhoWasRefused(t *testing.T) {
	for _, lease := range []time.Duration{0, time.Hour} {
		for name, r := range refusers(t, weir.Concurrency{Slots: 1, Lease: lease}, nil) {
			reservation, err := r.reserve()
			if err != nil || !reservation.Decision.Allowed {
				t.Fatalf("%s: Reserve: %+v, %v", name, reservation, err)
			}
			for range 5 {
				if r.allow() {
					t.Fatalf("%s: admitted while the slot is held", name)
				}
			}
			if err := reservation.Done(t.Context()); err != nil {
				t.Fatalf("%s: Done: %v", name, err)
			}
			if !r.allow() {
				t.Errorf("%s with a lease of %v: refused although the slot is free", name, lease)
			}
		}
	}
}

// Callers that are refused all the time see each slot that comes back, and never more than there are.
func TestRefusalsBesideReleasesKeepTheSlots(t *testing.T) {
	const slots, holders, rounds = 3, 6, 3000
	for name, r := range refusers(t, weir.Concurrency{Slots: slots}, nil) {
		var held atomic.Int64
		hold := func() {
			if n := held.Add(1); n > slots {
				t.Errorf("%s: %d slots are held at once, want at most %d", name, n, slots)
			}
			runtime.Gosched()
			held.Add(-1)
		}
		var all sync.WaitGroup
		for range holders {
			all.Go(func() {
				for range rounds {
					reservation, err := r.reserve()
					if err != nil || !reservation.Decision.Allowed {
						continue
					}
					hold()
					if err := reservation.Done(t.Context()); err != nil {
						t.Errorf("%s: Done: %v", name, err)
					}
				}
			})
		}
		all.Go(func() {
			for range holders * rounds {
				if r.allow() { // a slot of nobody, who gives it back
					hold()
					r.giveBack(1)
				}
			}
		})
		all.Wait()
		for i := range slots {
			if !r.allow() {
				t.Errorf("%s: slot %d is not free although all were given back", name, i)
			}
		}
	}
}

// crowd is a number of callers of one class that come back as soon as they are released.
type crowd struct {
	callers int
	cost    int64
}

// shares runs crowds, one per class, and returns the units that each class took in d.
func shares(t *testing.T, lim *weir.Limiter, d time.Duration, crowds ...crowd) []int64 {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	units := make([]atomic.Int64, len(crowds))
	for class, c := range crowds {
		for range c.callers {
			go func() {
				for lim.WaitTurn(ctx, weir.Turn{Cost: c.cost, Class: class}) == nil {
					units[class].Add(c.cost)
				}
			}()
		}
	}
	time.Sleep(d)
	synctest.Wait()
	got := make([]int64, len(crowds))
	for i := range units {
		got[i] = units[i].Load()
	}
	cancel()
	synctest.Wait()
	return got
}

func TestBusyClassesShareByWeightInUnits(t *testing.T) {
	bucket := weir.TokenBucket{Rate: weir.PerSecond(1000), Burst: 20}
	leaky := weir.LeakyBucket{Rate: weir.PerSecond(1000), Queue: 1 << 20}
	for _, test := range []struct {
		limit   weir.Limit
		weights []int64
		crowds  []crowd
	}{
		{bucket, []int64{3, 1}, []crowd{{10, 1}, {10, 1}}},
		{bucket, []int64{3, 1}, []crowd{{1, 1}, {1, 1}}},
		{bucket, []int64{3, 1}, []crowd{{10, 7}, {10, 2}}},
		{bucket, []int64{3, 1}, []crowd{{2, 1}, {50, 20}}},
		{bucket, []int64{5, 3, 2}, []crowd{{3, 4}, {30, 1}, {1, 9}}},
		{bucket, []int64{100, 1}, []crowd{{3, 1}, {3, 1}}},
		{leaky, []int64{3, 1}, []crowd{{10, 7}, {10, 2}}},
		// These release many callers at one instant: a class is busy while it has more callers than that.
		{weir.SlidingLog{Rate: weir.Per(20, 20*time.Millisecond)}, []int64{3, 1}, []crowd{{40, 1}, {40, 1}}},
		{weir.FixedWindow{Rate: weir.Per(20, 20*time.Millisecond)}, []int64{3, 1}, []crowd{{40, 1}, {10, 5}}},
		{weir.RateGate{Rate: weir.Per(20, 20*time.Millisecond)}, []int64{1, 1, 2}, []crowd{{40, 1}, {40, 2}, {40, 1}}},
		{weir.Cycle{Rate: weir.Per(20, 20*time.Millisecond)}, []int64{3, 1}, []crowd{{40, 1}, {40, 2}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			lim := mustNew(t, test.limit, weir.Options{Weights: test.weights})
			lim.Take(min(20, lim.Peek(0).Remaining)) // free units go to the first caller
			got := shares(t, lim, 10*time.Second, test.crowds...)
			checkShares(t, fmt.Sprint(test), got, test.weights)
		})
	}
}

func checkShares(t *testing.T, name string, got, weights []int64) {
	t.Helper()
	var units, all int64
	for i := range got {
		units += got[i]
		all += weights[i]
	}
	if math.Abs(float64(units)-10_000) > 100 {
		t.Errorf("%s: %d units in 10s at 1000/s", name, units)
	}
	for i := range got {
		want := float64(units*weights[i]) / float64(all)
		if math.Abs(float64(got[i])-want) > 0.02*want {
			t.Errorf("%s: class %d took %d of %d units, want %.0f within 2 %%", name, i, got[i], units, want)
		}
	}
}

// Tenants are flows: each shares by its weight, however many callers it has.
func TestBusyFlowsShareByWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1000), Burst: 1})
		perKey := mustKeyed[string](t, weir.TokenBucket{Rate: weir.PerSecond(1000), Burst: 1}).For("k")
		for _, wait := range []func(context.Context, weir.Turn) error{lim.WaitTurn, perKey.WaitTurn} {
			ctx, cancel := context.WithCancel(t.Context())
			weights := []int64{1, 2, 7}
			units := make([]atomic.Int64, len(weights))
			for i, weight := range weights {
				for range 3 * (len(weights) - i) {
					go func() {
						for wait(ctx, weir.Turn{Cost: 1, Flow: fmt.Sprint("tenant ", i), Weight: weight}) == nil {
							units[i].Add(1)
						}
					}()
				}
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			checkShares(t, "tenants", []int64{units[0].Load(), units[1].Load(), units[2].Load()}, weights)
			cancel()
			synctest.Wait()
		}
	})
}

// A tenant with one caller does not wait behind the thousand of another.
func TestAFlowThatComesLateGoesSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1})
		lim.Allow()
		for range 1000 {
			go lim.WaitTurn(t.Context(), weir.Turn{Cost: 1, Flow: "many"})
		}
		synctest.Wait()
		time.Sleep(10500 * time.Millisecond)
		start := time.Now()
		if err := lim.WaitTurn(t.Context(), weir.Turn{Cost: 1, Flow: "one"}); err != nil || time.Since(start) > 1500*time.Millisecond {
			t.Errorf("the only caller of a flow waited %v, %v; want at most two turns", time.Since(start), err)
		}
		lim.Close()
	})
}

// A reservation in line has a promised instant, which a caller of another flow must not take.
func TestFlowsDoNotOvertakeAReservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1})
		lim.Allow()
		go lim.WaitTurn(t.Context(), weir.Turn{Cost: 1, Flow: "a"})
		synctest.Wait()
		r, err := lim.Reserve(1, weir.Never)
		if err != nil || r.Decision.Delay != 2*time.Second {
			t.Fatalf("the reservation is for %v, %v; want 2 s", r.Decision.Delay, err)
		}
		start := time.Now()
		if err := lim.WaitTurn(t.Context(), weir.Turn{Cost: 1, Flow: "b", Weight: 1024}); err != nil || time.Since(start) != 3*time.Second {
			t.Errorf("a caller of another flow waited %v, %v; want 3 s, behind the reservation", time.Since(start), err)
		}
	})
}

func TestWeightsOutOfBoundsAreRefused(t *testing.T) {
	lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1})
	for _, weight := range []int64{-1, 1025} {
		if err := lim.WaitTurn(t.Context(), weir.Turn{Cost: 1, Flow: "a", Weight: weight}); !errors.Is(err, weir.ErrRequest) {
			t.Errorf("weight %d: %v, want ErrRequest", weight, err)
		}
	}
}

func TestIdleClassLeavesItsShareToTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1000), Burst: 1}, weir.Options{Weights: []int64{3, 1}})
		if got := shares(t, lim, 10*time.Second, crowd{0, 1}, crowd{5, 1}); got[1] != 10_001 {
			t.Errorf("the only busy class took %d in 10s, want 10001", got[1])
		}
		// A class gets no credit for what it did not use while it was idle.
		got := shares(t, lim, 10*time.Second, crowd{5, 1}, crowd{5, 1})
		if math.Abs(float64(got[0])-7500) > 150 {
			t.Errorf("both busy after one was idle: %v in 10s, want 7500 and 2500", got)
		}
	})
}

func TestCancelledHeadKeepsThePlaceOfItsClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1}, weir.Options{Weights: []int64{1, 1}})
		lim.Allow()
		start := time.Now()
		var mu sync.Mutex
		var order []string
		wait := func(ctx context.Context, name string, class int) {
			go func() {
				if lim.WaitTurn(ctx, weir.Turn{Cost: 1, Class: class}) == nil {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, fmt.Sprint(name, "@", time.Since(start)))
				}
			}()
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		wait(ctx, "left", 0)
		for _, name := range []string{"b1", "b2", "b3"} {
			wait(t.Context(), name, 1)
		}
		wait(t.Context(), "a1", 0)
		cancel()
		time.Sleep(10 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if got, want := fmt.Sprint(order), "[a1@1s b1@2s b2@3s b3@4s]"; got != want {
			t.Errorf("order: got %s, want %s: a1 takes the place of the caller that left", got, want)
		}
	})
}

// A cost of the whole burst passes a crowd of small costs, and delays them only while its own units refill.
func TestLargeCostNeitherStarvesNorBlocks(t *testing.T) {
	for _, weights := range [][]int64{nil, {1, 1}} {
		synctest.Test(t, func(t *testing.T) {
			lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(100), Burst: 100}, weir.Options{Weights: weights})
			var small atomic.Int64
			ctx, cancel := context.WithCancel(t.Context())
			for range 20 {
				go func() {
					for lim.Wait(ctx) == nil {
						small.Add(1)
					}
				}()
			}
			time.Sleep(10*time.Second + 1)
			before := small.Load()
			start := time.Now()
			if err := lim.WaitTurn(ctx, weir.Turn{Cost: 100, Class: max(0, len(weights)-1)}); err != nil {
				t.Fatal(err)
			}
			took, passed := time.Since(start), small.Load()-before
			if took > 1500*time.Millisecond {
				t.Errorf("weights %v: the large cost waited %v while %d small ones passed: starved", weights, took, passed)
			}
			time.Sleep(10 * time.Second)
			if after := small.Load() - before; after < 900 {
				t.Errorf("weights %v: %d small ones passed in 10s after the large one: blocked", weights, after)
			}
			cancel()
		})
	}
}

// Under a bound, the wait of a turn is that of its class: a turn that goes first is not refused because of the turns
// behind it.
func TestBoundOfATurnCountsOnlyEarlierTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1}, weir.Options{Weights: []int64{1, 1}})
		lim.Allow()
		for range 50 {
			go lim.WaitTurn(t.Context(), weir.Turn{Cost: 1, Class: 1})
		}
		synctest.Wait()
		start := time.Now()
		if err := lim.WaitTurn(t.Context(), weir.Turn{Cost: 1, Class: 0, Max: 2 * time.Second}); err != nil {
			t.Errorf("after %v: %v, want a turn within 2s", time.Since(start), err)
		}
		if err := lim.WaitTurn(t.Context(), weir.Turn{Cost: 1, Class: 1, Max: 45 * time.Second}); err == nil {
			t.Error("the last of a class of 49 was released within 45s")
		}
		lim.Close()
	})
}

// flaky is a clock that panics on demand.
type flaky struct{ broken atomic.Bool }

func (c *flaky) now() int64 {
	if c.broken.Load() {
		panic("the clock is broken")
	}
	return time.Now().UnixNano()
}

// caught calls do and reports whether it panicked.
func caught(do func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	do()
	return false
}

// unlocked fails the test unless all verbs return.
func unlocked(t *testing.T, what string, verbs ...func()) {
	t.Helper()
	var done atomic.Bool
	go func() {
		for _, verb := range verbs {
			verb()
		}
		done.Store(true)
	}()
	if !soon(done.Load) {
		t.Fatalf("%s: a lock was left", what)
	}
}

func TestAClockThatPanicsLeavesNothingLocked(t *testing.T) {
	var clock flaky
	limit, options := weir.RateGate{Rate: weir.PerSecond(1)}, weir.Options{Clock: clock.now}
	lim := mustNew(t, limit, options)
	k, err := weir.NewKeyedWith[string](limit, options)
	if err != nil {
		t.Fatal(err)
	}
	m := weir.NewMemory(weir.MemoryOptions{Clock: clock.now})
	rule := mustRule(t, "r", weir.SlidingLog{Rate: weir.PerSecond(1)}, weir.TokenBucket{Rate: weir.PerDay(1)})
	ctx := context.Background()
	verbs := []func(){
		func() { lim.Allow() }, func() { lim.Take(1) }, func() { lim.Peek(1) }, func() { lim.Record(1) }, lim.Reset,
		func() { _ = lim.SetLimit(limit) }, func() { lim.WaitStats() }, func() { lim.Reserve(1, 0) }, func() { _ = lim.WaitMax(ctx, 1, 1) },
		func() { k.Allow("k") }, func() { k.Take("k", 1) }, func() { k.Peek("k", 1) }, func() { k.Record("k", 1) }, func() { k.Reset("k") },
		func() { _ = k.SetLimit(limit) }, k.Refresh, func() { k.Reserve("k", 1, 0) }, func() { _ = k.WaitMax(ctx, "k", 1, 1) },
		func() { m.Take(ctx, rule.For("k", 1)) }, func() { m.Peek(ctx, rule.For("k", 1)) }, func() { m.Record(ctx, rule.For("k", 1)) },
		func() { _ = m.Reset(ctx, rule.For("k", 1)) },
	}
	for i, verb := range verbs {
		clock.broken.Store(true)
		if !caught(verb) {
			t.Errorf("verb %d did not ask the clock", i)
		}
		clock.broken.Store(false)
		unlocked(t, "a verb", verbs...)
	}
}

// Waiting callers are released in time, or leave in time, whatever the clock did meanwhile, and give back what they
// took.
func TestAClockThatPanicsLeavesNothingUnplanned(t *testing.T) {
	for seed := range randtest.Seeds(t, 50, 50) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			var clock flaky
			lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1}, weir.Options{Clock: clock.now})
			start := time.Now()
			if !lim.Allow() {
				t.Fatal("a fresh limiter refused")
			}
			var gone, left, broke atomic.Int64
			for i := range 8 {
				leaves := time.Hour
				if i%3 == 2 {
					leaves = time.Duration(r.Int64N(3e9))
				}
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(leaves, cancel)
				clock.broken.Store(r.IntN(4) == 0) // some panic as they come
				go func() {
					if caught(func() {
						if err := lim.Wait(ctx); err == nil {
							gone.Add(1)
						} else {
							left.Add(1)
						}
					}) {
						broke.Add(1)
					}
				}()
				synctest.Wait()
			}
			for range 20 {
				clock.broken.Store(!clock.broken.Load())
				time.Sleep(time.Duration(r.Int64N(5e8)))
			}
			clock.broken.Store(false)
			time.Sleep(time.Minute)
			synctest.Wait()
			if gone.Load()+left.Load()+broke.Load() != 8 || lim.WaitStats().Waiting != 0 {
				t.Errorf("seed %d: %d were released, %d left and %d panicked, of 8; %d still wait", seed, gone.Load(), left.Load(), broke.Load(), lim.WaitStats().Waiting)
			}
			if most := int64(time.Since(start) / time.Second); gone.Load() > most || !lim.Allow() {
				t.Errorf("seed %d: %d were released in %ds, and no unit was left", seed, gone.Load(), most)
			}
		})
	}
}

func TestAWaiterIsNotLateBecauseTheClockPanicked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clock flaky
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1}, weir.Options{Clock: clock.now})
		lim.Allow()
		start := time.Now()
		done := make(chan time.Duration, 1)
		go func() {
			if err := lim.Wait(t.Context()); err != nil {
				t.Errorf("Wait: %v", err)
			}
			done <- time.Since(start)
		}()
		time.Sleep(900 * time.Millisecond)
		clock.broken.Store(true)
		time.Sleep(time.Second) // its turn comes while the clock is broken
		clock.broken.Store(false)
		if late := <-done - 1900*time.Millisecond; late < 0 || late > 10*time.Millisecond {
			t.Errorf("released %v after the clock was mended, want within 10ms", late)
		}
	})
}

// Units come back after a panic, although the limit of the key is unknown then.
func TestALimitFunctionThatPanicsKeepsNoUnits(t *testing.T) {
	for _, limit := range []weir.Limit{weir.Concurrency{Slots: 1}, weir.TokenBucket{Rate: weir.PerHour(1), Burst: 1}} {
		synctest.Test(t, func(t *testing.T) {
			var broken atomic.Bool
			k, err := weir.NewKeyedFunc(func(int) weir.Limit {
				if broken.Load() {
					panic("no limit")
				}
				return limit
			}, weir.Options{})
			if err != nil {
				t.Fatal(err)
			}
			b, err := k.Reserve(1, 1, 0)
			if err != nil || !b.Decision.Allowed {
				t.Fatalf("Reserve: %+v and %v", b, err)
			}
			broken.Store(true)
			func() {
				defer func() { _ = recover() }()
				_ = b.Cancel(t.Context())
			}()
			broken.Store(false)
			if err := b.Cancel(t.Context()); err != nil {
				t.Error(err)
			}
			if !k.Allow(1) {
				t.Errorf("%v: a booking that was cancelled again kept its unit", limit)
			}
			k.Return(1, 1)
			var slots weir.Slots
			if err := k.WaitTurn(t.Context(), 1, weir.Turn{Cost: 1, Slots: &slots}); err != nil {
				t.Fatal(err)
			}
			broken.Store(true)
			slots.Release()
			broken.Store(false)
			if _, holds := limit.(weir.Concurrency); k.Allow(1) != holds {
				t.Errorf("%v: after Release, its unit came back: %t", limit, !holds)
			}
		})
	}
}

// A key whose limit cannot be found does not keep other keys from their new limit.
func TestALimitFunctionThatPanicsKeepsNoOtherKeyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changed atomic.Bool
		k, err := weir.NewKeyedFunc(func(key int) weir.Limit {
			switch {
			case changed.Load() && key == 7:
				panic("no limit for 7")
			case changed.Load():
				return weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1}
			}
			return weir.TokenBucket{Rate: weir.PerHour(1), Burst: 1}
		}, weir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var gone atomic.Int64
		for key := range 50 {
			k.Allow(key)
			go func() {
				if k.Wait(t.Context(), key) == nil {
					gone.Add(1)
				}
			}()
		}
		synctest.Wait()
		changed.Store(true)
		if !caught(k.Refresh) {
			t.Error("Refresh hid the panic of the limit function")
		}
		for _, verb := range []func(){func() { k.Allow(7) }, func() { k.Take(7, 1) }, func() { _ = k.Wait(t.Context(), 7) }, func() { k.Reserve(7, 1, 0) }} {
			if !caught(verb) {
				t.Error("a verb hid the panic of the limit function")
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if gone.Load() != 49 {
			t.Errorf("%d of 49 keys got their new limit", gone.Load())
		}
		k.Close() // of all shards
	})
}

// panickingHandler is a log handler that panics.
type panickingHandler struct{ slog.Handler }

func (panickingHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (panickingHandler) Handle(context.Context, slog.Record) error { panic("no log") }

func TestFunctionsOfTheMemoryOptionsThatPanicLeaveNothingLocked(t *testing.T) {
	for name, options := range map[string]weir.MemoryOptions{
		"Parent": {MaxKeys: 1, Parent: func(string) (string, bool) { panic("no parent") }},
		"Logger": {MaxKeys: 1, Logger: slog.New(panickingHandler{})},
	} {
		m := weir.NewMemory(options)
		for _, limit := range []weir.Limit{weir.TokenBucket{Rate: weir.PerDay(1)}, weir.SlidingLog{Rate: weir.PerDay(1)}} {
			rule := mustRule(t, limit.String(), limit, weir.FixedWindow{Rate: weir.PerDay(9)})
			panicked := 0
			for key := range 300 {
				unlocked(t, name, func() {
					if caught(func() { m.Take(context.Background(), rule.For(string(rune('a'+key)), 1)) }) {
						panicked++
					}
				})
			}
			if panicked == 0 && name == "Parent" {
				t.Errorf("%s, %s: nothing panicked", name, limit)
			}
		}
	}
}

func TestErrorsOfAWaitTellTheTruthAboutItsBound(t *testing.T) {
	err := error(&weir.WaitError{Need: weir.Never, Bound: 2 * time.Second})
	if want := "weir: wait: no turn within the bound of 2s"; err.Error() != want || !errors.Is(err, weir.ErrWait) {
		t.Errorf("got %q, want %q", err, want)
	}
}
