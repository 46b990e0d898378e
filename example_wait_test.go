package weir_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weirflow/weir"
)

// reached returns due, or the time since start if that is less. These examples run on the real clock: on a busy
// machine callers may be late, but never early.
func reached(start time.Time, due time.Duration) time.Duration {
	return min(due, time.Since(start))
}

// A rate gate of 2 in 100 ms, ten iterations in a loop and ten in parallel: start
// i+2 is never less than 100 ms after start i.
func ExampleRateGate() {
	gate, err := weir.New(weir.RateGate{Rate: weir.Per(2, 100*time.Millisecond)})
	if err != nil {
		fmt.Println(err)
		return
	}
	begin := time.Now()
	starts := make(chan time.Duration, 20)
	start := func() {
		if err := gate.Wait(context.Background()); err != nil {
			fmt.Println(err)
		}
		starts <- time.Since(begin)
	}
	for range 10 {
		start()
	}
	for range 10 {
		go start()
	}
	for i := range 20 {
		fmt.Print(min(<-starts, time.Duration(i/2)*100*time.Millisecond), " ")
	}
	fmt.Println()
	// Output:
	// 0s 0s 100ms 100ms 200ms 200ms 300ms 300ms 400ms 400ms 500ms 500ms 600ms 600ms 700ms 700ms 800ms 800ms 900ms 900ms
}

// One gate is shared by goroutines: each passes it before it starts work. Together they never start more than 5 in
// any tenth of a second.
func ExampleLimiter_Wait() {
	gate, err := weir.New(weir.RateGate{Rate: weir.Per(5, 100*time.Millisecond)})
	if err != nil {
		fmt.Println(err)
		return
	}
	start := time.Now()
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() {
			for range 5 {
				if err := gate.Wait(context.Background()); err != nil {
					fmt.Println(err)
					return
				}
				// the work
			}
		})
	}
	workers.Wait()
	fmt.Println("15 starts, the last after", reached(start, 200*time.Millisecond))
	// Output: 15 starts, the last after 200ms
}

// One gate per tenant, by plan. A caller that cannot wait long enough gets an error at once.
func ExampleKeyed_Wait() {
	plans := map[string]int64{"acme": 50, "globex": 1}
	gates, err := weir.NewKeyedFunc(func(tenant string) weir.Limit {
		return weir.RateGate{Rate: weir.PerMinute(plans[tenant])}
	}, weir.Options{Queue: 100})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, tenant := range []string{"acme", "acme", "globex", "globex"} {
		if err := gates.Wait(ctx, tenant); err != nil {
			fmt.Println(tenant, "refused:", ctx.Err() == nil)
			continue
		}
		fmt.Println(tenant, "goes ahead")
	}
	// Output:
	// acme goes ahead
	// acme goes ahead
	// globex goes ahead
	// globex refused: true
}
