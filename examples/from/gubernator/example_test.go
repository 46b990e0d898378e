// Package gubernator_test has the example of docs/from/gubernator.md.
package gubernator_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/enginekit"
)

// GetRateLimits with two requests: requests_per_sec, 10 in 1,000 ms, and recipients, a leaky bucket of 100 in 60,000 ms.
// Each is decided by itself, and a request of 0 hits reads.
func Example_getRateLimits() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now.UnixNano() }})
	requests, err := weir.NewRule("requests_per_sec", weir.FixedWindow{Rate: weir.PerSecond(10)})
	if err != nil {
		fmt.Println(err)
		return
	}
	recipients, err := weir.NewRule("recipients", weir.TokenBucket{Rate: weir.PerMinute(100), Burst: 100})
	if err != nil {
		fmt.Println(err)
		return
	}
	const account = "account:12345"
	for _, hits := range []int64{8, 3, 0} {
		calls := enginekit.Calls(weir.OpTake, requests.For(account, hits), recipients.For(account, 10*hits))
		results := make([]weir.Result, len(calls))
		if err := engine.Each(context.Background(), calls, results); err != nil {
			fmt.Println(err)
			return
		}
		for _, r := range results {
			d := r.Decision
			fmt.Println(d.Rule, d.Allowed, d.Remaining, d.ResetAfter)
		}
	}
	// Output:
	// requests_per_sec true 2 1s
	// recipients true 20 48s
	// requests_per_sec false 2 1s
	// recipients false 20 48s
	// requests_per_sec true 2 1s
	// recipients true 20 48s
}
