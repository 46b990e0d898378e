package weir_test

import (
	"cmp"
	"context"
	"errors"
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
	"github.com/weirflow/weir/internal/randtest"
)

func mustNew(t testing.TB, limit weir.Limit, options ...weir.Options) *weir.Limiter {
	t.Helper()
	lim, err := weir.NewWith(limit, append(options, weir.Options{})[0])
	if err != nil {
		t.Fatal(err)
	}
	return lim
}

// release is one released waiter, and how long after the start.
type release struct {
	id int
	at time.Duration
}

// releases runs a wait for each cost, in order of arrival, and returns when each was released.
func releases(t *testing.T, lim *weir.Limiter, costs ...int64) []release {
	t.Helper()
	var mu sync.Mutex
	var out []release
	start := time.Now()
	for id, n := range costs {
		go func() {
			if err := lim.WaitN(t.Context(), n); err != nil {
				t.Errorf("waiter %d: %v", id, err)
			}
			mu.Lock()
			defer mu.Unlock()
			out = append(out, release{id, time.Since(start)})
		}()
		synctest.Wait()
	}
	time.Sleep(time.Hour) // virtual
	mu.Lock()
	defer mu.Unlock()
	return out
}

func TestWaitIsGrantedInArrivalOrderToTheNanosecond(t *testing.T) {
	for _, test := range []struct {
		limit weir.Limit
		costs []int64
		want  []time.Duration
	}{
		{weir.TokenBucket{Rate: weir.PerSecond(3), Burst: 1}, []int64{1, 1, 1, 1}, []time.Duration{0, 333333334, 666666667, 1e9}},
		{weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 5}, []int64{4, 3, 1, 5}, []time.Duration{0, 2e8, 3e8, 8e8}},
		{weir.LeakyBucket{Rate: weir.PerSecond(10), Queue: 5, NoDelay: 1}, []int64{1, 1, 1, 1}, []time.Duration{0, 0, 1e8, 2e8}},
		{weir.FixedWindow{Rate: weir.PerMinute(2)}, []int64{1, 1, 1, 2}, []time.Duration{0, 0, 60e9, 120e9}},
		{weir.SlidingLog{Rate: weir.PerSecond(2)}, []int64{1, 1, 1, 2}, []time.Duration{0, 0, 1e9, 2e9}},
		{weir.SlidingLog{Rate: weir.PerSecond(10), Gap: 100 * time.Millisecond}, []int64{1, 1, 1}, []time.Duration{0, 1e8, 2e8}},
	} {
		synctest.Test(t, func(t *testing.T) {
			got := releases(t, mustNew(t, test.limit), test.costs...)
			if len(got) != len(test.want) {
				t.Fatalf("%v: %d released, want %d", test.limit, len(got), len(test.want))
			}
			for i, r := range got {
				if r.at != test.want[i] {
					t.Errorf("%v, costs %v: release %d after %v, want %v", test.limit, test.costs, i, r.at, test.want[i])
				}
			}
			if !slices.IsSortedFunc(got, func(a, b release) int { return cmp.Compare(a.at, b.at) }) {
				t.Errorf("%v: released out of order: %v", test.limit, got)
			}
		})
	}
}

func TestWaitThatCannotBeOutlastedIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1})
		lim.Allow()
		ctx, cancel := context.WithTimeout(t.Context(), 999*time.Millisecond)
		defer cancel()
		start := time.Now()
		err := lim.Wait(ctx)
		var wait *weir.WaitError
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &wait) || wait.Need != time.Second || time.Since(start) != 0 {
			t.Errorf("Wait under a deadline of 999ms: %v after %v, want a WaitError of 1s at once", err, time.Since(start))
		}
		err = lim.WaitMax(t.Context(), 1, 999*time.Millisecond)
		if !errors.As(err, &wait) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("WaitMax of 999ms: %v, want a WaitError that is no DeadlineExceeded", err)
		}
		if err := lim.WaitMax(t.Context(), 1, time.Second); err != nil {
			t.Errorf("WaitMax of exactly the wait: %v", err)
		}
		if err := lim.WaitN(t.Context(), 2); !errors.Is(err, weir.ErrNever) {
			t.Errorf("WaitN(2) of a burst of 1: %v, want ErrNever", err)
		}
	})
}

