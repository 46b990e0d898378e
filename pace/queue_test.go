package pace_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/layertest"
	"github.com/weirflow/weir/pace"
)

// counted is an engine that counts the calls that take, and fails while broken.
type counted struct {
	weir.Engine
	calls  atomic.Int64
	broken atomic.Bool
}

var errBroken = errors.New("the engine is broken")

func newCounted(engine weir.Engine) *counted {
	e := &counted{}
	e.Engine = weir.Kit.EngineOf(func(ctx context.Context, c weir.Call) (weir.Answer, error) {
		if c.Op == weir.OpEach && c.Each.Calls[0].Op == weir.OpReserveAhead {
			return weir.Answer{}, weir.Kit.Unsupported(weir.OpReserveAhead, "is not made by this engine")
		}
		if c.Op == weir.OpTake || c.Op == weir.OpEach {
			e.calls.Add(1)
			if e.broken.Load() {
				return weir.Answer{}, errBroken
			}
		}
		return engine.Do(ctx, c)
	}, engine.Check)
	return e
}

func newQueue(t *testing.T, options pace.QueueOptions) (*pace.Queue, *counted) {
	t.Helper()
	engine := newCounted(mustMemory(t))
	q, err := pace.NewQueue(layertest.Around(engine), options)
	if err != nil {
		t.Fatal(err)
	}
	return q, engine
}

func mustMemory(t *testing.T) *weir.Memory {
	t.Helper()
	return weir.NewMemory(weir.MemoryOptions{})
}

func rule(t *testing.T, name, limits string) *weir.Rule {
	t.Helper()
	r, err := weir.ParseRule(name + "=" + limits)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// arrive starts n waiting callers, one after the other, and returns the instants at which they went, by caller.
func arrive(ctx context.Context, t *testing.T, q *pace.Queue, n int, requests func(i int) []weir.Request) func() []time.Duration {
	t.Helper()
	start, went := time.Now(), make([]time.Duration, n)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			if _, err := q.Wait(ctx, requests(i)...); err != nil {
				t.Errorf("caller %d: %v", i, err)
			}
			went[i] = time.Since(start)
		})
		synctest.Wait()
	}
	return func() []time.Duration { group.Wait(); return went }
}

func TestCallersOfAQueueGoInOrderOfArrivalAtTheEarliestInstants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, engine := newQueue(t, pace.QueueOptions{})
		vendor := rule(t, "vendor", "token bucket 10/s burst 3")
		went := arrive(t.Context(), t, q, 103, func(int) []weir.Request { return []weir.Request{vendor.For("k", 1)} })()
		for i, at := range went {
			if want := time.Duration(max(0, i-2)) * time.Second / 10; at != want {
				t.Errorf("caller %d went after %v, want %v", i, at, want)
			}
		}
		if calls := engine.calls.Load(); calls > 2*103 {
			t.Errorf("%d calls for 103 grants, want at most 2 a grant", calls)
		}
		if n := q.Waiting(); n != 0 {
			t.Errorf("%d callers wait at the end", n)
		}
	})
}

func TestOneCallGrantsAllThatFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, engine := newQueue(t, pace.QueueOptions{})
		quota := rule(t, "quota", "fixed window 100/1s")
		went := arrive(t.Context(), t, q, 300, func(int) []weir.Request { return []weir.Request{quota.For("k", 1)} })()
		for i, at := range went {
			if want := went[i/100*100]; at != want {
				t.Errorf("caller %d went after %v, want %v like the first of its window", i, at, want)
			}
		}
		if calls := engine.calls.Load(); calls > 110 {
			t.Errorf("%d calls, want the 100 of the first window and a few", calls)
		}
	})
}

func TestCallersWithSeveralKeysTakeThemAtOneInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t, pace.QueueOptions{})
		host, total := rule(t, "host", "rate gate 1/s"), rule(t, "total", "token bucket 5/s burst 1")
		went := arrive(t.Context(), t, q, 60, func(i int) []weir.Request {
			return []weir.Request{host.For(fmt.Sprint(i%3), 1), total.For("", 1)}
		})()
		for h := range 3 {
			var last time.Duration = -time.Second
			for i := h; i < len(went); i += 3 {
				if went[i]-last < time.Second {
					t.Errorf("host %d went at %v and %v", h, last, went[i])
				}
				last = went[i]
			}
		}
		if all := slices.Max(went); all > 22*time.Second {
			t.Errorf("60 requests to 3 hosts took %v, want about 20 s", all)
		}
	})
}

