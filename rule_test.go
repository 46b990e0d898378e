package weir_test

import (
	"context"
	"errors"
	"math/big"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
)

// plans are limits that tenants change between. Their rates have no common unit.
var plans = []weir.Limit{
	weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 20},
	weir.TokenBucket{Rate: weir.PerHour(100), Burst: 100},
	weir.TokenBucket{Rate: weir.PerSecond(3), Burst: 1},
	weir.TokenBucket{Rate: weir.PerMinute(7), Burst: 5},
	weir.TokenBucket{Rate: weir.Per(999983, 366*24*time.Hour), Burst: 50},
	weir.TokenBucket{Rate: weir.PerSecond(333), Burst: 33},
	weir.TokenBucket{Rate: weir.Per(1<<20, time.Second), Burst: 1 << 10},
	weir.TokenBucket{Rate: weir.Per(1234, 5712950236), Burst: 7},
}

// planned takes one unit of a key under a plan.
type planned func(t *testing.T, tenant, plan int) (allowed bool)

// plannedBy are the limiters whose keys change plans, on a clock.
var plannedBy = map[string]func(t *testing.T, plans []weir.Limit, clock func() int64) planned{
	"Memory": func(t *testing.T, plans []weir.Limit, clock func() int64) planned {
		m := weir.NewMemory(weir.MemoryOptions{Clock: clock})
		rules := make([]*weir.Rule, len(plans))
		for i, plan := range plans {
			rules[i] = mustRule(t, "plan", plan)
		}
		return func(t *testing.T, tenant, plan int) bool {
			d, err := m.Take(context.Background(), rules[plan].For(string(rune(tenant)), 1))
			if err != nil {
				t.Error(err)
			}
			return d.Allowed
		}
	},
	"Keyed": func(t *testing.T, plans []weir.Limit, clock func() int64) planned {
		var current [1000]atomic.Int64
		k, err := weir.NewKeyedFunc(func(tenant int) weir.Limit { return plans[current[tenant].Load()] }, weir.Options{Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		return func(t *testing.T, tenant, plan int) bool {
			current[tenant].Store(int64(plan))
			if plan%2 == 0 {
				return k.Take(tenant, 1).Allowed
			}
			return k.Allow(tenant)
		}
	},
}

// A caller of 10/s gets its 600 units a minute beside a caller of 1/m on the same key that asks constantly and is refused.
func TestASlowerPlanDoesNotStarveAFasterOne(t *testing.T) {
	two := []weir.Limit{
		weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 10},
		weir.TokenBucket{Rate: weir.PerMinute(1), Burst: 1},
	}
	for name, limiter := range plannedBy {
		now := int64(1_700_000_000_000_000_000)
		take := limiter(t, two, func() int64 { return now })
		fast := 0
		for range 60 * 1000 {
			if take(t, 0, 0) {
				fast++
			}
			take(t, 0, 1)
			now += int64(time.Millisecond)
		}
		if want := 10 + 600; fast < want-1 || fast > want {
			t.Errorf("%s: the faster plan got %d units in a minute, want its burst and 600", name, fast)
		}
	}
}

// A thousand tenants take at once while their plans change at random. None gets
// more in any window than the largest burst and what the largest rate brings.
func TestPlansThatChangeAtRandomKeepTheBound(t *testing.T) {
	const callers, tenants, each = 8, 500, 125
	rounds := 40
	if testing.Short() {
		rounds = 10
	}
	for name, limiter := range plannedBy {
		t.Run(name, func(t *testing.T) {
			var now atomic.Int64
			now.Store(1_700_000_000_123_456_789)
			// A few plans at a time, so that the bound is not that of the fastest.
			for first := 0; first+3 <= len(plans); first += 2 {
				alive := plans[first : first+3]
				take := limiter(t, alive, now.Load)
				var admitted [tenants]atomic.Int64
				books := newAccounts(tenants, alive)
				random := rand.New(rand.NewPCG(uint64(first), 7))
				for range rounds {
					var all sync.WaitGroup
					for range callers {
						mine := rand.New(rand.NewPCG(random.Uint64(), 8))
						all.Go(func() {
							for range each {
								tenant := mine.IntN(1 + mine.IntN(tenants)) // some are asked often
								if take(t, tenant, mine.IntN(len(alive))) {
									admitted[tenant].Add(1)
								}
							}
						})
					}
					all.Wait()
					for tenant := range admitted {
						books.spent(t, tenant, now.Load(), admitted[tenant].Swap(0))
					}
					now.Add(random.Int64N(1 << random.IntN(34)))
				}
			}
		})
	}
}

// accounts check what each tenant spends: in no window more than a burst and the
// rate times its length. That is a bucket of the burst that fills at the rate.
type accounts struct {
	burst, perNano *big.Rat
	spentOf        []*big.Rat // units of the worst window that ends at the last instant
	at             []int64
}

func newAccounts(tenants int, plans []weir.Limit) *accounts {
	b := &accounts{burst: new(big.Rat), perNano: new(big.Rat), spentOf: make([]*big.Rat, tenants), at: make([]int64, tenants)}
	for _, plan := range plans {
		bucket := plan.(weir.TokenBucket)
		if burst := whole(bucket.Burst); burst.Cmp(b.burst) > 0 {
			b.burst = burst
		}
		if rate := perNano(bucket.Rate); rate.Cmp(b.perNano) > 0 {
			b.perNano = rate
		}
	}
	return b
}

func (b *accounts) spent(t *testing.T, tenant int, now, units int64) {
	if units == 0 {
		return
	}
	used := whole(units)
	if before := b.spentOf[tenant]; before != nil {
		if left := less(before, times(whole(now-b.at[tenant]), b.perNano)); left.Sign() > 0 {
			used = sum(used, left)
		}
	}
	b.spentOf[tenant], b.at[tenant] = used, now
	if used.Cmp(b.burst) > 0 {
		t.Errorf("tenant %d has %s units of a bucket of %s at %d", tenant, used.FloatString(6), b.burst.FloatString(0), now)
	}
}

// TestAnUpgradeIsNoCliff drains a slow plan and upgrades.
func TestAnUpgradeIsNoCliff(t *testing.T) {
	two := []weir.Limit{
		weir.TokenBucket{Rate: weir.PerHour(100), Burst: 100},
		weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 20},
	}
	for name, limiter := range plannedBy {
		now := int64(1_700_000_000_000_000_000)
		take := limiter(t, two, func() int64 { return now })
		for range 100 {
			take(t, 0, 0)
		}
		if take(t, 0, 1) {
			t.Errorf("%s: admitted at once, want 100 units used", name)
		}
		now += int64(8100*time.Millisecond) - 1
		if take(t, 0, 1) {
			t.Errorf("%s: admitted before 81 of 100 units are back", name)
		}
		now++
		if !take(t, 0, 1) {
			t.Errorf("%s: refused after 8.1s, when 81 of 100 units are back", name)
		}
	}
}