func TestCancelledWaiterLeavesNoDebtAndThoseBehindMoveForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1})
		lim.Allow()
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() { first <- lim.Wait(ctx) }()
		synctest.Wait()
		start := time.Now()
		second := make(chan time.Duration, 1)
		go func() {
			if err := lim.Wait(t.Context()); err != nil {
				t.Error(err)
			}
			second <- time.Since(start)
		}()
		synctest.Wait()
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled wait: %v, want context.Canceled", err)
		}
		if at := <-second; at != time.Second {
			t.Errorf("the second was released after %v, want 1s: the place of the first", at)
		}
	})
}

func TestAllowDoesNotOvertakeWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 10})
		lim.AllowN(5)
		go lim.WaitN(t.Context(), 8)
		synctest.Wait()
		if lim.Allow() {
			t.Error("Allow took a unit while a cost of 8 waits for 8 of 5 tokens")
		}
		if d := lim.Take(1); d.Allowed || d.RetryAfter != 4*time.Second || d.Remaining != 0 {
			t.Errorf("Take(1) behind a waiter: %+v, want to come back in 4s", d)
		}
		time.Sleep(4 * time.Second)
		if d := lim.Take(1); !d.Allowed {
			t.Errorf("Take(1) after its RetryAfter: %+v", d)
		}
	})
}

func TestARefusedWaitAllocatesItsErrorAlone(t *testing.T) {
	limit := weir.TokenBucket{Rate: weir.Per(1, time.Hour), Burst: 1}
	lim, keyed := mustNew(t, limit), mustKeyed[string](t, limit)
	lim.Allow()
	keyed.Allow("a")
	for name, wait := range map[string]func() error{
		"Limiter": func() error { return lim.WaitMax(t.Context(), 1, time.Minute) },
		"Keyed":   func() error { return keyed.WaitMax(t.Context(), "a", 1, time.Minute) },
	} {
		var refused *weir.WaitError
		if err := wait(); !errors.As(err, &refused) || refused.Need <= time.Minute || refused.Need > time.Hour || refused.Bound != time.Minute {
			t.Errorf("%s: got %v, want a wait of an hour above the bound of a minute", name, err)
		}
		if n := testing.AllocsPerRun(100, func() { _ = wait() }); n > 1 {
			t.Errorf("%s: a refused wait makes %v allocations, want 1", name, n)
		}
	}
}

// moved is units that went ahead at an instant.
type moved struct{ at, n int64 }

// No schedule of arrivals, cancels and attempts breaks the bounds of a limit, measured at the instants at which
// callers really go ahead.
func TestNoScheduleOfWaitersBreaksABound(t *testing.T) {
	for name, family := range slowFamilies {
		bound := bounds[name]
		if bound == nil {
			continue // a leaky bucket bounds the delay, not a count
		}
		t.Run(name, func(t *testing.T) {
			for seed := range randtest.Seeds(t, 40, 4) {
				r := rand.New(rand.NewPCG(seed, 3))
				limit, unit := family.draw(r)
				events := slices.DeleteFunc(schedule(r, family, limit, unit), func(e event) bool {
					return e.verb != "arrive" && e.verb != "cancel" && e.verb != "allow"
				})
				synctest.Test(t, func(t *testing.T) {
					time.Sleep(time.Duration(seed % 1e12))
					start := time.Now().UnixNano()
					went := playOnLimiter(t, limit, events).moved
					for i := range went {
						went[i].at += start
					}
					slices.SortStableFunc(went, func(a, b moved) int { return cmp.Compare(a.at, b.at) })
					checkBound(t, limit, went, bound, seed)
				})
			}
		})
	}
}

