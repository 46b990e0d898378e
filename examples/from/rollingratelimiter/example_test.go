// Package rollingratelimiter_test has the examples of docs/from/rolling-rate-limiter.md.
package rollingratelimiter_test

import (
	"context"
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

// interval 1000, maxInInterval 10, minDifference 100: a caller that asks every 50 ms is refused by the gap, and because
// refused attempts count, it never gets a second action. One that asks every 100 ms gets ten.
func Example_minDifference() {
	limit := weir.SlidingLog{Rate: weir.Per(10, time.Second), Gap: 100 * time.Millisecond, CountDenied: true}
	for _, every := range []time.Duration{50 * time.Millisecond, 100 * time.Millisecond} {
		now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
		engine := weir.NewMemory(weir.MemoryOptions{Clock: func() int64 { return now.UnixNano() }})
		rule, err := weir.NewRule("login", limit)
		if err != nil {
			fmt.Println(err)
			return
		}
		allowed, byGap, byCount := 0, 0, 0
		for range 60 {
			d, err := engine.Take(context.Background(), rule.For("user1234", 1))
			switch {
			case err != nil:
				fmt.Println(err)
				return
			case d.Allowed:
				allowed++
			case d.Cause == weir.ByGap:
				byGap++
			default:
				byCount++
			}
			now = now.Add(every)
		}
		fmt.Println("every", every, "allowed", allowed, "refused by the gap", byGap, "by the count", byCount)
	}
	// Output:
	// every 50ms allowed 1 refused by the gap 8 by the count 51
	// every 100ms allowed 60 refused by the gap 0 by the count 0
}

// Five a second, 100 ms apart: what limitWithInfo says of each attempt.
func Example_info() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	lim, err := weir.New(weir.SlidingLog{Rate: weir.Per(5, time.Second), Gap: 100 * time.Millisecond, CountDenied: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, after := range []time.Duration{0, 150, 40, 200, 200, 200} {
		now = now.Add(after * time.Millisecond)
		d := lim.TakeAt(now, 1)
		if d.Allowed {
			fmt.Println("allowed")
		} else {
			fmt.Println("refused by the", d.Cause, "- retry after", d.RetryAfter)
		}
	}
	// Output:
	// allowed
	// allowed
	// refused by the gap - retry after 100ms
	// allowed
	// allowed
	// refused by the count - retry after 360ms
}
