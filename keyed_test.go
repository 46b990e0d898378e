package weir_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/randtest"
)

func mustKeyed[K comparable](t testing.TB, limit weir.Limit, options ...weir.Options) *weir.Keyed[K] {
	t.Helper()
	k, err := weir.NewKeyedWith[K](limit, append(options, weir.Options{})[0])
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestKeysAreLimitedApart(t *testing.T) {
	k := mustKeyed[netip.Addr](t, weir.FixedWindow{Rate: weir.PerDay(2)})
	at := time.Unix(1700000000, 0)
	for i := range 10 {
		addr := netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
		for n := range 3 {
			if got := k.AllowAt(at, addr, 1); got != (n < 2) {
				t.Errorf("%v, attempt %d: %v", addr, n, got)
			}
		}
	}
}

func TestKeyedDecisionAllocatesNothingForKnownKeys(t *testing.T) {
	type tenant struct {
		org  uint64
		plan [2]byte
	}
	k := mustKeyed[tenant](t, weir.TokenBucket{Rate: weir.PerSecond(1000)})
	key := tenant{org: 7, plan: [2]byte{1}}
	k.Allow(key)
	if allocs := testing.AllocsPerRun(1000, func() { k.Allow(key) }); allocs != 0 {
		t.Errorf("Allow allocates %v times", allocs)
	}
	if allocs := testing.AllocsPerRun(1000, func() { k.Take(key, 1) }); allocs != 0 {
		t.Errorf("Take allocates %v times", allocs)
	}
}

func TestIdleKeysAreEvicted(t *testing.T) {
	k := mustKeyed[int](t, weir.TokenBucket{Rate: weir.PerSecond(1)})
	at := time.Unix(1700000000, 0)
	for i := range 60_000 {
		k.AllowAt(at.Add(time.Duration(i)*time.Millisecond), i, 1)
	}
	if n := k.Len(); n > 20_000 {
		t.Errorf("%d keys remembered where about 1000 are not idle", n)
	}
}

func TestPlanOfAKeyChangesLiveAndReschedulesWaitingCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var perSecond atomic.Int64
		perSecond.Store(1)
		k, err := weir.NewKeyedFunc(func(string) weir.Limit {
			return weir.TokenBucket{Rate: weir.PerSecond(perSecond.Load()), Burst: 1}
		}, weir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		k.Allow("acme")
		start := time.Now()
		released := make(chan time.Duration, 1)
		go func() {
			if err := k.Wait(t.Context(), "acme"); err != nil {
				t.Error(err)
			}
			released <- time.Since(start)
		}()
		time.Sleep(500 * time.Millisecond)
		perSecond.Store(10)
		k.Refresh()
		if at := <-released; at != 550*time.Millisecond {
			t.Errorf("released after %v, want 550ms: half a unit was missing when the rate rose to 10/s", at)
		}
		perSecond.Store(0)
		if err := k.Wait(t.Context(), "acme"); !errors.Is(err, weir.ErrLimit) || k.Allow("acme") {
			t.Errorf("a key with an invalid limit: %v, want ErrLimit and a refusal", err)
		}
	})
}

