// Package uber_test has the examples of docs/from/uber.md.
package uber_test

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

// turns prints how long after the turn before each turn comes. In a program, lim.Wait(ctx) sleeps for the delay that
// ReserveAt returns here.
func turns(lim *weir.Limiter, now time.Time, count int) {
	for i := range count {
		r, err := lim.ReserveAt(now, 1, weir.Never)
		if err != nil {
			fmt.Println(err)
			return
		}
		now = now.Add(r.Decision.Delay)
		if i > 0 {
			fmt.Println(i, r.Decision.Delay)
		}
	}
}

// ratelimit.New(100): one turn, 45 ms of work, and then ten turns. Four of them catch up on the lost time.
func Example_slack() {
	lim, err := weir.New(weir.TokenBucket{Rate: weir.PerSecond(100), Burst: 11})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	lim.AllowAt(now, 10) // uber's limiter starts without slack, and a bucket starts full

	turns(lim, now, 1)
	turns(lim, now.Add(45*time.Millisecond), 10)
	// Output:
	// 1 0s
	// 2 0s
	// 3 0s
	// 4 5ms
	// 5 10ms
	// 6 10ms
	// 7 10ms
	// 8 10ms
	// 9 10ms
}

// ratelimit.New(100, ratelimit.WithoutSlack): turns are never closer than 10 ms.
func Example_withoutSlack() {
	lim, err := weir.New(weir.TokenBucket{Rate: weir.PerSecond(100), Burst: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	turns(lim, time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), 6)
	// Output:
	// 1 10ms
	// 2 10ms
	// 3 10ms
	// 4 10ms
	// 5 10ms
}