// Callers that wait while the function changes its answer go when the units are
// back under the new limit.
func TestWaitingCallersFollowAnUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var plan atomic.Pointer[weir.TokenBucket]
		plan.Store(&weir.TokenBucket{Rate: weir.PerHour(100), Burst: 100})
		k, err := weir.NewKeyedFunc(func(int) weir.Limit { return *plan.Load() }, weir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		k.AllowN(1, 100)
		released := make(chan time.Duration, 2)
		for range 2 {
			go func() {
				if err := k.Wait(t.Context(), 1); err != nil {
					t.Error(err)
				}
				released <- time.Since(start)
			}()
			synctest.Wait()
		}
		plan.Store(&weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 20})
		k.Refresh()
		if first, second := <-released, <-released; first != 8100*time.Millisecond || second != 8200*time.Millisecond {
			t.Errorf("released after %v and %v, want 8.1s and 8.2s", first, second)
		}
	})
}

// A waiter under a slower plan goes when the faster one's units are back, as a
// caller would that asks again at RetryAfter. From then on its own rate counts.
func TestAWaiterUnderASlowerPlanWaitsNoLongerThanRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 10}
		k, err := weir.NewKeyedFunc(func(int) weir.Limit { return limit }, weir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		k.AllowN(1, 10)
		limit = weir.TokenBucket{Rate: weir.PerMinute(1), Burst: 5}
		want := k.Take(1, 2).RetryAfter // 7 units of a tenth of a second
		start := time.Now()
		if err := k.WaitN(t.Context(), 1, 2); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited != want || want != 700*time.Millisecond {
			t.Errorf("waited %v, and RetryAfter was %v; want 700ms", waited, want)
		}
		if d := k.Peek(1, 1); d.RetryAfter != time.Minute || d.ResetAfter != 5*time.Minute {
			t.Errorf("afterwards %+v, want 5 units of a minute used", d)
		}
	})
}