// cappedKeyed returns a Keyed of at most most keys whose clock stands at now.
func cappedKeyed(t *testing.T, limit weir.Limit, most int, now *int64) *weir.Keyed[int] {
	t.Helper()
	k, err := weir.NewKeyedWith[int](limit, weir.Options{MaxKeys: most, Clock: func() int64 { return *now }})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestInventedKeysShareBudgetsAtTheCapAndKnownOnesKeepTheirs(t *testing.T) {
	const most, capacity, flood = 640, 5, 20_000
	for _, limit := range []weir.Limit{
		weir.TokenBucket{Rate: weir.PerDay(capacity)},
		weir.FixedWindow{Rate: weir.Per(capacity, 30*24*time.Hour)},
		weir.SlidingLog{Rate: weir.PerDay(capacity)},
	} {
		now := int64(1_700_000_000_000_000_000)
		k := cappedKeyed(t, limit, most, &now)
		for known := range most / 4 {
			k.AllowN(-1-known, 2)
		}
		admitted := 0
		for key := range flood {
			if k.AllowN(key, capacity) {
				admitted += capacity
			}
			now += int64(time.Microsecond)
		}
		if bound := (most + 256) * capacity; admitted > bound || admitted < most/2*capacity {
			t.Errorf("%v: %d units went to %d invented keys, want at most %d and not much less", limit, admitted, flood, bound)
		}
		for known := range most / 4 {
			if got := k.Peek(-1-known, 1).Remaining; got != capacity-2 {
				t.Fatalf("%v: known key %d has %d left after the flood, want %d", limit, known, got, capacity-2)
			}
		}
		if n := k.Overflow(); n == 0 || n > flood {
			t.Errorf("%v: %d decisions on shared budgets, want most of %d", limit, n, flood)
		}
		if n := k.Len(); n > most+64 {
			t.Errorf("%v: %d keys remembered, want at most %d", limit, n, most)
		}
	}
}

func TestKeysWithoutRoomWaitAndBookOnTheBudgetTheyShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, err := weir.NewKeyedWith[int](weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1}, weir.Options{MaxKeys: 1})
		if err != nil {
			t.Fatal(err)
		}
		spendAll := func() { // every group, and the key that has room, has spent its unit
			for key := range 5000 {
				k.Allow(key)
			}
		}
		spendAll()
		start := time.Now()
		b, err := k.Reserve(5000, 1, weir.Never)
		if err != nil || b.Decision.Delay != time.Second {
			t.Fatalf("booking without room: %+v, %v; want a delay of 1s", b.Decision, err)
		}
		b.Cancel(t.Context())
		if again, _ := k.Reserve(5000, 1, weir.Never); again.Decision.Delay != time.Second {
			t.Errorf("after the booking was cancelled: %+v, want a delay of 1s again", again.Decision)
		}
		if err := k.Wait(t.Context(), 5000); err != nil || time.Since(start) != 2*time.Second {
			t.Errorf("waited %v with error %v, want 2s behind the booking", time.Since(start), err)
		}
		spendAll() // otherwise the key that has room is idle by now, and may give it up
		waiting := make(chan error)
		go func() { waiting <- k.WaitN(t.Context(), 5000, 1) }()
		synctest.Wait()
		k.Close()
		if err := <-waiting; !errors.Is(err, weir.ErrClosed) {
			t.Errorf("a caller without room at Close got %v, want ErrClosed", err)
		}
	})
}

// A caller waits for a state that its key shares for lack of room. SetLimit names a faster limit.
func TestSetLimitReschedulesCallersOfSharedStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, fast := weir.SlidingLog{Rate: weir.PerHour(1)}, weir.SlidingLog{Rate: weir.PerHour(1000)}
		k, err := weir.NewKeyedWith[int](slow, weir.Options{MaxKeys: 64})
		if err != nil {
			t.Fatal(err)
		}
		const flood = 5000
		for key := range flood {
			k.Allow(key)
		}
		start := time.Now()
		time.AfterFunc(time.Minute, func() {
			if err := k.SetLimit(fast); err != nil {
				t.Error(err)
			}
		})
		if err := k.Wait(t.Context(), flood); err != nil || time.Since(start) != time.Minute {
			t.Errorf("the caller went after %v (%v), want at the change after a minute", time.Since(start), err)
		}
	})
}

