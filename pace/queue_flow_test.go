package pace_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/layertest"
	"github.com/weirflow/weir/pace"
)

func mustFlow(t *testing.T, q *pace.Queue, name string, weight int64) pace.QueueFlow {
	t.Helper()
	f, err := q.InFlow(name, weight)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Flows of weights 1 and 3, and costs of 1 and 2, share a key that both wait for throughout.
func TestFlowsOfAQueueKeepTheBoundOfFairQueueing(t *testing.T) {
	for _, remote := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			fresh := weir.Engine(mustMemory(t))
			if remote {
				fresh = newCounted(fresh)
			}
			q, err := pace.NewQueue(layertest.Around(fresh), pace.QueueOptions{})
			if err != nil {
				t.Fatal(err)
			}
			vendor := rule(t, "vendor", "token bucket 10/s burst 2")
			var mu sync.Mutex
			served := map[string]float64{}
			check := func(name string, cost float64) {
				mu.Lock()
				defer mu.Unlock()
				served[name] += cost
				if total := served["a"] + served["b"]; total > 10 && total < 300 {
					if apart := served["a"]/1 - served["b"]/3; apart > 1+2.0/3+2 || apart < -1-2.0/3-2 {
						t.Errorf("%T: after %v units: a has %v, b of weight 3 has %v", fresh, total, served["a"], served["b"])
					}
				}
			}
			var callers sync.WaitGroup
			for i := range 400 {
				name, weight, cost := "a", int64(1), int64(1)
				if i%2 == 0 {
					name, weight, cost = "b", 3, 2
				}
				callers.Go(func() {
					if _, err := mustFlow(t, q, name, weight).Wait(t.Context(), vendor.For("k", cost)); err != nil {
						t.Error(err)
					}
					check(name, float64(cost))
				})
				synctest.Wait()
			}
			callers.Wait()
		})
	}
}

func TestAFlowThatComesLateToAQueueGoesSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := pace.NewQueue(layertest.Around(mustMemory(t)), pace.QueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		host, total := rule(t, "host", "rate gate 1/s"), rule(t, "total", "token bucket 10/s burst 10")
		requests := []weir.Request{host.For("a", 1), total.For("all", 1)}
		busy, late := mustFlow(t, q, "busy", 1), mustFlow(t, q, "late", 1)
		var callers sync.WaitGroup
		for range 100 {
			callers.Go(func() { _, _ = busy.Wait(t.Context(), requests...) })
			synctest.Wait()
		}
		start := time.Now()
		if _, err := late.Wait(t.Context(), requests...); err != nil || time.Since(start) > 2*time.Second {
			t.Errorf("a late flow went after %v with %v, want at most 2 s behind a flow of 100", time.Since(start), err)
		}
		callers.Wait()
	})
}

// Two flows of weights 3 and 1 come and go. In each part both get their shares of the demand, independent of earlier parts.
func TestSharesOfFlowsFollowTheirDemand(t *testing.T) {
	onBoth(t, func(t *testing.T, engine weir.Engine, _ func() int64) {
		q, vendor := mustQueue(t, engine), rule(t, "vendor", "token bucket 100/s burst 1")
		var served [2]atomic.Int64
		for _, part := range []struct {
			busy [2]bool
			want [2]int64 // in 20 s
		}{
			{[2]bool{true, true}, [2]int64{1500, 500}},
			{[2]bool{false, true}, [2]int64{0, 2000}},
			{[2]bool{true, true}, [2]int64{1500, 500}}, // the pause has saved nothing
			{[2]bool{true, false}, [2]int64{2000, 0}},
			{[2]bool{true, true}, [2]int64{1500, 500}},
		} {
			ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
			var callers sync.WaitGroup
			for i, busy := range part.busy {
				served[i].Store(0)
				if !busy {
					continue
				}
				f := mustFlow(t, q, strconv.Itoa(i), []int64{3, 1}[i])
				for range 8 {
					callers.Go(func() {
						for {
							if _, err := f.Wait(ctx, vendor.For("k", 1)); err != nil {
								return
							}
							served[i].Add(1)
						}
					})
				}
			}
			callers.Wait()
			stop()
			for i := range served {
				if got := served[i].Load(); got < part.want[i]-10 || got > part.want[i]+10 {
					t.Errorf("busy %v: flow %d has %d in 20 s, want %d", part.busy, i, got, part.want[i])
				}
			}
		}
	})
}

func TestAQueueRefusesAWeightOutOfBounds(t *testing.T) {
	q, _ := pace.NewQueue(layertest.Around(mustMemory(t)), pace.QueueOptions{})
	for _, weight := range []int64{0, -1, 1025} {
		if _, err := q.InFlow("f", weight); err == nil {
			t.Errorf("weight %d: got no error", weight)
		}
	}
}

// The next caller of flow a asks for a hundred units. A caller of flow b, which is before it, asks for one.
func TestACallerOfAFlowThatIsFirstGoesWhenTheEngineAdmitsIt(t *testing.T) {
	onBoth(t, func(t *testing.T, engine weir.Engine, _ func() int64) {
		q := mustQueue(t, engine)
		vendor := rule(t, "vendor", "token bucket 1/m burst 100")
		a, b := mustFlow(t, q, "a", 1), mustFlow(t, q, "b", 1)
		start := time.Now()
		var callers sync.WaitGroup
		goes := func(f pace.QueueFlow, cost int64, patience, want time.Duration) {
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if _, err := f.Wait(ctx, vendor.For("k", cost)); err != nil || time.Since(start) != want {
					t.Errorf("a caller of %d units went after %v (%v), want %v", cost, time.Since(start), err, want)
				}
			})
			synctest.Wait()
		}
		goes(a, 100, time.Hour, 0)
		goes(a, 1, time.Hour, time.Minute)
		goes(a, 100, 3*time.Hour, 102*time.Minute)
		time.Sleep(90 * time.Second)
		goes(b, 1, time.Minute, 2*time.Minute)
		callers.Wait()
	})
}

// Callers of the queue wait when the first caller of a flow comes. They are one more flow, whatever they ask for.
func TestCallersThatWaitedBeforeAFlowCameAreAFlow(t *testing.T) {
	onBoth(t, func(t *testing.T, engine weir.Engine, _ func() int64) {
		q := mustQueue(t, engine)
		vendor, total := rule(t, "vendor", "token bucket 1/s burst 2"), rule(t, "total", "rate gate 100/s")
		var mu sync.Mutex
		served := map[string]int64{}
		var callers sync.WaitGroup
		come := func(flow string, wait func(context.Context, ...weir.Request) (weir.Decision, error)) {
			for i := range 20 {
				cost := 1 + int64(i%2)
				callers.Go(func() {
					if _, err := wait(t.Context(), vendor.For("k", cost), total.For("k", 1)); err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					served[flow] += cost
				})
				synctest.Wait()
			}
		}
		come("", q.Wait)
		clear(served)
		come("a", mustFlow(t, q, "a", 1).Wait)
		for range 25 {
			time.Sleep(time.Second)
			synctest.Wait()
			mu.Lock()
			if apart := served[""] - served["a"]; apart > 4 || apart < -4 {
				t.Errorf("callers of the queue have %d units, those of the flow %d", served[""], served["a"])
			}
			mu.Unlock()
		}
		callers.Wait()
	})
}
