package pace_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirflow/weir"
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
				fresh = &counted{Engine: fresh}
			}
			q, err := pace.NewQueue(fresh, pace.QueueOptions{})
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
		q, err := pace.NewQueue(mustMemory(t), pace.QueueOptions{})
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

func TestAQueueRefusesAWeightOutOfBounds(t *testing.T) {
	q, _ := pace.NewQueue(mustMemory(t), pace.QueueOptions{})
	for _, weight := range []int64{0, -1, 1025} {
		if _, err := q.InFlow("f", weight); err == nil {
			t.Errorf("weight %d: got no error", weight)
		}
	}
}