// A key with a log is no word, and so has no entry in the table that begins with the first bucket.
func TestABucketAfterALogAdmitsItsBurstOnce(t *testing.T) {
	log, bucket := weir.SlidingLog{Rate: weir.PerHour(3)}, weir.TokenBucket{Rate: weir.PerHour(5), Burst: 5}
	now := weir.Options{Clock: func() int64 { return 1_700_000_000_000_000_000 }}
	admitted := func(k *weir.Keyed[string]) (n int) {
		for range 20 {
			if k.Allow("a") {
				n++
			}
		}
		return n
	}
	check := func(name string, k *weir.Keyed[string]) {
		t.Helper()
		n := admitted(k)
		d := k.Peek("a", 1)
		if n += admitted(k); n != 5 || d.Remaining != 0 {
			t.Errorf("%s: %d units of a burst of 5 at one instant, and after the first calls %d left", name, n, d.Remaining)
		}
	}

	k, err := weir.NewKeyedWith[string](log, now)
	if err != nil {
		t.Fatal(err)
	}
	k.Allow("a")
	if err := k.SetLimit(bucket); err != nil {
		t.Fatal(err)
	}
	k.Allow("b") // begins the table
	check("SetLimit", k)

	plans := map[string]weir.Limit{"a": log, "b": bucket}
	if k, err = weir.NewKeyedFunc(func(key string) weir.Limit { return plans[key] }, now); err != nil {
		t.Fatal(err)
	}
	k.Allow("a")
	k.Allow("b")
	plans["a"] = bucket
	k.Refresh()
	check("a plan", k)
}

func TestNobodyOvertakesAfterAChangeOfKind(t *testing.T) {
	for _, c := range [][2]weir.Limit{
		{weir.SlidingLog{Rate: weir.PerHour(5)}, weir.TokenBucket{Rate: weir.PerHour(5), Burst: 5}},
		{weir.FixedWindow{Rate: weir.PerDay(5)}, weir.FixedWindow{Rate: weir.PerHour(5)}},
		{weir.TokenBucket{Rate: weir.PerHour(5)}, weir.SlidingWindow{Rate: weir.PerHour(5)}},
	} {
		synctest.Test(t, func(t *testing.T) {
			k, err := weir.NewKeyed[string](c[0])
			if err != nil {
				t.Fatal(err)
			}
			k.AllowN("a", 5)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for range 8 {
				go k.Wait(ctx, "a")
				synctest.Wait()
			}
			if err := k.SetLimit(c[1]); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if n := k.WaitStats().Waiting; n != 3 {
				t.Fatalf("%v to %v: %d of 8 callers wait, want 3: the new limit begins afresh", c[0], c[1], n)
			}
			k.Allow("b") // begins the new table
			if k.Allow("a") {
				t.Errorf("%v to %v: a caller overtook the waiting ones", c[0], c[1])
			}
		})
	}
}

// A settlement that read the limit before a change must not bring it back: nobody would schedule the waiting callers again.
func TestASettlementDoesNotBringBackTheLimitBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var plan weir.Limit = weir.SlidingLog{Rate: weir.PerHour(2)}
		change := func() {}
		k, err := weir.NewKeyedFunc(func(string) weir.Limit {
			before := plan
			change()
			return before
		}, weir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		booked, err := k.Reserve("a", 1, 0)
		if err != nil || !booked.Decision.Allowed {
			t.Fatal(booked.Decision, err)
		}
		k.Allow("a")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range 10 {
			go k.Wait(ctx, "a")
			synctest.Wait()
		}
		change = func() { // while the settlement reads the limit
			change = func() {}
			plan = weir.SlidingLog{Rate: weir.Per(2, 100*time.Millisecond)}
			k.Refresh()
		}
		booked.Settle(ctx, 1)
		time.Sleep(time.Second)
		synctest.Wait()
		if n := k.WaitStats().Waiting; n != 0 {
			t.Errorf("a second after a change to 2/100ms, %d of 10 callers wait", n)
		}
	})
}