func TestACallerThatLeavesTakesNothingAndOthersMoveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t, pace.QueueOptions{})
		vendor := rule(t, "vendor", "token bucket 1/s burst 1")
		start := time.Now()
		var went sync.Map
		var group sync.WaitGroup
		cancels := make([]context.CancelFunc, 6)
		for i := range 6 {
			ctx, cancel := context.WithCancel(t.Context())
			cancels[i] = cancel
			defer cancel()
			group.Go(func() {
				if _, err := q.Wait(ctx, vendor.For("k", 1)); err == nil {
					went.Store(i, time.Since(start))
				} else if !errors.Is(err, context.Canceled) {
					t.Errorf("caller %d: %v", i, err)
				}
			})
			synctest.Wait()
		}
		time.Sleep(time.Second / 2)
		cancels[1]() // asks the engine
		cancels[3]() // in the middle
		group.Wait()
		for i, want := range []time.Duration{0, -1, time.Second, -1, 2 * time.Second, 3 * time.Second} {
			if at, ok := went.Load(i); ok != (want >= 0) || ok && at != want {
				t.Errorf("caller %d went after %v, want %v", i, at, want)
			}
		}
	})
}

func TestAWaitThatCannotSucceedIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t, pace.QueueOptions{Queue: 2})
		vendor := rule(t, "vendor", "token bucket 1/s burst 1")
		soon, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if _, err := q.Wait(t.Context(), vendor.For("k", 1)); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		var cost *weir.CostError
		if _, err := q.Wait(t.Context(), vendor.For("k", 2)); !errors.As(err, &cost) || *cost != (weir.CostError{Cost: 2, Capacity: 1}) {
			t.Errorf("a cost above the capacity: %v", err)
		}
		_, alone := q.Wait(soon, vendor.For("k", 1))
		go q.Wait(t.Context(), vendor.For("k", 1))
		synctest.Wait()
		_, behind := q.Wait(soon, vendor.For("k", 1))
		for _, err := range []error{alone, behind} {
			if !errors.Is(err, weir.ErrWait) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a deadline before the turn: %v", err)
			}
		}
		go q.Wait(t.Context(), vendor.For("k", 1))
		synctest.Wait()
		if _, err := q.Wait(t.Context(), vendor.For("k", 1)); !errors.Is(err, weir.ErrQueueFull) {
			t.Errorf("a full queue: %v", err)
		}
		if _, err := q.Wait(t.Context(), weir.Request{}); err == nil {
			t.Error("a request without a rule was admitted")
		}
		if time.Since(start) != 0 {
			t.Errorf("the refusals took %v", time.Since(start))
		}
		time.Sleep(3 * time.Second) // those that wait go
	})
}

func TestAReleasedSlotGoesToTheCallerThatHasWaitedLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t, pace.QueueOptions{})
		slots, rate := rule(t, "slots", "concurrency 2 lease 1h"), rule(t, "rate", "token bucket 100/s burst 100")
		start := time.Now()
		var order []int
		var mu sync.Mutex
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // before the lease ends
				defer cancel()
				a, err := q.Acquire(ctx, slots.For("k", 1), rate.For("k", 1))
				if err != nil {
					t.Errorf("caller %d: %v", i, err)
					return
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				time.Sleep(time.Duration(1000+i) * time.Millisecond)
				if err := a.Done(ctx); err != nil {
					t.Errorf("caller %d: %v", i, err)
				}
			})
			synctest.Wait()
		}
		group.Wait()
		for at, i := range order { // two may have theirs at the same time
			if i/2 != at/2 {
				t.Errorf("the callers had slots in the order %v", order)
			}
		}
		if took := time.Since(start); took > 5*time.Second || len(order) != 8 { // without signals a process leaves slots to others for 200 ms
			t.Errorf("8 jobs of a second, 2 at once, took %v", took)
		}
	})
}