// bookedBy are limiters of one key that book under a limit that changes. They return the functions that peek at one unit
// and book some.
var bookedBy = map[string]func(t *testing.T, limit *weir.Limit) (peek func() (weir.Decision, error), book func(n int64) (*weir.Reservation, error)){
	"Limiter": func(t *testing.T, limit *weir.Limit) (func() (weir.Decision, error), func(n int64) (*weir.Reservation, error)) {
		lim := mustNew(t, *limit)
		current := func() *weir.Limiter {
			if err := lim.SetLimit(*limit); err != nil {
				t.Fatal(err)
			}
			return lim
		}
		return func() (weir.Decision, error) { return current().Peek(1), nil },
			func(n int64) (*weir.Reservation, error) { return current().Reserve(n, weir.Never) }
	},
	"Keyed": func(t *testing.T, limit *weir.Limit) (func() (weir.Decision, error), func(n int64) (*weir.Reservation, error)) {
		k, err := weir.NewKeyedFunc(func(int) weir.Limit { return *limit }, weir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return func() (weir.Decision, error) { return k.Peek(1, 1), nil },
			func(n int64) (*weir.Reservation, error) { return k.Reserve(1, n, weir.Never) }
	},
	"Memory": func(t *testing.T, limit *weir.Limit) (func() (weir.Decision, error), func(n int64) (*weir.Reservation, error)) {
		m := weir.NewMemory(weir.MemoryOptions{})
		return func() (weir.Decision, error) {
				d, err := m.Peek(t.Context(), mustRule(t, "plan", *limit).For("k", 1))
				d.Rule, d.Key = "", ""
				return d, err
			},
			func(n int64) (*weir.Reservation, error) {
				return weir.ReserveAhead(t.Context(), m, weir.Never, mustRule(t, "plan", *limit).For("k", n))
			}
	},
}

// Bookings across a change: none comes before a booked instant, and the newest is
// undone exactly.
func TestBookingsKeepTheirInstantsAcrossAChange(t *testing.T) {
	for name, limiter := range bookedBy {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limit := weir.Limit(weir.TokenBucket{Rate: weir.PerMinute(1), Burst: 2})
				peek, book := limiter(t, &limit)
				mustBook := func(n int64, want time.Duration) *weir.Reservation {
					t.Helper()
					r, err := book(n)
					if err != nil || r.Decision.Delay != want {
						t.Fatalf("%d units of %v: booked %+v, error %v, want them in %v", n, limit, r.Decision, err, want)
					}
					return r
				}
				mustBook(2, 0)
				mustBook(1, time.Minute)
				limit = weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 100}
				// At the booked instant 2 units are used, of a tenth of a second from now on.
				want := weir.Decision{Cause: weir.ByCount, Limit: 100, RetryAfter: time.Minute, ResetAfter: time.Minute + 200*time.Millisecond, LimitReset: time.Minute + 200*time.Millisecond}
				if d, err := peek(); err != nil || d != want {
					t.Errorf("ahead of the booking: %+v, error %v, want %+v", d, err, want)
				}
				mustBook(99, time.Minute+100*time.Millisecond).Cancel(t.Context())
				mustBook(99, time.Minute+100*time.Millisecond)
			})
		})
	}
}

// A snapshot between two limits keeps the units used and the rate that wrote them.
func TestASnapshotAcrossAChangeKeepsTheUnits(t *testing.T) {
	hourly := mustRule(t, "plan", weir.TokenBucket{Rate: weir.PerHour(100), Burst: 100})
	second := mustRule(t, "plan", weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 20})
	fine := mustRule(t, "plan", weir.TokenBucket{Rate: weir.PerSecond(333), Burst: 200})
	now := int64(1_700_000_000_000_000_000)
	clock := func() int64 { return now }
	m := weir.NewMemory(weir.MemoryOptions{Clock: clock})
	spend(t, m, hourly.For("word", 100))
	spend(t, m, hourly.For("converted", 100))
	if d, _ := m.Take(t.Context(), second.For("converted", 1)); d.RetryAfter != 8100*time.Millisecond {
		t.Fatalf("%+v, want a retry after 8.1s", d)
	}
	spend(t, m, hourly.For("cell", 40))
	spend(t, m, fine.For("cell", 40))
	again := loaded(t, saved(t, m), clock)
	for _, q := range []weir.Request{
		second.For("word", 1), second.For("converted", 1), hourly.For("word", 1), hourly.For("converted", 1), fine.For("cell", 100), hourly.For("cell", 90),
	} {
		for range 2 {
			want, _ := m.Take(t.Context(), q)
			if got, err := again.Take(t.Context(), q); err != nil || got != want {
				t.Errorf("%s of %q: %+v and error %v, want %+v", q.Rule, q.Key, got, err, want)
			}
			now += int64(900 * time.Millisecond)
		}
	}
}