// A state that is no word leaves an entry without words when it is evicted. Earlier times must not take it for a new key.
func TestAnEvictedKeyIsNotNewAtAnEarlierTime(t *testing.T) {
	const limit = 10_000_000 // more than a word counts
	first := time.Unix(1_700_000_000, 0)
	later, now := first.Add(time.Hour), first
	k, err := weir.NewKeyed[int](weir.SlidingWindow{Rate: weir.PerMinute(limit)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := weir.NewRule("r", weir.SlidingWindow{Rate: weir.PerMinute(limit)})
	if err != nil {
		t.Fatal(err)
	}
	m := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now.UnixNano() }})
	for name, take := range map[string]func(key int, n int64) bool{
		"Keyed": func(key int, n int64) bool { return k.AllowAt(now, key, n) },
		"Memory": func(key int, n int64) bool {
			d, err := m.Take(t.Context(), r.For(fmt.Sprint(key), n))
			return err == nil && d.Allowed
		},
	} {
		now = first
		for key := range 2000 {
			take(key, limit)
		}
		now = later
		for key := range 5000 {
			take(1_000_000+key, limit) // evicts
		}
		evicted, forgotten := 0, 0
		for key := range 2000 {
			now = first
			again := take(key, 1000)
			if now = later; again {
				evicted++
				if take(key, limit) {
					forgotten++
				}
			}
		}
		if evicted == 0 || forgotten > 0 {
			t.Errorf("%s: %d keys were evicted, of which %d admitted units at the earlier time beside the limit of the eviction's", name, evicted, forgotten)
		}
	}
}