// Without a lease, the engine can name no instant at which a slot comes back.
func TestASlotWithoutALeaseIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue(t, pace.QueueOptions{})
		slots := rule(t, "slots", "concurrency 2")
		began := time.Now()
		var group sync.WaitGroup
		for range 6 {
			group.Go(func() {
				a, err := q.Acquire(t.Context(), slots.For("k", 1))
				if err != nil {
					t.Errorf("a wait for a slot: %v", err)
					return
				}
				time.Sleep(time.Second)
				if err := a.Done(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if took := time.Since(began); took < 3*time.Second || took > 3700*time.Millisecond {
			t.Errorf("6 jobs of a second with 2 slots took %v, want 3 s, and 200 ms twice for others", took)
		}
		var never *weir.CostError
		if _, err := q.Acquire(t.Context(), slots.For("k", 3)); !errors.As(err, &never) {
			t.Errorf("3 of 2 slots: %v, want a cost that can never fit", err)
		}
	})
}

func TestADelayOfALeakyBucketIsWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, engine := newQueue(t, pace.QueueOptions{})
		leaky := rule(t, "leaky", "leaky bucket 1/s queue 2")
		for _, call := range []struct {
			key     string
			allowed bool
			took    time.Duration
		}{{"k", true, 0}, {"k", true, time.Second}, {"k", true, 2 * time.Second}} {
			start := time.Now()
			_, err := q.Wait(t.Context(), leaky.For(call.key, 1))
			if err != nil || time.Since(start) > call.took {
				t.Errorf("waited %v and %v, want at most %v", time.Since(start), err, call.took)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		start := time.Now()
		before, _ := engine.Peek(t.Context(), leaky.For("k", 0))
		_, err := q.Wait(ctx, leaky.For("k", 1))
		after, _ := engine.Peek(t.Context(), leaky.For("k", 0))
		if !errors.Is(err, weir.ErrWait) || time.Since(start) != 0 || before != after {
			t.Errorf("a delay beyond the deadline: %v after %v, and the key went from %v to %v", err, time.Since(start), before, after)
		}
	})
}

func TestAnErrorOfTheEngineEndsOneWaitOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, engine := newQueue(t, pace.QueueOptions{})
		vendor := rule(t, "vendor", "token bucket 1/s burst 1")
		if _, err := q.Wait(t.Context(), vendor.For("k", 1)); err != nil {
			t.Fatal(err)
		}
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := q.Wait(t.Context(), vendor.For("k", 1))
				errs <- err
			}()
			synctest.Wait()
		}
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
		engine.broken.Store(true)
		if err := <-errs; !errors.Is(err, errBroken) {
			t.Errorf("got %v, want the engine's error", err)
		}
		engine.broken.Store(false)
		if _, err := q.Wait(t.Context(), vendor.For("k", 1)); err != nil {
			t.Errorf("after the failure: %v", err)
		}
	})
}

// TestAQueueLosesNoUnits lets callers come and leave at random, and compares what they took with what the engine
// counted.
func TestAQueueLosesNoUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, engine := newQueue(t, pace.QueueOptions{})
		a, b := rule(t, "a", "fixed window 1000000/d"), rule(t, "b", "token bucket 500/s burst 7")
		var taken atomic.Int64
		var group sync.WaitGroup
		for i := range 2000 {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			group.Go(func() {
				time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				if random.IntN(2) == 0 {
					time.AfterFunc(time.Duration(random.Int64N(int64(3*time.Second))), cancel)
				}
				cost := 1 + random.Int64N(3)
				requests := []weir.Request{a.For("k", cost), b.For("k", cost)}
				if _, err := q.Wait(ctx, requests...); err == nil {
					taken.Add(cost)
				} else if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		group.Wait()
		d, err := engine.Peek(t.Context(), a.For("k", 0))
		if used := d.Limit - d.Remaining; err != nil || used != taken.Load() {
			t.Errorf("callers took %d units, the engine counts %d (%v)", taken.Load(), used, err)
		}
		if n := q.Waiting(); n != 0 {
			t.Errorf("%d callers wait at the end", n)
		}
	})
}

// The first caller asked for a cost that fits after half an hour, and left. The second waits for a slot, which may come
// back at any time.
func TestACallerIsNotRefusedForTheCostOfOneThatLeft(t *testing.T) {
	onBoth(t, func(t *testing.T, engine weir.Engine, _ func() int64) {
		q := mustQueue(t, engine)
		rate, slots := rule(t, "rate", "token bucket 100/h burst 100"), rule(t, "slots", "concurrency 1 lease 2h")
		if _, err := engine.Take(t.Context(), rate.For("k", 50)); err != nil {
			t.Fatal(err)
		}
		big, leave := context.WithCancel(t.Context())
		go q.Acquire(big, rate.For("k", 100), slots.For("k", 1))
		synctest.Wait()
		held, err := engine.Reserve(t.Context(), slots.For("k", 1))
		if err != nil {
			t.Fatal(err)
		}
		second, leaveToo := context.WithCancel(t.Context())
		go q.Acquire(second, rate.For("k", 1), slots.For("k", 1))
		synctest.Wait()
		leave()
		synctest.Wait()
		time.AfterFunc(1500*time.Millisecond, leaveToo)
		time.AfterFunc(1600*time.Millisecond, func() { _ = held.Done(t.Context()) })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := q.Acquire(ctx, rate.For("k", 1), slots.For("k", 1)); err != nil {
			t.Errorf("with 50 units there and a slot after a second: %v", err)
		}
	})
}