// A booking that is settled for more than it reserved, after SetLimit to another
// algorithm, counts the excess under the limit in force.
func TestASettlementAfterSetLimitCountsUnderTheLimitInForce(t *testing.T) {
	now := int64(1_700_000_000_000_000_000)
	k, err := weir.NewKeyedWith[int](weir.TokenBucket{Rate: weir.PerHour(1), Burst: 10}, weir.Options{Clock: func() int64 { return now }})
	if err != nil {
		t.Fatal(err)
	}
	first, err := k.Reserve(1, 4, 0)
	if err != nil {
		t.Fatal(err)
	}
	if later, err := k.Reserve(1, 8, weir.Never); err != nil || later.Decision.Delay != 2*time.Hour {
		t.Fatalf("%+v and error %v, want a booking in 2h", later.Decision, err)
	}
	if err := k.SetLimit(weir.FixedWindow{Rate: weir.PerDay(100)}); err != nil {
		t.Fatal(err)
	}
	if err := first.Settle(t.Context(), 11); err != nil {
		t.Fatal(err)
	}
	if d := k.Peek(1, 1); d.Remaining != 93 {
		t.Errorf("%d of 100 left after an excess of 7, want 93", d.Remaining)
	}
}

// Cancel of one rule of all three limits gives back the rate and the quota, too, because the work was not done.
func TestCancelOfOneRuleGivesTheRateBackWithTheSlot(t *testing.T) {
	rule, err := weir.ParseRule("vendor=concurrency 8 lease 1m and sliding log 100/10s and fixed window 5000/d")
	if err != nil {
		t.Fatal(err)
	}
	engine := weir.NewMemory(weir.MemoryOptions{Clock: still})
	admitted := 0
	for range 200 {
		r, err := engine.Reserve(t.Context(), rule.For("vendor", 1))
		if err != nil {
			t.Fatal(err)
		}
		if r.Decision.Allowed {
			admitted++
		}
		if err := r.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if admitted != 200 {
		t.Errorf("%d of 200 requests at one instant were admitted, want all, as each was given back", admitted)
	}
}

// A gate refuses a caller with a time before its newest release. On the limiter's own clock that does not happen: two
// callers that read the clock at once and reach the lock in the other order are decided as if they had read it there.
func TestNoCallerIsRefusedForReadingTheClockJustBeforeAnother(t *testing.T) {
	const budget = 1 << 40
	gate := weir.RateGate{Rate: weir.Per(budget, 366*24*time.Hour)}
	lim := mustNew(t, gate)
	keyed := mustKeyed[string](t, gate)
	rule, err := weir.NewRule("gate", gate)
	if err != nil {
		t.Fatal(err)
	}
	engine := weir.NewMemory(weir.MemoryOptions{})
	for name, allow := range map[string]func() bool{
		"Limiter": lim.Allow,
		"Keyed":   func() bool { return keyed.Allow("a") },
		"Memory": func() bool {
			d, err := engine.Take(context.Background(), rule.For("a", 1))
			return err == nil && d.Allowed
		},
	} {
		var refused atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 20_000 {
					if !allow() {
						refused.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if n := refused.Load(); n > 0 {
			t.Errorf("%s: %d of 80000 refused within a budget of %d", name, n, int64(budget))
		}
	}
}

func TestARuleThatChargesAfterSharesTheStatesOfTheRule(t *testing.T) {
	rule, err := weir.ParseRule("tokens=100/h and quota 1000/month")
	if err != nil {
		t.Fatal(err)
	}
	after, err := rule.ChargeAfter()
	if err != nil || !after.ChargesAfter() || rule.ChargesAfter() || after.String() != rule.String() {
		t.Fatalf("got %v, %v", after, err)
	}
	engine := weir.NewMemory(weir.MemoryOptions{})
	if d, err := engine.Record(t.Context(), after.For("k", 250)); err != nil || d.Allowed {
		t.Errorf("got %+v, %v, want a record that did not fit", d, err)
	}
	if d, err := engine.Take(t.Context(), rule.For("k", 1)); err != nil || d.Allowed || d.Remaining != 0 {
		t.Errorf("got %+v, %v, want a refusal", d, err)
	}
}

func TestSlotsAreNotChargedAfter(t *testing.T) {
	for _, text := range []string{"r=concurrency 5", "r=100/h and concurrency 5"} {
		rule, err := weir.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = rule.ChargeAfter()
		refused, ok := errors.AsType[*weir.LimitError](err)
		if want := `weir: rule "r": charge cannot be after the work, because concurrency 5 holds slots during the work; give the slots a rule of their own`; !ok || refused.Code != weir.CodeHeld || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