// A bound reports whether a number of units may be released in [from, to], where both are the instants of releases.
var bounds = map[string]func(l weir.Limit, from, to, units int64) bool{
	"TokenBucket": func(l weir.Limit, from, to, units int64) bool {
		b := l.(weir.TokenBucket) // a release is rounded up by less than 1 ns
		most := sum(whole(b.Burst), times(whole(to-from+1), perNano(b.Rate)))
		return whole(units).Cmp(most) <= 0
	},
	"SlidingLog":    inAnyPeriod,
	"RateGate":      inAnyPeriod,
	"FixedWindow":   perWindow,
	"SlidingWindow": perWindow,
	"Cycle":         perWindow,
}

func inAnyPeriod(l weir.Limit, from, to, units int64) bool {
	return to-from >= int64(periodOf(l)) || units <= rateOf(l).Count
}

func perWindow(l weir.Limit, from, to, units int64) bool {
	return from/int64(periodOf(l)) != to/int64(periodOf(l)) || units <= rateOf(l).Count
}

func checkBound(t *testing.T, limit weir.Limit, went []moved, holds func(l weir.Limit, from, to, units int64) bool, seed uint64) {
	t.Helper()
	for i := range went {
		var units int64
		for _, m := range went[i:] {
			units += m.n
			if !holds(limit, went[i].at, m.at, units) {
				t.Fatalf("%v: %d units went within %v", limit, units, time.Duration(m.at-went[i].at))
			}
		}
	}
}

// A line that has just run dry may be kept for callers that come straight back. Units recorded or booked meanwhile
// count for the bounds of later waits.
func TestBoundOfAWaitCountsWhatCameAfterALateTimer(t *testing.T) {
	for name, use := range map[string]func(*weir.Limiter){
		"record":  func(l *weir.Limiter) { l.Record(10) },
		"reserve": func(l *weir.Limiter) { _, _ = l.Reserve(10, weir.Never) },
	} {
		synctest.Test(t, func(t *testing.T) {
			var skew atomic.Int64
			clock := func() int64 { return time.Now().UnixNano() + skew.Load() }
			lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(10), Burst: 10}, weir.Options{Clock: clock})
			lim.AllowN(10)
			go lim.WaitN(t.Context(), 1)
			synctest.Wait()
			lim.Take(1) // asks for the plan of the line
			time.Sleep(50 * time.Millisecond)
			skew.Store(int64(time.Millisecond)) // the timer is late by that
			time.Sleep(50 * time.Millisecond)
			synctest.Wait()
			use(lim)
			start := time.Now()
			if err := lim.WaitMax(t.Context(), 1, 500*time.Millisecond); !errors.Is(err, weir.ErrWait) || time.Since(start) != 0 {
				t.Errorf("%s: WaitMax of 500ms: %v after %v, want ErrWait at once", name, err, time.Since(start))
			}
		})
	}
}

// closable is what a Limiter and a key of a Keyed have in common here.
type closable struct {
	pacer
	allow   func() bool
	reserve func(n int64, longest time.Duration) (*weir.Reservation, error)
	set     func(weir.Limit) error
	close   func()
}

func closables(t *testing.T, limit weir.Limit, options weir.Options) map[string]closable {
	lim := mustNew(t, limit, options)
	keyed := func(options weir.Options) closable {
		k, err := weir.NewKeyedWith[int](limit, options)
		if err != nil {
			t.Fatal(err)
		}
		if options.MaxKeys > 0 {
			fill(k)
		}
		return closable{k.For(0), func() bool { return k.Allow(0) },
			func(n int64, longest time.Duration) (*weir.Reservation, error) { return k.Reserve(0, n, longest) }, k.SetLimit, k.Close}
	}
	full := options
	full.MaxKeys = 1
	return map[string]closable{
		"Limiter":            {lim, lim.Allow, lim.Reserve, lim.SetLimit, lim.Close},
		"Keyed":              keyed(options),
		"Keyed without room": keyed(full),
	}
}

