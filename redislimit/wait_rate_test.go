package redislimit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/internal/redistest"
	"github.com/weirflow/weir/pace"
	"github.com/weirflow/weir/redislimit"
)

// Each process asks at the instant that a rate names, whoever goes then, and the one that goes asks for the next instant.
// Timers that are late cost some more.
func TestSlotsWithARateTakeTwoDecisionsOfEachProcessAGrantAtMost(t *testing.T) {
	t.Parallel()
	const processes, callers, each = 3, 8, 3
	for name, c := range map[string]struct {
		slots int64
		rate  []weir.Limit
		held  time.Duration
	}{
		"a_bucket_binds":         {5, []weir.Limit{weir.TokenBucket{Rate: weir.PerSecond(50), Burst: 1}}, 0},
		"a_gate_binds":           {5, []weir.Limit{weir.RateGate{Rate: weir.PerSecond(50)}}, 0},
		"a_log_binds":            {5, []weir.Limit{weir.SlidingLog{Rate: weir.Per(5, 100*time.Millisecond)}}, 0},
		"a_window_binds":         {5, []weir.Limit{weir.FixedWindow{Rate: weir.Per(5, 100*time.Millisecond)}}, 0},
		"a_sliding_window_binds": {5, []weir.Limit{weir.SlidingWindow{Rate: weir.Per(5, 100*time.Millisecond)}}, 0},
		"two_limits_bind":        {5, []weir.Limit{weir.FixedWindow{Rate: weir.PerSecond(40)}, weir.TokenBucket{Rate: weir.PerSecond(50), Burst: 5}}, 0},
		"slots_bind":             {1, []weir.Limit{weir.TokenBucket{Rate: weir.PerSecond(50), Burst: 1}}, 30 * time.Millisecond},
		"both_bind":              {1, []weir.Limit{weir.TokenBucket{Rate: weir.PerSecond(50), Burst: 1}}, 19 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			slots, rate := newRule(t, "slots", weir.Concurrency{Slots: c.slots, Lease: time.Minute}), newRule(t, "rate", c.rate...)
			var engines []*redislimit.Engine
			var queues []*pace.Queue
			for range processes {
				queue, engine := queueOn(t, server)
				queues, engines = append(queues, queue), append(engines, engine)
			}
			var all sync.WaitGroup
			start := time.Now()
			for i := range processes * callers {
				all.Go(func() {
					for range each {
						a, err := queues[i%processes].Acquire(t.Context(), slots.For("vendor", 1), rate.For("vendor", 1))
						if err != nil {
							t.Error(err)
							return
						}
						time.Sleep(c.held)
						if err := a.Done(t.Context()); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			const n = processes * callers * each
			heartbeats := processes * 5 * int(time.Since(start)/time.Second+2)
			asked := int(decisions(engines...)) - n // without the releases
			t.Logf("%d decisions for %d grants in %v: %.2f a grant", asked, n, time.Since(start), float64(asked)/n)
			if asked > 2*processes*n+heartbeats {
				t.Errorf("%d decisions for %d grants, want at most %d a grant besides %d heartbeats", asked, n, 2*processes, heartbeats)
			}
		})
	}
}

// Callers of three hosts share slots, and each host has a rate. A host that has to wait does not hold up the others, and
// no host waits for longer than its rate.
func TestHostsThatShareSlotsUseTheirRates(t *testing.T) {
	const hosts, callers, each = 3, 6, 10
	server := redistest.Start(t)
	slots := newRule(t, "slots", weir.Concurrency{Slots: 2, Lease: time.Minute})
	rate := newRule(t, "rate", weir.FixedWindow{Rate: weir.Per(10, 500*time.Millisecond)})
	var engines []*redislimit.Engine
	var all sync.WaitGroup
	start := time.Now()
	for host := range hosts {
		queue, engine := queueOn(t, server)
		engines = append(engines, engine)
		for range callers {
			all.Go(func() {
				for range each {
					a, err := queue.Acquire(t.Context(), slots.For("all", 1), rate.For(fmt.Sprint(host), 1))
					if err != nil || a.Done(t.Context()) != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	const n = hosts * callers * each
	took, asked := time.Since(start), int(decisions(engines...))-n
	t.Logf("%d decisions for %d grants in %v", asked, n, took)
	// 60 of a host take 2.5 to 3 s. If hosts held one another up, 5 windows and more would pass unused.
	if took > 10*time.Second {
		t.Errorf("%d grants took %v", n, took)
	}
	if heartbeats := hosts * 5 * int(took/time.Second+2); asked > 2*hosts*n+heartbeats {
		t.Errorf("%d decisions for %d grants, want at most %d a grant besides %d heartbeats", asked, n, 2*hosts, heartbeats)
	}
}

// A caller whose cost no instant admits is refused at once, and keeps no place that others would wait behind.
func TestACallerThatCanNeverGoHoldsUpNobody(t *testing.T) {
	server := redistest.Start(t)
	queue, _ := queueOn(t, server)
	other, _ := queueOn(t, server)
	gate := newRule(t, "gate", weir.RateGate{Rate: weir.PerSecond(20)})
	var tooLarge *weir.CostError
	for i := range 3 {
		if _, err := queue.Wait(t.Context(), gate.For("k", 21)); !errors.As(err, &tooLarge) {
			t.Fatalf("a cost of 21: %v, want a *weir.CostError", err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
		for _, q := range []*pace.Queue{queue, other} {
			if _, err := q.Wait(ctx, gate.For("k", 1)); err != nil {
				t.Errorf("round %d, a cost of 1: %v", i, err)
			}
			flow, err := q.InFlow("b", 1)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := flow.Wait(ctx, gate.For("k", 1)); err != nil {
				t.Errorf("round %d, a cost of 1 in a flow: %v", i, err)
			}
		}
		stop()
	}
}