// Keys never share slots without a lease: a key that has found room of its own by the time it gives its slot back
// would leave the shared slot taken. New keys are therefore refused while there is no room, and get slots when some
// come back.
func TestKeyedRefusesNewKeysWhereSlotsWithoutALeaseFillIt(t *testing.T) {
	now := time.Now().UnixNano()
	k, err := weir.NewKeyedWith[int](weir.Concurrency{Slots: 1}, weir.Options{MaxKeys: 128, Clock: func() int64 { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		var held []int
		for key := range 1000 {
			if k.Allow(key + 1000*round) {
				held = append(held, key+1000*round)
			}
		}
		if len(held) < 64 || len(held) > 128 || k.Overflow() != 0 {
			t.Fatalf("round %d: %d keys hold a slot and %d decisions were shared, want up to 128 and none", round, len(held), k.Overflow())
		}
		var without int
		for key := 1000 * round; ; key++ {
			if k.Peek(key, 1).Limit == 0 { // no real decision has this limit
				without = key
				break
			}
		}
		if err := k.Wait(t.Context(), without); !errors.Is(err, weir.ErrNoRoom) {
			t.Errorf("round %d: waiting without room: got %v, want ErrNoRoom", round, err)
		}
		if _, err := k.Reserve(without, 1, 0); !errors.Is(err, weir.ErrNoRoom) {
			t.Errorf("round %d: reserving without room: got %v, want ErrNoRoom", round, err)
		}
		for _, key := range held {
			k.Return(key, 1)
		}
		now += int64(time.Second)
	}
}

// TestKeyCost measures the memory of a gate per tenant and holds it to its bounds: go test -v -run
// TestKeyCost .
func TestKeyCost(t *testing.T) {
	for _, limit := range []weir.Limit{
		weir.TokenBucket{Rate: weir.PerSecond(1), Burst: 1},
		weir.RateGate{Rate: weir.PerSecond(1)},
	} {
		busy, waiting, further := costOfWaiting(t, limit)
		idle := costOfIdle(t, limit)
		t.Logf("%v: %d bytes for a busy key, %d with one waiting caller, %d for each further one; %d KiB after 200000 keys that are idle now",
			limit, busy, busy+waiting, further, idle>>10)
		if busy > 512 || busy+waiting > 1536 || further > 640 || idle > 2<<20 {
			t.Errorf("%v: more than 512, 1536 and 640 bytes, and 2048 KiB", limit)
		}
	}
}

// costOfWaiting returns the heap in bytes of a key that is not idle, and the heap added by a first and by a second
// waiting goroutine. Their stacks do not count.
func costOfWaiting(t *testing.T, limit weir.Limit) (busy, first, further int64) {
	const keys = 5000
	synctest.Test(t, func(t *testing.T) {
		// The runtime keeps the descriptors of ended goroutines. It allocates them before the count begins.
		for range 2 * keys {
			go time.Sleep(time.Nanosecond)
		}
		time.Sleep(time.Microsecond)
		k := mustKeyed[int](t, limit)
		ctx, cancel := context.WithCancel(t.Context())
		added := func(use func(key int)) int64 {
			before := heapInUse()
			for key := range keys {
				use(key)
			}
			synctest.Wait()
			return (heapInUse() - before) / keys
		}
		wait := func(key int) { go k.Wait(ctx, key) }
		busy = added(func(key int) { k.Allow(key) })
		first = added(wait)
		further = added(wait)
		cancel()
		runtime.KeepAlive(k)
	})
	return busy, first, further
}

// costOfIdle returns the heap after 200,000 keys that were used once each, of which about a thousand are busy at any
// time. All of them would take 25 MB or more.
func costOfIdle(t *testing.T, limit weir.Limit) int64 {
	k := mustKeyed[int](t, limit)
	at := time.Unix(1700000000, 0)
	before := heapInUse()
	for key := range 200_000 {
		k.AllowAt(at.Add(time.Duration(key)*time.Millisecond), key, 1)
	}
	after := heapInUse()
	runtime.KeepAlive(k)
	return after - before
}

// restlessLimits are limits whose idle keys differ from new ones.
var restlessLimits = []weir.Limit{
	weir.Bursty{Rate: weir.PerSecond(5), Over: 2 * time.Second},
	weir.WarmUp{Rate: weir.PerSecond(5), Over: 4 * time.Second},
	weir.Cycle{Rate: weir.PerSecond(5), FromFirstUse: true},
}

// model holds a Limiter for each key, made at the first use of the key.
type model struct {
	t     *testing.T
	limit weir.Limit
	keys  map[int]*weir.Limiter
}

func (m *model) of(at time.Time, key int) *weir.Limiter {
	lim, ok := m.keys[key]
	if !ok {
		var err error
		now := at.UnixNano()
		if lim, err = weir.NewWith(m.limit, weir.Options{Clock: func() int64 { return now }}); err != nil {
			m.t.Fatal(err)
		}
		m.keys[key] = lim
	}
	return lim
}

// Below MaxKeys no eviction changes an answer, however long keys are idle and however many others come.
func TestKeysOfRestlessLimitsAnswerAsLimitersOfTheirOwn(t *testing.T) {
	limits := append([]weir.Limit{weir.Bursty{Rate: weir.PerSecond(5)}}, restlessLimits...) // and one that stores nothing
	for _, limit := range limits {
		for seed := range randtest.Seeds(t, 4, 1) {
			random := rand.New(rand.NewPCG(seed, 0))
			k, m := mustKeyed[int](t, limit), &model{t, limit, map[int]*weir.Limiter{}}
			at, refused := time.Unix(1_700_000_000, 0), 0
			for step := range 30_000 {
				at = at.Add(time.Duration(random.Int64N(int64(4 * time.Millisecond))))
				key, n := random.IntN(100), 1+random.Int64N(5)
				switch random.IntN(3) {
				case 0:
					key = 100 + random.IntN(3000) // returns when it is idle
				case 1:
					key = 10_000 + step // once, so that sweeps come
				}
				var got, want weir.Decision
				verb := random.IntN(12)
				if m.keys[key] == nil {
					verb = 3 // the first use
				}
				switch verb {
				case 0:
					got, want = k.PeekAt(at, key, n), m.of(at, key).PeekAt(at, n)
				case 1:
					got, want = k.RecordAt(at, key, n), m.of(at, key).RecordAt(at, n)
				case 2:
					got, want = k.ReturnAt(at, key, n), m.of(at, key).ReturnAt(at, n)
				default:
					got, want = k.TakeAt(at, key, n), m.of(at, key).TakeAt(at, n)
				}
				if got != want {
					t.Fatalf("%v, seed %d, step %d, key %d: got %+v, want %+v", limit, seed, step, key, got, want)
				}
				if !got.Allowed {
					refused++
				}
			}
			if refused < 500 {
				t.Errorf("%v, seed %d: %d refused of 30000: it proves nothing", limit, seed, refused)
			}
		}
	}
}

func TestWarmUpKeysAreEvictedOnceTheyAreColdAndBurstyKeysStay(t *testing.T) {
	const keys = 30_000 // one each millisecond, in 30 s
	for i, limit := range restlessLimits {
		k := mustKeyed[int](t, limit)
		at := time.Unix(1_700_000_000, 0)
		for key := range keys {
			k.AllowAt(at.Add(time.Duration(key)*time.Millisecond), key, 1)
			k.PeekAt(at.Add(time.Duration(key)*time.Millisecond), -1-key, 1) // remembers nothing
			k.ReturnAt(at.Add(time.Duration(key)*time.Millisecond), -1-key, 1)
		}
		switch n := k.Len(); i {
		case 1: // a key is cold 0.8 s after one unit
			if n < 500 || n > 10_000 {
				t.Errorf("%v: %d keys remembered where about 800 are not cold", limit, n)
			}
		default:
			if n != keys {
				t.Errorf("%v: %d keys remembered, want all %d", limit, n, keys)
			}
		}
	}
}

// At MaxKeys a key that owes nothing makes room for another, and is admitted no more than if it had stayed. A key that
// owes stays.
func TestAtMaxKeysBurstyKeysRestartWithoutStoredPermits(t *testing.T) {
	const most = 64 * 8
	for _, limit := range []weir.Limit{restlessLimits[0], restlessLimits[2]} {
		now := int64(1_700_000_000_000_000_000)
		k := cappedKeyed(t, limit, most, &now)
		cycle := limit == restlessLimits[2]
		owes := int64(500) // of a bursty limit for 100 s
		if cycle {
			owes = 5
		}
		for key := range most {
			k.AllowN(key, owes)
		}
		now += int64(time.Millisecond)
		for key := range most {
			if k.Allow(key) {
				t.Fatalf("%v: key %d owes, and another unit is admitted", limit, key)
			}
		}
		for key := range 4 * most {
			k.Allow(most + key)
		}
		if k.Len() > most || k.Overflow() == 0 {
			t.Fatalf("%v: %d keys and %d decisions on shared states, want at most %d keys, and some", limit, k.Len(), k.Overflow(), most)
		}
		now += int64(150 * time.Second) // nothing is owed
		before := k.Overflow()
		for key := range most / 16 {
			now += int64(time.Millisecond)
			k.Allow(10*most + key)
		}
		if k.Overflow() > before+uint64(most)/32 {
			t.Errorf("%v: %d of %d new keys found no room where nobody owes", limit, k.Overflow()-before, most/16)
		}
		kept, restarted := 0, 0
		for key := range most {
			left := burst(k, key)
			switch {
			case cycle && left > 5 || left > 11:
				t.Fatalf("%v: key %d gets %d at once after 150 s, want what it stored at most", limit, key, left)
			case left == 11:
				kept++
			default:
				restarted++
			}
		}
		if !cycle && (kept < most/2 || restarted == 0) {
			t.Errorf("%v: %d keys kept their permits and %d restarted, want most kept, and some restarted", limit, kept, restarted)
		}
	}
}

// burst takes single units until one is refused.
func burst(k *weir.Keyed[int], key int) (n int) {
	for k.Allow(key) {
		n++
	}
	return n
}

// SetLimit leaves a key to its next decision, also one that a Reset has put back to its beginning.
func TestAKeyThatWasResetBeginsAtItsNextUse(t *testing.T) {
	now := int64(1_700_000_000_000_000_000)
	k := cappedKeyed(t, restlessLimits[0], 1000, &now)
	k.AllowN(1, 3)
	k.Reset(1)
	now += int64(time.Hour)
	if err := k.SetLimit(weir.Bursty{Rate: weir.PerSecond(1), Over: time.Minute}); err != nil {
		t.Fatal(err)
	}
	k.Peek(1, 0)
	now += int64(time.Hour)
	if got := burst(k, 1); got != 1 {
		t.Errorf("%d at once an hour after a reset, want 1: the key has not begun to store", got)
	}
}