// fill takes the only room of k for longer than a test, and a unit of every group that keys without room share.
func fill(k *weir.Keyed[int]) {
	key := 0
	for k.Len() == 0 {
		key++
		k.AllowN(key, 1)
	}
	k.Record(key, 1000)
	for range 3000 {
		key++
		k.AllowN(key, 1)
	}
}

func TestCloseKeepsReservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range closables(t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1}, weir.Options{}) {
			for c.allow() {
			}
			waiting := make(chan error, 1)
			go func() { waiting <- c.WaitTurn(t.Context(), weir.Turn{Cost: 1}) }()
			synctest.Wait()
			used := 1
			for range 5 {
				if b, err := c.reserve(1, weir.Never); err != nil || !b.Decision.Allowed {
					t.Fatalf("%s: booking behind a waiter: %+v and %v", name, b.Decision, err)
				}
				used++
			}
			c.close()
			if err := <-waiting; !errors.Is(err, weir.ErrClosed) {
				t.Errorf("%s: the waiter got %v, want ErrClosed", name, err)
			}
			for range 8 {
				time.Sleep(time.Second)
				if c.allow() {
					used++
				}
			}
			// The instant of the dismissed waiter stays unused.
			if used != 8 {
				t.Errorf("%s: %d units in 8s, 5 of them booked before the close; want 8 of the 9 that the limit grants", name, used)
			}
		}
	})
}

// The unit comes back whatever happens between the turn and the end of the jitter, and wherever the state is.
func TestAWaitCancelledDuringItsJitterGivesTheUnitBack(t *testing.T) {
	fast, slow := weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1}, weir.TokenBucket{Rate: weir.PerHour(1), Burst: 1}
	for between, do := range map[string]func(c closable){
		"nothing":   func(closable) {},
		"Allow":     func(c closable) { c.allow() },
		"Record":    func(c closable) { c.Return(0) },
		"SetLimit":  func(c closable) { _ = c.set(slow) },
		"a booking": func(c closable) { b, _ := c.reserve(1, 0); b.Cancel(t.Context()) },
	} {
		synctest.Test(t, func(t *testing.T) {
			for name, c := range closables(t, fast, weir.Options{Jitter: time.Hour}) {
				for c.allow() {
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- c.WaitTurn(ctx, weir.Turn{Cost: 1}) }()
				time.Sleep(time.Second) // the turn has come, and the jitter begins
				synctest.Wait()
				do(c)
				if c.allow() {
					t.Errorf("%s, %s: the unit of the waiter was given to somebody else", name, between)
				}
				cancel()
				if err := <-done; !errors.Is(err, context.Canceled) {
					t.Errorf("%s, %s: the waiter got %v, want context.Canceled", name, between, err)
				}
				if !c.allow() {
					t.Errorf("%s, %s: the unit did not come back", name, between)
				}
			}
		})
	}
}

