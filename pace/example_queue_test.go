package pace_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/pace"
)

// A worker that obeys a vendor's terms: 10 requests in any 100 ms, two at once, and 10,000 a day. With a redislimit
// engine, workers of all processes obey them together.
func ExampleQueue_Acquire() {
	engine := weir.NewMemory(weir.MemoryOptions{})
	queue, err := pace.NewQueue(engine, pace.QueueOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	slots, _ := weir.ParseRule("slots=concurrency 2 lease 1m")
	rate, _ := weir.ParseRule("rate=sliding log 10/100ms")
	quota, _ := weir.ParseRule("quota=fixed window 10000/d")

	ctx := context.Background()
	start := time.Now()
	for i := range 25 {
		a, err := queue.Acquire(ctx, slots.For("vendor", 1), rate.For("vendor", 1), quota.For("vendor", 1))
		if err != nil {
			fmt.Println(err)
			return
		}
		// ... the request ...
		if err := a.Done(ctx); err != nil {
			fmt.Println(err)
			return
		}
		if i%10 == 9 || i == 24 {
			fmt.Println(i+1, "requests after", reached(start, time.Duration(i/10)*100*time.Millisecond))
		}
	}
	// Output:
	// 10 requests after 0s
	// 20 requests after 100ms
	// 25 requests after 200ms
}
