// Package tokio_test has the examples of docs/from/tokio.md.
package tokio_test

import (
	"fmt"
	"time"

	"github.com/weirflow/weir"
)

// A tick every 100 ms. The caller is busy from 100 to 450 ms and misses the ticks of 200, 300 and 400 ms. The limit
// decides how it goes on. In a program, lim.Wait(ctx) sleeps for the delay that ReserveAt returns here.
func Example_missedTicks() {
	period := 100 * time.Millisecond
	for _, limit := range []weir.Limit{
		weir.TokenBucket{Rate: weir.Per(1, period), Burst: 10},    // Burst
		weir.RateGate{Rate: weir.Per(1, period)},                  // Delay
		weir.Cycle{Rate: weir.Per(1, period), FromFirstUse: true}, // Skip
	} {
		lim, err := weir.New(limit)
		if err != nil {
			fmt.Println(err)
			return
		}
		start := time.Date(2026, 1, 1, 12, 0, 0, 37e6, time.UTC)
		now := start
		lim.AllowAt(now, lim.PeekAt(now, 0).Limit-1) // a bucket starts full, an interval with one tick
		var ticks []int64
		for len(ticks) < 7 {
			r, err := lim.ReserveAt(now, 1, weir.Never)
			if err != nil {
				fmt.Println(err)
				return
			}
			now = now.Add(r.Decision.Delay)
			ticks = append(ticks, now.Sub(start).Milliseconds())
			if len(ticks) == 2 {
				now = now.Add(350 * time.Millisecond) // busy
			}
		}
		fmt.Println(limit, ticks)
	}
	// Output:
	// token bucket 1/100ms burst 10 [0 100 450 450 450 500 600]
	// rate gate 1/100ms [0 100 450 550 650 750 850]
	// cycle 1/100ms from first use [0 100 450 500 600 700 800]
}

// MultiRateLimiter::new(5 s) with the keys of its documentation: foo waits for its own last call, and not for that of
// bar. Host names are the keys of a crawler.
func Example_multiRateLimiter() {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	start := now
	hosts, err := weir.NewKeyedWith[string](weir.RateGate{Rate: weir.Per(1, 5*time.Second)},
		weir.Options{Clock: func() int64 { return now.UnixNano() }})
	if err != nil {
		fmt.Println(err)
		return
	}
	throttle := func(host string) { // hosts.Wait(ctx, host)
		r, err := hosts.Reserve(host, 1, weir.Never)
		if err != nil {
			fmt.Println(err)
			return
		}
		now = now.Add(r.Decision.Delay)
		fmt.Println(host, "after", now.Sub(start))
	}
	throttle("foo")
	throttle("bar")
	throttle("foo")
	now = now.Add(time.Minute) // all hosts are idle, and nothing adds up
	throttle("foo")
	throttle("foo")
	// Output:
	// foo after 0s
	// bar after 0s
	// foo after 5s
	// foo after 1m5s
	// foo after 1m10s
}

// RateLimiter::new(10 ms) and ten calls: the first goes at once, and the last after 90 ms.
func Example_rateLimiter() {
	lim, err := weir.New(weir.RateGate{Rate: weir.Per(1, 10*time.Millisecond)})
	if err != nil {
		fmt.Println(err)
		return
	}
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	now := start
	for range 10 {
		r, err := lim.ReserveAt(now, 1, weir.Never)
		if err != nil {
			fmt.Println(err)
			return
		}
		now = now.Add(r.Decision.Delay)
	}
	fmt.Println(now.Sub(start))
	// Output:
	// 90ms
}