func TestARefusedOrNilBookingCanBeCancelled(t *testing.T) {
	invalid, err := weir.NewKeyedFunc(func(string) weir.Limit { return weir.TokenBucket{} }, weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	refused, err := invalid.Reserve("k", 1, 0)
	if !errors.Is(err, weir.ErrLimit) || refused == nil || refused.Decision.Allowed {
		t.Errorf("Reserve of a key with an invalid limit: %+v and %v, want a refused booking and ErrLimit", refused, err)
	}
	for _, b := range []*weir.Reservation{refused, nil, {}} {
		b.Cancel(t.Context())
		if err := b.Settle(t.Context(), 1); err != nil {
			t.Errorf("Settle of a refused booking: %v", err)
		}
	}
}

func TestABookingWhoseKeyHasNoLimitCanBeCancelledLater(t *testing.T) {
	var invalid atomic.Bool
	k, err := weir.NewKeyedFunc(func(string) weir.Limit {
		if invalid.Load() {
			return weir.TokenBucket{}
		}
		return weir.TokenBucket{Rate: weir.PerDay(1)}
	}, weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := k.Reserve("k", 1, 0)
	if err != nil || !b.Decision.Allowed {
		t.Fatalf("Reserve: %+v and %v", b, err)
	}
	invalid.Store(true)
	if err := b.Settle(t.Context(), 0); !errors.Is(err, weir.ErrLimit) {
		t.Errorf("Settle while the limit is invalid: %v, want ErrLimit", err)
	}
	invalid.Store(false)
	if err := b.Settle(t.Context(), 0); err != nil || !k.Allow("k") {
		t.Errorf("Settle when it is valid again: %v, want the unit back", err)
	}
}

func TestKeysThatEqualNothingAreRefused(t *testing.T) {
	type pair struct {
		name string
		at   float64
	}
	k := mustKeyed[any](t, weir.TokenBucket{Rate: weir.PerDay(1)})
	k.Allow("begun")
	for _, key := range []any{math.NaN(), pair{"a", math.NaN()}, [1]float64{math.NaN()}} {
		_, reserved := k.Reserve(key, 1, 0)
		for verb, err := range map[string]error{"Wait": k.Wait(t.Context(), key), "Reserve": reserved} {
			if !errors.Is(err, weir.ErrRequest) {
				t.Errorf("%s of %v: %v, want a RequestError", verb, key, err)
			}
		}
		for verb, d := range map[string]weir.Decision{"Take": k.Take(key, 1), "Peek": k.Peek(key, 1), "Record": k.Record(key, 1)} {
			if d.Allowed || d.Limit != 0 || d.RetryAfter != weir.Never {
				t.Errorf("%s of %v: %+v, want a refusal that is final", verb, key, d)
			}
		}
		if k.Allow(key) {
			t.Errorf("Allow of %v: true", key)
		}
		k.Reset(key)
	}
	if n := k.Len(); n != 1 {
		t.Errorf("%d keys remembered, want the one that is equal to itself", n)
	}
}

func TestAKeyWithWaitingCallersIsCountedOnce(t *testing.T) {
	for _, limit := range []weir.Limit{weir.TokenBucket{Rate: weir.PerHour(1), Burst: 1}, weir.RateGate{Rate: weir.PerHour(1)}} {
		synctest.Test(t, func(t *testing.T) {
			k := mustKeyed[int](t, limit)
			for key := range 3 {
				k.Allow(key)
				go k.Wait(t.Context(), key)
				go k.Wait(t.Context(), key)
			}
			k.Allow(3)
			synctest.Wait()
			if n := k.Len(); n != 4 {
				t.Errorf("%v: Len is %d with 4 keys, 3 of which have waiting callers", limit, n)
			}
			k.Close()
		})
	}
}

func TestWaitingStartsNoGoroutine(t *testing.T) {
	lim := mustNew(t, weir.TokenBucket{Rate: weir.PerHour(1), Burst: 1})
	lim.Allow()
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() { lim.Wait(ctx) })
	}
	for lim.WaitStats().Waiting < 100 {
		runtime.Gosched()
	}
	if now := runtime.NumGoroutine(); now > before+100 {
		t.Errorf("%d goroutines for 100 waiting callers", now-before)
	}
	cancel()
	all.Wait()
	if !soon(func() bool { return runtime.NumGoroutine() <= before }) {
		t.Errorf("%d goroutines left when all had gone", runtime.NumGoroutine()-before)
	}
}

// soon reports whether something comes true in time, with enough time for a busy machine.
func soon(come func() bool) bool {
	for start := time.Now(); time.Since(start) < 30*time.Second; runtime.Gosched() {
		if come() {
			return true
		}
	}
	return false
}