func TestACostOf0DoesNotWait(t *testing.T) {
	onBoth(t, func(t *testing.T, engine weir.Engine, _ func() int64) {
		q, err := pace.NewQueue(layertest.Around(engine), pace.QueueOptions{Queue: 1})
		if err != nil {
			t.Fatal(err)
		}
		vendor, slots := rule(t, "vendor", "token bucket 1/h burst 1"), rule(t, "slots", "concurrency 1")
		if _, err := q.Wait(t.Context(), vendor.For("k", 1)); err != nil {
			t.Fatal(err)
		}
		go q.Wait(t.Context(), vendor.For("k", 1))
		synctest.Wait()
		start := time.Now()
		d, err := q.Wait(t.Context(), vendor.For("k", 0))
		if err != nil || !d.Allowed || time.Since(start) != 0 {
			t.Errorf("a cost of 0 behind a waiting caller: %+v, %v after %v", d, err, time.Since(start))
		}
		if a, err := q.Acquire(t.Context(), vendor.For("k", 0), slots.For("k", 0)); err != nil || !a.Decision.Allowed {
			t.Errorf("a reservation of 0: %v", err)
		}
	})
}

// A caller of host b does not wait for the 200 callers of host a, which use a tenth of the total.
func TestACallerIsNotRefusedForOnesThatGoLater(t *testing.T) {
	onBoth(t, func(t *testing.T, engine weir.Engine, _ func() int64) {
		q := mustQueue(t, engine)
		host, total := rule(t, "host", "rate gate 1/s"), rule(t, "total", "token bucket 10/s burst 1")
		for range 200 {
			go q.Wait(t.Context(), host.For("a", 1), total.For("", 1))
		}
		time.Sleep(time.Second / 2)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := q.Wait(ctx, host.For("b", 1), total.For("", 1)); err != nil || time.Since(start) != 0 {
			t.Errorf("the caller of host b: %v after %v, want its turn at once", err, time.Since(start))
		}
		_, err := q.Wait(ctx, host.For("a", 1), total.For("", 1))
		if _, memory := engine.(*weir.Memory); memory && (!errors.Is(err, weir.ErrWait) || time.Since(start) != 0) {
			t.Errorf("one more caller of host a: %v after %v, want a refusal at once", err, time.Since(start))
		}
	})
}

func TestAQueueNeverHoldsMoreCallersThanItsBound(t *testing.T) {
	onBoth(t, func(t *testing.T, engine weir.Engine, _ func() int64) {
		vendor := rule(t, "vendor", "rate gate 1/h")
		if _, err := engine.Take(t.Context(), vendor.For("k", 1)); err != nil {
			t.Fatal(err)
		}
		for range 300 {
			q, err := pace.NewQueue(layertest.Around(engine), pace.QueueOptions{Queue: 4})
			if err != nil {
				t.Fatal(err)
			}
			ctx, leave := context.WithCancel(t.Context())
			begin := make(chan struct{})
			for range 64 { // at once
				go func() {
					<-begin
					_, _ = q.Wait(ctx, vendor.For("k", 1))
				}()
			}
			close(begin)
			synctest.Wait()
			if n := q.Waiting(); n != 4 {
				t.Errorf("%d callers wait, want the bound of 4", n)
			}
			leave()
			synctest.Wait()
		}
	})
}

// An engine that refuses one caller and then admits a younger one, because units came free meanwhile, has admitted the older one.
func TestOfCallersThatAskTogetherTheOldestGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vendor := rule(t, "vendor", "fixed window 10/1s")
		var trips atomic.Int64
		var went [2]atomic.Int64 // after how many of them each caller went
		engine := weir.Kit.EngineOf(func(_ context.Context, c weir.Call) (weir.Answer, error) {
			trip := trips.Add(1)
			for i, q := range c.Each.Calls {
				d := weir.Decision{Allowed: trip > 2 || trip == 2 && i > 0, Rule: "vendor", Key: "k", Limit: 10}
				if !d.Allowed {
					d.RetryAfter = 10 * time.Millisecond
				}
				c.Each.Results[i] = weir.Result{Decision: d, Taken: q.Taken}
			}
			return weir.Answer{}, nil
		}, nil)
		q, err := pace.NewQueue(engine, pace.QueueOptions{NoBooking: true})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			go func() {
				if _, err := q.Wait(t.Context(), vendor.For("k", 1)); err != nil {
					t.Error(err)
				}
				went[i].Store(trips.Load())
			}()
			synctest.Wait()
		}
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		if older, younger := went[0].Load(), went[1].Load(); older != 2 || younger != 0 {
			t.Errorf("the older one went after %d questions, the younger after %d; want 2, and not yet", older, younger)
		}
		time.Sleep(time.Second)
	})
}