// A set timer keeps its function alive. An unreferenced limiter is collected, so no timer of it is left.
func TestNoTimerIsLeftAfterTheLastWaiter(t *testing.T) {
	for name, leave := range map[string]func(lim *weir.Limiter, cancel context.CancelFunc){
		"cancelled": func(_ *weir.Limiter, cancel context.CancelFunc) { cancel() },
		"closed":    func(lim *weir.Limiter, _ context.CancelFunc) { lim.Close() },
		"reset":     func(lim *weir.Limiter, _ context.CancelFunc) { lim.Reset() },
	} {
		var collected atomic.Bool
		func() {
			lim := mustNew(t, weir.TokenBucket{Rate: weir.PerHour(1), Burst: 1})
			runtime.AddCleanup(lim, func(c *atomic.Bool) { c.Store(true) }, &collected)
			lim.Allow()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var waiter sync.WaitGroup
			waiter.Go(func() { lim.Wait(ctx) })
			for lim.WaitStats().Waiting == 0 {
				runtime.Gosched()
			}
			runtime.GC()
			if collected.Load() {
				t.Fatalf("%s: collected while someone waits", name)
			}
			leave(lim, cancel)
			waiter.Wait()
		}()
		// Cleanups run on their own, after a collection.
		if !soon(func() bool { runtime.GC(); return collected.Load() }) {
			t.Errorf("%s: something still refers to the limiter: a timer is left", name)
		}
	}
}

func TestWaitThatNeedNotBlockAllocatesNothing(t *testing.T) {
	lim := mustNew(t, weir.TokenBucket{Rate: weir.PerSecond(1_000_000), Burst: 1 << 40})
	gate := mustNew(t, weir.FixedWindow{Rate: weir.PerDay(1 << 40)})
	keyed := mustKeyed[int](t, weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1 << 40})
	keyed.Allow(7)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for name, wait := range map[string]func() error{
		"Limiter":         func() error { return lim.Wait(ctx) },
		"Limiter WaitMax": func() error { return lim.WaitMax(ctx, 3, time.Second) },
		"FixedWindow":     func() error { return gate.Wait(ctx) },
		"Keyed":           func() error { return keyed.Wait(ctx, 7) },
	} {
		allocs := testing.AllocsPerRun(1000, func() {
			if err := wait(); err != nil {
				t.Fatal(name, err)
			}
		})
		if allocs != 0 {
			t.Errorf("%s: a wait that need not block allocates %v times", name, allocs)
		}
	}
}

// leaving is a context that ends right after the wait has begun.
type leaving struct {
	context.Context
	ended chan struct{}
	err   error
}

func newLeaving(ctx context.Context) *leaving {
	l := &leaving{Context: ctx, ended: make(chan struct{})}
	close(l.ended)
	return l
}

func (l *leaving) Done() <-chan struct{} { return l.ended }

// Err is nil at the first call, when the wait begins.
func (l *leaving) Err() (err error) {
	err, l.err = l.err, context.Canceled
	return err
}

// joinsAndLeaves returns waits that join an empty line and leave it.
func joinsAndLeaves(t testing.TB) map[string]func() error {
	limit := weir.TokenBucket{Rate: weir.PerHour(1), Burst: 1}
	lim, keyed := mustNew(t, limit), mustKeyed[int](t, limit)
	lim.Allow()
	keyed.Allow(7)
	ctx := newLeaving(context.Background())
	return map[string]func() error{
		"Limiter": func() error { ctx.err = nil; return lim.Wait(ctx) },
		"Keyed":   func() error { ctx.err = nil; return keyed.Wait(ctx, 7) },
	}
}

// The objects are the line, its timer and the timer's function, the waiter and its channel, and the error.
func TestACallerThatJoinsAnEmptyLineAndLeavesMakesSixObjects(t *testing.T) {
	for name, wait := range joinsAndLeaves(t) {
		if err := wait(); !errors.Is(err, context.Canceled) || err.Error() != "weir: wait: context canceled" {
			t.Fatalf("%s: got %v, want the error of the context", name, err)
		}
		if n := testing.AllocsPerRun(1000, func() { _ = wait() }); n > 6 {
			t.Errorf("%s: a caller that joins an empty line and leaves makes %v objects, want 6", name, n)
		}
	}
}
